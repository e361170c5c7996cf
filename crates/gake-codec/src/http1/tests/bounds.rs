//! The limits on a server's head, headers and chunk lines.

use super::super::{MAX_HEADERS, Malformed as M, ResponseLimits};
use super::harness::{bounded, get, ok};

#[test]
fn too_large() {
    let limits = ResponseLimits { head_bytes: 100, headers: 3, interim: 2, chunk_line: 8 };
    let many = |n: usize| "A: b\r\n".repeat(n);
    let long = |n: usize| format!("A: {}\r\n", "b".repeat(n));
    let chunked = |body: &str| ok("Transfer-Encoding: chunked\r\n", body);
    let interim = |n: usize| "HTTP/1.1 100 x\r\n\r\n".repeat(n);
    let cases: &[(&str, String, M)] = &[
        ("headers", ok(&many(4), ""), M::TooManyHeaders),
        ("head bytes", ok(&long(100), ""), M::HeadTooLarge),
        ("head without end", long(1000), M::NotHttp),
        ("endless reason", format!("HTTP/1.1 200 {}", "x".repeat(1000)), M::HeadTooLarge),
        ("interim", interim(3), M::TooManyInterim),
        ("extensions", chunked("5;a=bcdefghi\r\n"), M::ChunkLineTooLong),
        ("leading zeros", chunked("0000000005\r\n"), M::ChunkLineTooLong),
        ("trailers", chunked(&format!("0\r\n{}\r\n", many(4))), M::TooManyTrailers),
        ("trailer bytes", chunked(&format!("0\r\n{}\r\n", long(100))), M::TrailersTooLarge),
    ];
    for (name, bytes, fault) in cases {
        assert_eq!(bounded(bytes, limits).bad(), Some(*fault), "{name}");
        assert_eq!(fault.is_too_large(), *fault != M::NotHttp, "{name}");
    }
    let length = "Content-Length: 0\r\n";
    bounded(ok(&(many(2) + length), ""), limits).done();
    bounded(interim(2) + &ok(length, ""), limits).done();
    bounded(chunked("0;abcde\r\n\r\n"), limits).done();
}

#[test]
fn the_bound_on_the_head_is_exact() {
    let bytes = ok("Content-Length: 0\r\n", "");
    let limits = |head_bytes| ResponseLimits { head_bytes, ..ResponseLimits::default() };
    bounded(&bytes, limits(bytes.len())).done();
    assert_eq!(bounded(&bytes, limits(bytes.len() - 1)).bad(), Some(M::HeadTooLarge));
    // A wrong byte within the bound is reported first; one beyond it is not scanned.
    let wrong = ok("X: \0", "");
    let at = wrong.find('\0').unwrap();
    assert_eq!(bounded(&wrong, limits(at + 1)).bad(), Some(M::HeaderValue));
    assert_eq!(bounded(&wrong, limits(at)).bad(), Some(M::HeadTooLarge));
}

#[test]
fn up_to_a_thousand_headers() {
    let head = |n: usize| ok(&("A: b\r\n".repeat(n - 1) + "Content-Length: 1\r\n"), "x");
    for n in [63, 64, 65, 999, MAX_HEADERS] {
        let outcome = get(head(n));
        assert_eq!((outcome.done().body_bytes, outcome.heads[0].1.len()), (1, n));
    }
    assert_eq!(get(head(MAX_HEADERS + 1)).bad(), Some(M::TooManyHeaders));
    let limits = ResponseLimits { headers: usize::MAX, ..ResponseLimits::default() };
    assert_eq!(bounded(head(MAX_HEADERS + 1), limits).bad(), Some(M::TooManyHeaders));
}
