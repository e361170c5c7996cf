//! The parser's state between slices and after the end.

use super::super::{KnownHeads, Malformed as M, ParseProgress, Response, ResponseParser, Version};
use super::harness::ok;

#[test]
fn bytes_after_the_end_are_excess() {
    for rest in ["x", "\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
        let whole = ok("Content-Length: 2\r\n", "ok");
        let mut parser = ResponseParser::default();
        parser.start(false);
        let ParseProgress::Done(response) = parser.feed((whole.clone() + rest).as_bytes()).unwrap()
        else {
            panic!("not done");
        };
        let expected = Response {
            status: 200,
            version: Version::Http11,
            body_bytes: 2,
            consumed: whole.len(),
            keep_alive: true,
            excess: true,
        };
        assert_eq!(response, expected);
        assert!(!response.reusable());
        // The same bytes in a slice of their own.
        assert_eq!(parser.feed(rest.as_bytes()), Err(M::Unsolicited));
    }
}

#[test]
fn a_switch_of_protocols_is_final_after_an_upgrade() {
    let head = "HTTP/1.1 101 Switching Protocols\r\nContent-Length: 5\r\n\r\n";
    let mut known = KnownHeads::new();
    let mut parser = ResponseParser::default();
    parser.start_upgrade();
    let fed = parser.feed_known(format!("{head}hello").as_bytes(), &mut (), &mut known).unwrap();
    let ParseProgress::Done(response) = fed else { panic!("not done") };
    assert_eq!((response.status, response.consumed, response.excess), (101, head.len(), true));
    // It is not valid for other requests, and its head is not cached.
    parser.start(false);
    assert_eq!(parser.feed_known(head.as_bytes(), &mut (), &mut known), Err(M::Upgrade));
}

#[test]
fn started_and_in_body_follow_the_response() {
    let mut parser = ResponseParser::default();
    assert_eq!(parser.feed(b""), Ok(ParseProgress::More));
    parser.start(false);
    assert!(!parser.started() && !parser.in_body());
    parser.feed(b"").unwrap();
    assert!(!parser.started());
    parser.feed(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    assert!(parser.started() && !parser.in_body());
    parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").unwrap();
    assert!(parser.in_body());
    assert!(matches!(parser.feed(b"ok"), Ok(ParseProgress::Done(_))));
    assert!(!parser.in_body());
    parser.start(false);
    assert_eq!(parser.feed(b"x"), Err(M::NotHttp));
    assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\n\r\n"), Err(M::NotHttp), "the fault stays");
    parser.start(false);
    assert!(!parser.started());
}

#[test]
fn names_are_unique_and_snake_case() {
    let all = [
        M::NotHttp,
        M::Version,
        M::StatusLine,
        M::Status,
        M::Upgrade,
        M::LineEnd,
        M::HeaderName,
        M::HeaderValue,
        M::ObsFold,
        M::ContentLength,
        M::ContentLengthConflict,
        M::TransferEncoding,
        M::ChunkedNotLast,
        M::LengthAndTransferEncoding,
        M::TransferEncodingInHttp10,
        M::ChunkSize,
        M::ChunkSizeOverflow,
        M::ChunkLine,
        M::ChunkEnd,
        M::Unsolicited,
        M::HeadTooLarge,
        M::TooManyHeaders,
        M::TooManyInterim,
        M::ChunkLineTooLong,
        M::TrailersTooLarge,
        M::TooManyTrailers,
    ];
    let names: std::collections::BTreeSet<_> = all.iter().map(|m| m.name()).collect();
    assert_eq!(names.len(), all.len());
    for name in names {
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
    }
}

#[test]
fn a_head_seen_before_means_the_same_again() {
    let whole = ok("Content-Length: 2\r\n", "ok");
    let head = &whole[..whole.len() - 2];
    let mut known = KnownHeads::new();
    let mut read = |is_head, bytes: &str| {
        // Connections of one origin share the cache.
        let mut parser = ResponseParser::default();
        parser.start(is_head);
        let fed = parser.feed_known(bytes.as_bytes(), &mut (), &mut known);
        let Ok(ParseProgress::Done(response)) = fed else { panic!("{fed:?}") };
        assert_eq!((response.status, response.excess), (200, false));
        response.body_bytes
    };
    // The same bytes are a complete response to HEAD but not to GET.
    for (is_head, bytes) in
        [(false, whole.as_str()), (true, head), (false, &whole), (false, &whole)]
    {
        assert_eq!(read(is_head, bytes), if is_head { 0 } else { 2 });
    }
    // A head that differs in its last line is another head.
    assert_eq!(read(false, &ok("Content-Length: 3\r\n", "abc")), 3);
    // More heads than the cache holds.
    for length in (0..100).chain(0..100) {
        let body = "x".repeat(length);
        let bytes = ok(&format!("Content-Length: {length}\r\n"), &body);
        assert_eq!(read(false, &bytes), length as u64);
    }
}
