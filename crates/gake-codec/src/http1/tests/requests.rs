//! Requests as rendered, and refused ones.

use std::sync::Arc;

use expect_test::expect;

use super::super::Version;
use super::super::request::{
    JOINED_BODY, RenderedRequest, RequestError as E, RequestParts, render,
};

const AGENT: &str = concat!("User-Agent: gake/", env!("CARGO_PKG_VERSION"), "\r\n");

fn headers(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect()
}

fn with(method: &str, lines: &[(&str, &str)], body: Option<&[u8]>) -> Result<RenderedRequest, E> {
    render(&RequestParts {
        method,
        target: "/a?b=c",
        authority: "example.org:81",
        headers: &headers(lines),
        opaque: &[],
        body: body.map(Arc::from),
        keep_alive: true,
        version: Version::Http11,
    })
}

fn text(rendered: &RenderedRequest) -> String {
    assert_eq!(
        rendered.len(),
        rendered.first.len() + rendered.rest.as_ref().map_or(0, |r| r.len())
    );
    String::from_utf8(rendered.first.to_vec()).unwrap()
}

#[test]
fn there_is_one_host_at_most() {
    let head = |lines: &[(&str, &str)]| text(&with("GET", lines, None).unwrap());
    let twice = head(&[("Host", "a"), ("host", "b"), ("X", "1"), ("X", "2")]);
    assert_eq!(twice, format!("GET /a?b=c HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n{AGENT}\r\n"));
    let without = head(&[("Host", ""), ("User-Agent", "")]);
    assert_eq!(without, "GET /a?b=c HTTP/1.1\r\n\r\n");
}

#[test]
fn a_get_is_short() {
    let rendered = with("GET", &[], None).unwrap();
    let expected = format!("GET /a?b=c HTTP/1.1\r\nHost: example.org:81\r\n{AGENT}\r\n");
    assert_eq!(text(&rendered), expected);
    assert!(rendered.idempotent && !rendered.is_head && !rendered.closes);
    assert_eq!(rendered.rest, None);
}

#[test]
fn safe_methods_without_a_body_may_be_replayed() {
    let replayable = |method: &str, headers: &[(&str, &str)], body: Option<&[u8]>| {
        with(method, headers, body).unwrap().replayable
    };
    for method in ["GET", "HEAD", "OPTIONS"] {
        assert!(replayable(method, &[], None), "{method}");
        assert!(!replayable(method, &[], Some(b"x")), "{method}");
        assert!(!replayable(method, &[("Transfer-Encoding", "chunked")], None), "{method}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "get"] {
        assert!(!replayable(method, &[], None), "{method}");
    }
}

#[test]
fn order_and_case_of_headers_are_kept() {
    let lines = [("x-B", "1"), ("X-a", ""), ("hOST", "other"), ("x-B", "2"), ("USER-agent", "me")];
    let expected =
        "GET /a?b=c HTTP/1.1\r\nx-B: 1\r\nX-a: \r\nhOST: other\r\nx-B: 2\r\nUSER-agent: me\r\n\r\n";
    assert_eq!(text(&with("GET", &lines, None).unwrap()), expected);
}

#[test]
fn bodies_have_a_length() {
    let length = |method, body| {
        let rendered = with(method, &[], body).unwrap();
        let head = text(&rendered);
        let (_, rest) = head.split_once("Content-Length: ")?;
        Some(rest.replace("\r\n\r\n", "|"))
    };
    assert_eq!(length("POST", Some(b"hello".as_slice())).as_deref(), Some("5|hello"));
    assert_eq!(length("GET", Some(b"hello".as_slice())).as_deref(), Some("5|hello"));
    for method in ["POST", "PUT", "PATCH"] {
        assert_eq!(length(method, None).as_deref(), Some("0|"), "{method}");
        assert_eq!(length(method, Some(b"".as_slice())).as_deref(), Some("0|"), "{method}");
    }
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        assert_eq!(length(method, None), None, "{method}");
    }
    let given = text(&with("POST", &[("content-length", "2")], Some(b"ok")).unwrap());
    assert!(given.contains("content-length: 2") && !given.contains("Content-Length"));
}

#[test]
fn large_bodies_are_shared_and_written_after_the_head() {
    let joined = with("POST", &[], Some(&vec![b'x'; JOINED_BODY])).unwrap();
    assert!(joined.rest.is_none() && joined.first.ends_with(b"x"));
    let body: Arc<[u8]> = vec![b'x'; JOINED_BODY + 1].into();
    let spec = RequestParts {
        method: "PUT",
        target: "/",
        authority: "a",
        headers: &[],
        opaque: &[],
        body: Some(Arc::clone(&body)),
        keep_alive: true,
        version: Version::Http11,
    };
    let apart = render(&spec).unwrap();
    assert!(Arc::ptr_eq(apart.rest.as_ref().unwrap(), &body));
    assert!(apart.first.ends_with(b"\r\n\r\n") && apart.idempotent);
}

