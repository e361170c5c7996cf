//! One case a rule. Every case is fed whole and byte by byte.

use super::super::{Feed, Limits, MAX_HEADERS, Malformed as M, Response, ResponseParser, Version};
use super::harness::{Ending, bounded, get, head};

/// A 200 with these header lines and what follows the head.
fn ok(headers: &str, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n{rest}")
}

#[test]
fn complete_responses() {
    // (name, bytes, status, body, keep-alive)
    let chunked = "Transfer-Encoding: chunked\r\n";
    let cases: &[(&str, String, u16, &str, bool)] = &[
        ("length", ok("Content-Length: 5\r\n", "hello"), 200, "hello", true),
        ("length zero", ok("Content-Length: 0\r\n", ""), 200, "", true),
        ("length with leading zeros", ok("Content-Length: 005\r\n", "hello"), 200, "hello", true),
        ("name in any case", ok("cOnTeNt-LeNgTh:2\r\n", "ok"), 200, "ok", true),
        (
            "length repeated, equal",
            ok("Content-Length: 2\r\nContent-Length: 2\r\n", "ok"),
            200,
            "ok",
            true,
        ),
        ("length as a list of equals", ok("Content-Length: 2, 2\r\n", "ok"), 200, "ok", true),
        ("no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n".into(), 200, "", true),
        ("empty reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n".into(), 200, "", true),
        ("bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok".into(), 200, "ok", true),
        ("mixed line ends", "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok".into(), 200, "ok", true),
        ("empty header value", ok("X:\r\nContent-Length: 2\r\n", "ok"), 200, "ok", true),
        ("obs-text in a value", ok("X: \u{e9}\r\nContent-Length: 2\r\n", "ok"), 200, "ok", true),
        ("chunked", ok(chunked, "5\r\nhello\r\n0\r\n\r\n"), 200, "hello", true),
        ("chunked, no data", ok(chunked, "0\r\n\r\n"), 200, "", true),
        ("chunked, many", ok(chunked, "1\r\na\r\n2\r\nbc\r\n000\r\n\r\n"), 200, "abc", true),
        (
            "chunked, upper case",
            ok("Transfer-Encoding: CHUNKED\r\n", "A\r\n0123456789\r\n0\r\n\r\n"),
            200,
            "0123456789",
            true,
        ),
        (
            "chunked, extensions",
            ok(chunked, "2;a=b;c=\"d;e\"\r\nok\r\n0;last\r\n\r\n"),
            200,
            "ok",
            true,
        ),
        ("chunked, padded size", ok(chunked, "2  \r\nok\r\n0 \t;x\r\n\r\n"), 200, "ok", true),
        (
            "chunked, trailers",
            ok(chunked, "2\r\nok\r\n0\r\nDigest: x\r\nB:\r\n\r\n"),
            200,
            "ok",
            true,
        ),
        (
            "chunked after another coding",
            ok("Transfer-Encoding: gzip\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
            200,
            "",
            true,
        ),
        (
            "empty members of a list",
            ok("Transfer-Encoding: , gzip,, chunked ,\r\n", "0\r\n\r\n"),
            200,
            "",
            true,
        ),
        (
            "a quoted comma is no comma",
            ok("Transfer-Encoding: a;b=\"x,chunked,\\\"\", chunked\r\n", "0\r\n\r\n"),
            200,
            "",
            true,
        ),
        (
            "204 has no body",
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n".into(),
            204,
            "",
            true,
        ),
        (
            "304 has no body",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".into(),
            304,
            "",
            true,
        ),
        (
            "204 with chunked",
            "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            204,
            "",
            true,
        ),
        ("205 has a body", "HTTP/1.1 205 x\r\nContent-Length: 1\r\n\r\nx".into(), 205, "x", true),
        ("status above 599", "HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n".into(), 999, "", true),
        (
            "100 first",
            format!("HTTP/1.1 100 Continue\r\n\r\n{}", ok("Content-Length: 1\r\n", "x")),
            200,
            "x",
            true,
        ),
        (
            "103 twice",
            format!(
                "HTTP/1.1 103 x\r\nLink: y\r\n\r\nHTTP/1.1 102\r\n\r\n{}",
                ok("Content-Length: 1\r\n", "x")
            ),
            200,
            "x",
            true,
        ),
        ("close", ok("Connection: close\r\nContent-Length: 0\r\n", ""), 200, "", false),
        (
            "close among others",
            ok("Connection: foo, CLOSE\r\nContent-Length: 0\r\n", ""),
            200,
            "",
            false,
        ),
        (
            "close in a second line",
            ok("Connection: keep-alive\r\nConnection: Close\r\nContent-Length: 0\r\n", ""),
            200,
            "",
            false,
        ),
        (
            "closed is not close",
            ok("Connection: closed\r\nContent-Length: 0\r\n", ""),
            200,
            "",
            true,
        ),
        ("1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx".into(), 200, "x", false),
        (
            "1.0 keep-alive",
            "HTTP/1.0 200 OK\r\nConnection: x, Keep-Alive\r\nContent-Length: 1\r\n\r\nx".into(),
            200,
            "x",
            true,
        ),
        (
            "1.0 keep-alive and close",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 1\r\n\r\nx".into(),
            200,
            "x",
            false,
        ),
    ];
    for (name, bytes, status, body, keep_alive) in cases {
        let outcome = get(bytes);
        let seen = outcome.done();
        assert_eq!((seen.status, seen.keep_alive), (*status, *keep_alive), "{name}");
        assert_eq!(outcome.body, body.as_bytes(), "{name}");
        assert_eq!(seen.body_bytes, body.len() as u64, "{name}");
        assert_eq!(seen.consumed, bytes.len(), "{name}");
        assert_eq!(outcome.heads.len(), 1, "{name}: only the final head is shown");
    }
}

#[test]
fn malformed_responses() {
    let chunked = |body: &str| ok("Transfer-Encoding: chunked\r\n", body);
    let length = |value: &str| ok(&format!("Content-Length: {value}\r\n"), "");
    let coding = |value: &str| ok(&format!("Transfer-Encoding: {value}\r\n"), "");
    let cases: &[(&str, String, M)] = &[
        ("garbage", "garbage".into(), M::NotHttp),
        ("empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n".into(), M::NotHttp),
        ("lower case", "http/1.1 200 OK\r\n\r\n".into(), M::NotHttp),
        ("another protocol", "SSH-2.0-x\r\n".into(), M::NotHttp),
        ("HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n".into(), M::Version),
        ("HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n".into(), M::Version),
        ("HTTP/1.10", "HTTP/1.10 200 OK\r\n\r\n".into(), M::Version),
        ("two blanks before the status", "HTTP/1.1  200 OK\r\n\r\n".into(), M::StatusLine),
        ("status of two digits", "HTTP/1.1 20 OK\r\n\r\n".into(), M::StatusLine),
        ("status of four digits", "HTTP/1.1 2000 OK\r\n\r\n".into(), M::StatusLine),
        ("signed status", "HTTP/1.1 +20 OK\r\n\r\n".into(), M::StatusLine),
        ("NUL in the reason", "HTTP/1.1 200 O\0K\r\n\r\n".into(), M::StatusLine),
        ("bare CR in the reason", "HTTP/1.1 200 OK\rX: y\r\n\r\n".into(), M::LineEnd),
        ("status 99", "HTTP/1.1 099 x\r\n\r\n".into(), M::Status),
        ("status 0", "HTTP/1.1 000 x\r\n\r\n".into(), M::Status),
        ("101 without an upgrade", "HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n".into(), M::Upgrade),
        ("header without colon", ok("nonsense\r\n", ""), M::HeaderName),
        ("empty header name", ok(": x\r\n", ""), M::HeaderName),
        ("blank before the colon", ok("X : y\r\n", ""), M::HeaderName),
        ("blank before the first header", ok(" X: y\r\n", ""), M::HeaderName),
        ("folded header", ok("X: y\r\n z\r\n", ""), M::ObsFold),
        ("folded with a tab", ok("X: y\r\n\tz\r\n", ""), M::ObsFold),
        ("NUL in a value", ok("X: a\0b\r\n", ""), M::HeaderValue),
        ("DEL in a value", ok("X: a\x7fb\r\n", ""), M::HeaderValue),
        ("bare CR in a value", ok("X: a\rb\r\n", ""), M::LineEnd),
        ("bare CR at the end", ok("X: a\r\n\rx", ""), M::LineEnd),
        ("length +5", length("+5"), M::ContentLength),
        ("length -5", length("-5"), M::ContentLength),
        ("length 5 5", length("5 5"), M::ContentLength),
        ("length 0x5", length("0x5"), M::ContentLength),
        ("length empty", length(""), M::ContentLength),
        ("length with an empty member", length("5,"), M::ContentLength),
        ("length over 64 bits", length("18446744073709551616"), M::ContentLength),
        (
            "lengths differ",
            ok("Content-Length: 5\r\nContent-Length: 6\r\n", ""),
            M::ContentLengthConflict,
        ),
        ("lengths differ in a list", length("5, 6"), M::ContentLengthConflict),
        (
            "length and chunked",
            ok("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""),
            M::LengthAndTransferEncoding,
        ),
        (
            "length and gzip",
            ok("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", ""),
            M::LengthAndTransferEncoding,
        ),
        ("chunked not last", coding("chunked, gzip"), M::ChunkedNotLast),
        ("chunked twice", coding("chunked, chunked"), M::ChunkedNotLast),
        (
            "chunked twice in two lines",
            ok("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", ""),
            M::ChunkedNotLast,
        ),
        ("chunked with parameters", coding("chunked;q=1"), M::TransferEncoding),
        ("coding empty", coding(""), M::TransferEncoding),
        ("coding not a token", coding("chun ked"), M::TransferEncoding),
        (
            "coding in 1.0",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            M::TransferEncodingInHttp10,
        ),
        (
            "coding and length in 1.0",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n".into(),
            M::TransferEncodingInHttp10,
        ),
        ("size not hexadecimal", chunked("x\r\n"), M::ChunkSize),
        ("size empty", chunked("\r\n"), M::ChunkSize),
        ("size signed", chunked("+5\r\n"), M::ChunkSize),
        ("size 0x5", chunked("0x5\r\n"), M::ChunkSize),
        ("size after a blank", chunked(" 5\r\n"), M::ChunkSize),
        ("size over 64 bits", chunked("10000000000000000\r\n"), M::ChunkSizeOverflow),
        ("size line with a bare LF", chunked("5\nhello\r\n0\r\n\r\n"), M::ChunkSize),
        ("size line with a bare CR", chunked("5\rx"), M::ChunkLine),
        ("size padded, then garbage", chunked("5 x\r\n"), M::ChunkLine),
        ("extension with a bare LF", chunked("5;a\nhello"), M::ChunkLine),
        ("data too long", chunked("2\r\nokay\r\n0\r\n\r\n"), M::ChunkEnd),
        ("data ends with a bare LF", chunked("2\r\nok\n0\r\n\r\n"), M::ChunkEnd),
        ("data ends with a bare CR", chunked("2\r\nok\r0\r\n\r\n"), M::ChunkEnd),
        ("bad trailer", chunked("0\r\nbad trailer\r\n\r\n"), M::HeaderName),
        ("folded trailer", chunked("0\r\nA: b\r\n c\r\n\r\n"), M::ObsFold),
        ("bad interim", format!("HTTP/1.1 100 x\r\n: y\r\n\r\n{}", ok("", "")), M::HeaderName),
    ];
    for (name, bytes, fault) in cases {
        assert_eq!(get(bytes).bad(), Some(*fault), "{name}");
        assert!(!fault.is_too_large(), "{name}");
    }
}

#[test]
fn close_delimited() {
    let cases: &[(&str, String, &str)] = &[
        ("no framing", ok("", "all of it"), "all of it"),
        ("no framing, no body", ok("", ""), ""),
        ("a coding without chunked", ok("Transfer-Encoding: gzip\r\n", "abc"), "abc"),
        (
            "1.0 with keep-alive",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc".into(),
            "abc",
        ),
    ];
    for (name, bytes, body) in cases {
        let outcome = get(bytes);
        let Ending::Closed(seen) = outcome.ending else { panic!("{name}: {outcome:?}") };
        assert_eq!((seen.status, seen.keep_alive), (200, false), "{name}");
        assert_eq!(outcome.body, body.as_bytes(), "{name}");
    }
}

#[test]
fn a_response_that_ends_early_is_never_complete() {
    for whole in [
        ok("Content-Length: 5\r\n", "hello"),
        ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nA: b\r\n\r\n"),
        "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        format!("HTTP/1.1 100 x\r\n\r\n{}", ok("Content-Length: 0\r\n", "")),
    ] {
        for end in 1..whole.len() {
            assert_eq!(get(&whole[..end]).ending, Ending::Cut, "{:?}", &whole[..end]);
        }
        get(&whole).done();
    }
    assert_eq!(get("").ending, Ending::Nothing);
}

#[test]
fn head_has_no_body() {
    for headers in [
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: nonsense\r\n",
    ] {
        let seen = head(ok(headers, "")).done();
        assert_eq!((seen.body_bytes, seen.keep_alive), (0, true), "{headers:?}");
    }
    assert!(!head(ok("Connection: close\r\n", "")).done().keep_alive);
}

#[test]
fn too_large() {
    let limits = Limits { head_bytes: 100, headers: 3, interim: 2, chunk_line: 8 };
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
    let limits = |head_bytes| Limits { head_bytes, ..Limits::default() };
    bounded(&bytes, limits(bytes.len())).done();
    assert_eq!(bounded(&bytes, limits(bytes.len() - 1)).bad(), Some(M::HeadTooLarge));
    // A wrong byte within the bound is told before the bound, and after it is not looked at.
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
    let limits = Limits { headers: usize::MAX, ..Limits::default() };
    assert_eq!(bounded(head(MAX_HEADERS + 1), limits).bad(), Some(M::TooManyHeaders));
}

#[test]
fn bytes_after_the_end_are_excess() {
    for rest in ["x", "\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
        let whole = ok("Content-Length: 2\r\n", "ok");
        let mut parser = ResponseParser::default();
        parser.start(false);
        let Feed::Done(response) = parser.feed((whole.clone() + rest).as_bytes()).unwrap() else {
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
fn the_state_can_be_asked() {
    let mut parser = ResponseParser::default();
    assert_eq!(parser.feed(b""), Ok(Feed::More));
    parser.start(false);
    assert!(!parser.started() && !parser.in_body());
    parser.feed(b"").unwrap();
    assert!(!parser.started());
    parser.feed(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    assert!(parser.started() && !parser.in_body());
    parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").unwrap();
    assert!(parser.in_body());
    assert!(matches!(parser.feed(b"ok"), Ok(Feed::Done(_))));
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
