//! Faults that a client may read over but an intermediary must not pass on.

use super::super::Malformed as M;
use super::harness::{get, leniently, ok};

const LENGTH: &str = "Content-Length: 2\r\n";

/// The headers of the only head.
fn headers(lines: &str) -> Vec<(String, String)> {
    let text = ok(&format!("{lines}{LENGTH}"), "ok");
    let outcome = leniently(&text);
    assert_eq!((outcome.done().body_bytes, outcome.done().consumed), (2, text.len()), "{lines}");
    let [(200, headers)] = &outcome.heads[..] else { panic!("{outcome:?}") };
    let text = |(name, value): &(String, Vec<u8>)| {
        (name.clone(), String::from_utf8(value.clone()).unwrap())
    };
    headers.iter().map(text).collect()
}

#[test]
fn folded_lines_are_joined_by_a_blank() {
    for folded in ["X: a\r\n b\r\n", "X: a \r\n\t b\r\n", "X: a\n  b\r\n", "X:\r\n a b\r\n"] {
        let found = headers(folded);
        assert_eq!(found[0].0, "X");
        assert_eq!(found[0].1.trim(), "a b", "{folded:?}");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(get(ok(&format!("{folded}{LENGTH}"), "ok")).bad(), Some(M::ObsFold));
    }
    // A length in two lines is that length.
    let split = leniently(ok("Content-Length:\r\n 2\r\n", "ok"));
    assert_eq!(split.done().body_bytes, 2);
    assert_eq!(headers("X: a\r\n \r\n")[0].1, "a");
}

#[test]
fn blanks_before_a_colon_are_dropped() {
    let found = headers("X-A \t: b: c\r\nY : d\r\n");
    assert_eq!((&*found[0].0, &*found[0].1), ("X-A", "b: c"));
    assert_eq!((&*found[1].0, &*found[1].1), ("Y", "d"));
    for bad in ["X Y: z\r\n", " X: y\r\n", ": y\r\n", "no colon\r\n"] {
        let text = ok(&format!("{bad}{LENGTH}"), "ok");
        assert_eq!(leniently(&text).bad(), Some(M::HeaderName), "{bad:?}");
    }
}

#[test]
fn a_length_beside_chunks_is_ignored_and_the_connection_ends() {
    let both = ok("Transfer-Encoding: chunked\r\nContent-Length: 50\r\n", "2\r\nok\r\n0\r\n\r\n");
    let outcome = leniently(&both);
    assert_eq!(outcome.body, b"ok");
    assert!(!outcome.done().keep_alive);
    assert_eq!(get(&both).bad(), Some(M::LengthAndTransferEncoding));
}
