//! The HTTP/1.1 response parser: the bytes fed at once, cut where the fuzzer says, and one by one
//! must have the same outcome, show the same body, and agree with httparse on the head.
//!
//! The first bytes of an input choose: limits, HEAD or not, and the distances between cuts.
#![no_main]

#[allow(dead_code, missing_docs, reason = "compiled from source, to do without TLS")]
#[path = "../../crates/gake-codec/src/http1/mod.rs"]
mod http1;

use http1::{Eof, ParseProgress, ResponseHead, ResponseLimits, MAX_HEADERS, Malformed, Response, ResponseParser, Visitor};
use libfuzzer_sys::{Corpus, fuzz_target};

/// What can be seen of a stream, without what depends on the slices.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Each complete response, with the bytes of the stream up to its end.
    responses: Vec<(Response, usize)>,
    fault: Option<Malformed>,
    end: Option<&'static str>,
    bodies: Vec<u8>,
    heads: Vec<u16>,
}

impl Visitor for Outcome {
    fn head(&mut self, head: &ResponseHead<'_>) {
        assert!(head.status >= 200 && head.headers.len() <= MAX_HEADERS);
        self.heads.push(head.status);
    }

    fn body(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        self.bodies.extend_from_slice(bytes);
    }
}

/// Reads the stream as a row of responses, in slices of the given sizes, over and over.
fn read(stream: &[u8], limits: ResponseLimits, is_head: bool, sizes: &[usize]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut parser = ResponseParser::new(limits);
    parser.start(is_head);
    let mut sizes = sizes.iter().cycle();
    let (mut at, mut edge) = (0, 0);
    while at < stream.len() {
        if at >= edge {
            edge = (at + sizes.next().map_or(stream.len(), |&n| n.max(1))).min(stream.len());
        }
        match parser.feed_with(&stream[at..edge], &mut outcome) {
            Ok(ParseProgress::More) => at = edge,
            Ok(ParseProgress::Done(response)) => {
                assert_eq!(response.excess, at + response.consumed < edge);
                assert!(response.consumed > 0);
                at += response.consumed;
                let response = Response { consumed: 0, excess: false, ..response };
                outcome.responses.push((response, at));
                parser.start(is_head);
            }
            Err(fault) => {
                assert_eq!(parser.feed(b"x"), Err(fault), "a fault stays");
                outcome.fault = Some(fault);
                return outcome;
            }
        }
    }
    let started = parser.started();
    outcome.end = Some(match parser.eof() {
        Eof::Complete(response) => {
            outcome.responses.push((response, at));
            "complete"
        }
        Eof::Nothing => "nothing",
        Eof::Cut => "cut",
    });
    assert_eq!(started, outcome.end != Some("nothing"));
    let shown: u64 = outcome.responses.iter().map(|(r, _)| r.body_bytes).sum();
    assert!(shown <= outcome.bodies.len() as u64, "a body is shown before it is counted");
    outcome
}

/// A head that we take, httparse takes; a head that httparse refuses, we refuse.
fn agrees_with_httparse(stream: &[u8], outcome: &Outcome) {
    let mut headers = vec![httparse::EMPTY_HEADER; MAX_HEADERS];
    let theirs = httparse::Response::new(&mut headers).parse(stream);
    match theirs {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => assert_eq!(outcome.heads, []),
        Err(_) => {
            assert_eq!(outcome.heads, []);
            assert!(outcome.fault.is_some());
        }
    }
    // What we refuse as syntax, httparse refuses, but for empty lines before the status line.
    let syntax = matches!(
        outcome.fault,
        Some(Malformed::Version | Malformed::StatusLine | Malformed::HeaderName)
    );
    if outcome.heads.is_empty() && outcome.responses.is_empty() && syntax {
        assert!(
            theirs.is_err()
                || stream.starts_with(b"HTTP/1.1 1")
                || stream.starts_with(b"HTTP/1.0 1")
        );
    }
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let [choice, a, b, c, stream @ ..] = data else { return Corpus::Reject };
    let limits = match choice & 3 {
        0 => ResponseLimits { head_bytes: 64, headers: 3, interim: 1, chunk_line: 6 },
        1 => ResponseLimits { head_bytes: 400, headers: 70, interim: 2, chunk_line: 20 },
        _ => ResponseLimits::default(),
    };
    let is_head = choice & 4 != 0;
    let whole = read(stream, limits, is_head, &[]);
    let sizes = [a, b, c].map(|&n| usize::from(n));
    assert_eq!(whole, read(stream, limits, is_head, &sizes), "whole against cut");
    assert_eq!(whole, read(stream, limits, is_head, &[1]), "whole against byte by byte");
    if choice & 3 > 1 {
        agrees_with_httparse(stream, &whole);
    }
    Corpus::Keep
});
