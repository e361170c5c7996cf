//! Counts the requests in what `request` returns.

use httparse::{Request, Status};

/// Most header lines of a request.
const HEADERS_MAX: usize = 256;

/// The number of whole requests that `bytes` consists of.
///
/// # Errors
/// They are not requests in HTTP/1.1: why, and where.
pub(super) fn requests(bytes: &[u8]) -> Result<u64, String> {
    let (mut at, mut count) = (0, 0);
    let wrong = |what: &str, at: usize| {
        let before = &bytes[..at.min(bytes.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len) + 1;
        format!("request() returned no whole HTTP request: {what} at {line}:{column}")
    };
    while at < bytes.len() || count == 0 {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = Request::new(&mut headers);
        match request.parse(&bytes[at..]) {
            Ok(Status::Complete(length)) => at += length,
            Ok(Status::Partial) => return Err(wrong("incomplete request", bytes.len())),
            Err(error) => return Err(wrong(&error.to_string(), at)),
        }
        let value = |name: &str| {
            let mut headers = request.headers.iter();
            let header = headers.find(|header| header.name.eq_ignore_ascii_case(name));
            header.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        if value("transfer-encoding").is_some() {
            let body = bytes[at..].windows(5).position(|end| end == b"0\r\n\r\n");
            at += body.ok_or_else(|| wrong("incomplete request", bytes.len()))? + 5;
        } else if let Some(length) = value("content-length") {
            at += length.trim().parse::<usize>().map_err(|_| wrong("bad Content-Length", at))?;
        }
        if at > bytes.len() {
            return Err(wrong("incomplete request", bytes.len()));
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_requests_are_counted_and_others_placed() {
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let post = "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let chunked = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
        assert_eq!(requests(get.as_bytes()), Ok(1));
        assert_eq!(requests([get, post, chunked, get].concat().as_bytes()), Ok(4));
        for (text, at) in [
            ("", "incomplete request at 1:1"),
            ("GET / HTTP/1.1\r\nHost: h\r\n", "incomplete request at 3:1"),
            (&post[..post.len() - 1], "incomplete request at 4:3"),
            ("nonsense", "incomplete request at 1:9"),
            ("GET / HTTP/9\r\n\r\n", "at 1:1"),
        ] {
            let why = requests(text.as_bytes()).unwrap_err();
            assert!(why.ends_with(at), "{text:?}: {why}");
        }
    }
}
