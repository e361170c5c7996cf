//! One case per rule, fed whole and byte by byte.

use super::super::Malformed as M;
use super::harness::{Ending, get, head, ok};

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
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
        let response = outcome.done();
        assert_eq!((response.status, response.keep_alive), (*status, *keep_alive), "{name}");
        assert_eq!(outcome.body, body.as_bytes(), "{name}");
        assert_eq!(response.body_bytes, body.len() as u64, "{name}");
        assert_eq!(response.consumed, bytes.len(), "{name}");
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
        let Ending::Closed(response) = outcome.ending else { panic!("{name}: {outcome:?}") };
        assert_eq!((response.status, response.keep_alive), (200, false), "{name}");
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
        let response = head(ok(headers, "")).done();
        assert_eq!((response.body_bytes, response.keep_alive), (0, true), "{headers:?}");
    }
    assert!(!head(ok("Connection: close\r\n", "")).done().keep_alive);
}

#[test]
fn trailers_after_chunks_are_shown_if_wanted() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
    let outcome = get(format!("{chunked}Digest: x \r\nB:\r\n\r\n"));
    let shown = [("Digest".to_owned(), b"x".to_vec()), ("B".to_owned(), Vec::new())];
    assert_eq!(outcome.trailers, shown);
    assert!(get(format!("{chunked}\r\n")).trailers.is_empty());
}