#[test]
fn chunked_by_header() {
    let lines = [("Transfer-Encoding", "Chunked")];
    let head = text(&with("POST", &lines, Some(&[b'y'; 17])).unwrap());
    assert!(head.ends_with(&format!("\r\n\r\n11\r\n{}\r\n0\r\n\r\n", "y".repeat(17))), "{head}");
    assert!(!head.contains("Content-Length"));
    assert!(text(&with("POST", &lines, None).unwrap()).ends_with("\r\n\r\n0\r\n\r\n"));
    let large = with("POST", &lines, Some(&vec![b'y'; JOINED_BODY])).unwrap();
    assert!(large.rest.unwrap().ends_with(b"y\r\n0\r\n\r\n"));
}

#[test]
fn without_keep_alive() {
    let mut spec = RequestParts {
        method: "HEAD",
        target: "*",
        authority: "",
        headers: &[],
        opaque: &[],
        body: None,
        keep_alive: false,
        version: Version::Http11,
    };
    let rendered = render(&spec).unwrap();
    assert!(text(&rendered).ends_with("Connection: close\r\n\r\n"));
    assert!(rendered.closes && rendered.is_head);
    let lines = headers(&[("connection", "x"), ("connection", "te, Close")]);
    spec.headers = &lines;
    spec.keep_alive = true;
    assert!(render(&spec).unwrap().closes);
    let lines = headers(&[("Connection", "keep-alive")]);
    spec.headers = &lines;
    spec.keep_alive = false;
    let rendered = render(&spec).unwrap();
    assert!(!rendered.closes && !text(&rendered).contains("close"));
}

#[test]
fn http_1_0_announces_keep_alive() {
    let mut spec = RequestParts {
        method: "GET",
        target: "/",
        authority: "a",
        headers: &[],
        opaque: &[],
        body: None,
        keep_alive: true,
        version: Version::Http10,
    };
    let rendered = render(&spec).unwrap();
    assert!(text(&rendered).starts_with("GET / HTTP/1.0\r\nHost: a\r\n"));
    assert!(text(&rendered).ends_with("Connection: Keep-Alive\r\n\r\n") && !rendered.closes);
    spec.keep_alive = false;
    let rendered = render(&spec).unwrap();
    assert!(!text(&rendered).contains("Connection") && rendered.closes);
}

#[test]
fn invalid_http_is_refused() {
    let spec = |method, target, authority| {
        let spec = RequestParts {
            method,
            target,
            authority,
            headers: &[],
            opaque: &[],
            body: None,
            keep_alive: true,
            version: Version::Http11,
        };
        render(&spec).unwrap_err()
    };
    for method in ["", "GE T", "G\u{e9}T", "GET\r\n", "G:T"] {
        assert_eq!(spec(method, "/", "a"), E::Method(method.to_owned()));
    }
    assert_eq!(spec("CONNECT", "/", "a"), E::Connect);
    for target in ["", "/a\r\nX: y", "/a\tb", "/a#b", "/\0", "/\x7f"] {
        assert_eq!(spec("GET", target, "a"), E::Target(target.to_owned()));
    }
    assert_eq!(spec("GET", "/", "a\r\nb"), E::Authority("a\r\nb".to_owned()));
    for name in ["", "a b", "a\n", "a:", "\u{e9}"] {
        let error = with("GET", &[(name, "x")], None).unwrap_err();
        assert_eq!(error, E::HeaderName(name.to_owned()));
    }
    for value in ["a\rb", "a\nb", "a\0b", "\x7f"] {
        let error = with("GET", &[("A", value)], None).unwrap_err();
        assert_eq!(error, E::HeaderValue("A".to_owned()));
    }
    with("GET", &[("A", "\u{e9}\tx")], None).unwrap();
}

#[test]
fn wrong_framing_is_refused() {
    for given in ["4", "+5", "5, 5", "", "x"] {
        let error = with("POST", &[("Content-Length", given)], Some(b"hello")).unwrap_err();
        assert_eq!(error, E::ContentLength { given: given.to_owned(), actual: 5 });
    }
    let both = [("Content-Length", "5"), ("Transfer-Encoding", "chunked")];
    assert_eq!(with("POST", &both, Some(b"hello")), Err(E::LengthAndTransferEncoding));
    let gzip = [("Transfer-Encoding", "gzip, chunked")];
    assert!(matches!(with("POST", &gzip, None), Err(E::TransferEncoding(_))));
}

#[test]
fn errors_are_sentences() {
    let error = with("POST", &[("Content-Length", "4")], Some(b"hello")).unwrap_err();
    expect![[r#"Content-Length is given as "4", but the body has 5 bytes"#]]
        .assert_eq(&error.to_string());
}
