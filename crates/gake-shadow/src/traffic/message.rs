//! Reads and writes requests as raw HTTP/1.1.

use super::{HEADERS_MAX, Record};

/// The announced length of a raw request: head and `Content-Length`. `None` if the head is
/// incomplete, or has no length.
pub(super) fn announced(raw: &[u8]) -> Option<usize> {
    let (record, body_at) = head(raw)?;
    let length: usize = record.header("content-length")?.trim().parse().ok()?;
    body_at.checked_add(length)
}

/// Parses a raw request; a chunked body is decoded.
pub(super) fn read(raw: &[u8]) -> Option<Record> {
    let (mut record, body_at) = head(raw)?;
    let body = &raw[body_at..];
    let coding = record.header("transfer-encoding").map(str::to_ascii_lowercase);
    if coding.is_some_and(|coding| coding.contains("chunked")) {
        record.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("transfer-encoding"));
        let whole = decode_chunks(body);
        record.truncated = whole.is_none();
        record.body = whole.unwrap_or_else(|| body.to_vec());
    } else {
        let announced =
            record.header("content-length").and_then(|length| length.trim().parse().ok());
        record.truncated = announced.is_some_and(|length: usize| length > body.len());
        record.body = body[..announced.unwrap_or(body.len()).min(body.len())].to_vec();
    }
    Some(record)
}

fn head(raw: &[u8]) -> Option<(Record, usize)> {
    let mut headers = vec![httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let body_at = match request.parse(raw).ok()? {
        httparse::Status::Complete(body_at) => body_at,
        httparse::Status::Partial => return None,
    };
    let lines = request.headers.iter();
    let record = Record {
        method: request.method?.to_owned(),
        target: request.path?.to_owned(),
        headers: lines.map(|line| (line.name.to_owned(), line.value.to_vec())).collect(),
        ..Record::default()
    };
    Some((record, body_at))
}

/// The content of a chunked body (RFC 9112, section 7.1); `None` if it is truncated or malformed.
fn decode_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let httparse::Status::Complete((start, length)) = httparse::parse_chunk_size(rest).ok()?
        else {
            return None;
        };
        if length == 0 {
            return Some(whole);
        }
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        whole.extend_from_slice(rest.get(start..end)?);
        rest = rest.get(end..)?.strip_prefix(b"\r\n")?;
    }
}

pub(super) fn write(record: &Record, out: &mut Vec<u8>) {
    let mut line = |words: &[&[u8]]| {
        words.iter().for_each(|word| out.extend_from_slice(word));
        out.extend_from_slice(b"\r\n");
    };
    line(&[record.method.as_bytes(), b" ", record.target.as_bytes(), b" HTTP/1.1"]);
    for (name, value) in &record.headers {
        let framing = ["content-length", "transfer-encoding"];
        if !framing.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            line(&[name.as_bytes(), b": ", value]);
        }
    }
    let length = record.body.len().to_string();
    if !record.body.is_empty() || record.header("content-length").is_some() {
        line(&[b"Content-Length: ", length.as_bytes()]);
    }
    line(&[]);
    out.extend_from_slice(&record.body);
}
