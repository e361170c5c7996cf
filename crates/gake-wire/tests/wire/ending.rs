//! Missing and incomplete responses: each kind has its fault.

use gake_codec::http1::ResponseLimits;
use gake_core::record::{Fault, Phase};

use crate::client::{Setup, fault_of, status_of};
use crate::server::{Act, Again, Flood, Hold, Request, Reset, Server, Wait, ok, send};
use std::time::Duration;

const LATER: Duration = Duration::from_millis(100);

fn fault(script: Vec<Act>) -> Fault {
    let server = Server::start([script]);
    Setup::get(server.url("/")).fault()
}

#[test]
fn a_reset_before_or_within_the_response() {
    let head = send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    assert_eq!(fault(vec![Request, Reset]), Fault::Reset);
    assert_eq!(fault(vec![Request, send("HTTP/1.1 2"), Wait(LATER), Reset]), Fault::Reset);
    assert_eq!(fault(vec![Request, head, send("abc"), Wait(LATER), Reset]), Fault::Reset);
}

#[test]
fn an_early_end_is_never_a_success() {
    for cut in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123456789",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let phase = if cut.is_empty() { Phase::FirstByte } else { Phase::Body };
        assert_eq!(fault(vec![Request, send(cut)]), Fault::ClosedEarly(phase), "{cut:?}");
    }
}

#[test]
fn malformed_responses_have_reasons() {
    for (response, reason) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", "not_http"),
        ("HTTP/2.0 200 OK\r\n\r\n", "version"),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "status_line"),
        ("HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", "header_name"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "content_length"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "content_length_conflict",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "chunk_size"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "upgrade"),
    ] {
        assert_eq!(fault(vec![Request, send(response), Hold]), Fault::Malformed(reason));
    }
}

#[test]
fn endless_heads_and_interim_responses_are_bounded() {
    let start = send("HTTP/1.1 200 OK\r\n");
    let line = |value: &str| format!("X: {value}\r\n").into_bytes();
    let wide = Flood(line(&"y".repeat(1000)));
    assert_eq!(fault(vec![Request, start.clone(), wide]), Fault::TooLarge("head_too_large"));
    assert_eq!(fault(vec![Request, start, Flood(line("y"))]), Fault::TooLarge("too_many_headers"));
    let interim = Flood(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    assert_eq!(fault(vec![Request, interim]), Fault::TooLarge("too_many_interim"));
    let chunk = send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;");
    let extension = Flood(vec![b'e'; 100]);
    assert_eq!(fault(vec![Request, chunk, extension]), Fault::TooLarge("chunk_line_too_long"));
}

#[test]
fn bounds_are_settings() {
    let server = Server::start([vec![Request, ok(3)]]);
    let setup = Setup::get(server.url("/"))
        .with(|s| s.settings.limits = ResponseLimits { headers: 0, ..ResponseLimits::default() });
    assert_eq!(setup.fault(), Fault::TooLarge("too_many_headers"));
}

#[test]
fn a_fault_costs_its_connection_and_no_other() {
    let server =
        Server::start([vec![Request, send("nonsense\r\n"), Hold], vec![Request, ok(1), Again]]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        let broken = lane.fire().await;
        assert_eq!(fault_of(&broken), Fault::Malformed("not_http"));
        assert!(broken.written && broken.first_byte.is_some() && broken.bytes_in == 10);
        let next = lane.fire().await;
        assert_eq!(status_of(&next), 200);
        assert_eq!((client.counts().opened, client.gauges().open), (2, 1));
    });
}
