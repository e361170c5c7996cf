//! The outcome of an arrival, as Vegeta's result.

use std::sync::Arc;

use gake_core::record::{CapturedResponse, ExchangeEnd, Fault, Outcome};
use gake_report::vegeta::{Headers, Timestamp, VegetaRecord};
use gake_wire::{HttpRequest, PreparedRequests, coding};

use super::targets::{ACCEPT_ENCODING, Requests};
use crate::go_errors;

/// Maximum bytes of a decoded body, against decompression bombs.
const DECODED_MAX: u64 = 64 << 20;

/// Converts outcomes to results.
#[derive(Debug)]
pub struct Records {
    /// The attack's name.
    pub name: String,
    /// The start of the attack, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The requests that were sent.
    pub requests: Arc<Requests>,
    /// The connections' targets.
    pub wires: Vec<Arc<PreparedRequests>>,
    /// The most redirects to follow; `None` treats a redirect as the response.
    pub redirects: Option<u32>,
}

impl Records {
    /// The result of an arrival. Its time starts when it was due, as everywhere in gake; in Vegeta
    /// it starts when a worker takes it, which is later if all are busy.
    pub fn of(&self, outcome: &Outcome) -> VegetaRecord {
        let nanos = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let sent = self.requests.sent(outcome.arrival.number);
        let request = sent.as_ref().map(|sent| &sent.request);
        let due = self.started_unix_ns.saturating_add(outcome.arrival.due);
        let mut record = VegetaRecord {
            attack: self.name.clone(),
            seq: outcome.arrival.number,
            timestamp: Timestamp::local(nanos(due)),
            latency: nanos(outcome.response()),
            ..VegetaRecord::default()
        };
        let kept = outcome.exchange.captured.as_deref();
        match outcome.exchange.end {
            ExchangeEnd::Response(answer) if self.is_refused_redirect(answer.status, kept) => {
                record.error = self.go_error(request, "stopped after 0 redirects");
            }
            ExchangeEnd::Response(answer) => {
                record.code = answer.status;
                record.bytes_in = answer.body_bytes;
                record.bytes_out = request
                    .and_then(|request| Some(request.body.as_ref()?.len() as u64))
                    .unwrap_or(0);
                if !record.is_success() {
                    record.error = status_line(answer.status);
                }
                if let Some(kept) = kept {
                    record.body.clone_from(&kept.body);
                    record.headers = Some(headers(kept));
                    let is_whole = answer.body_bytes == kept.body.len() as u64;
                    if is_whole && asked_for_gzip(request) {
                        decode(&mut record);
                    }
                }
            }
            ExchangeEnd::Fault(fault) => {
                record.error = self.fault(request, fault, outcome);
                if let Some(kept) = kept {
                    record.body.clone_from(&kept.body);
                }
            }
            ExchangeEnd::Unfinished => {
                record.error = self.go_error(request, go_errors::CANCELED);
            }
        }
        if let Some(HttpRequest { method, url, .. }) = sent.map(|sent| sent.request) {
            (record.method, record.url) = (method, url);
        }
        record
    }

    /// Whether it is a redirect, which `-redirects 0` treats as an error.
    fn is_refused_redirect(&self, status: u16, kept: Option<&CapturedResponse>) -> bool {
        let leads = |kept: &CapturedResponse| {
            kept.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("location"))
        };
        self.redirects == Some(0)
            && matches!(status, 301 | 302 | 303 | 307 | 308)
            && kept.is_some_and(leads)
    }

    /// A fault in the words of Go's client.
    fn fault(&self, request: Option<&HttpRequest>, fault: Fault, outcome: &Outcome) -> String {
        let begun = outcome.exchange.captured.as_ref().is_some_and(|kept| !kept.headers.is_empty());
        match fault {
            // While the body is read, Go's error does not name the request.
            Fault::ClosedEarly(_) if begun => "unexpected EOF".to_owned(),
            Fault::ClosedEarly(_) => self.go_error(request, "EOF"),
            Fault::RedirectLimit => {
                let count = self.redirects.unwrap_or(0);
                self.go_error(request, &format!("stopped after {count} redirects"))
            }
            fault => {
                let address = self.address(request);
                // Before a connection is open, Go also names the local address, which is Vegeta's
                // default `-laddr`.
                let ends = if fault.is_before_connection() {
                    format!("0.0.0.0:0->{address}")
                } else {
                    address
                };
                let cause = go_errors::cause(fault, &ends);
                if begun { cause } else { self.go_error(request, &cause) }
            }
        }
    }

    /// `Get "http://...": what happened`.
    fn go_error(&self, request: Option<&HttpRequest>, what: &str) -> String {
        request.map_or_else(
            || what.to_owned(),
            |request| go_errors::of_request(&request.method, &request.url, what),
        )
    }

    /// The address to which a request is sent.
    fn address(&self, request: Option<&HttpRequest>) -> String {
        let location = request.and_then(|request| gake_wire::Location::parse(&request.url).ok());
        let authority = location.as_ref().map(gake_wire::Location::authority);
        let mut origins = self.wires.iter().flat_map(|wire| &wire.network.origins);
        let origin = origins.find(|origin| Some(&origin.name) == authority.as_ref());
        match origin.and_then(|origin| origin.addresses.first()) {
            Some(address) => address.to_string(),
            None => authority.unwrap_or_default(),
        }
    }
}

/// Whether the compression of the response is the client's affair, as in Go: it asked for it, not
/// the target. Its header is the last one.
fn asked_for_gzip(request: Option<&HttpRequest>) -> bool {
    let mut last = request.into_iter().flat_map(|request| request.headers.iter().rev());
    last.find(|(name, _)| !name.eq_ignore_ascii_case("X-Vegeta-Seq"))
        .is_some_and(|(name, value)| [name, value] == ACCEPT_ENCODING)
}

/// Replaces a compressed body by the decoded one, and leaves out the headers about it, as Go does.
fn decode(record: &mut VegetaRecord) {
    let Some(headers) = &mut record.headers else { return };
    let is_gzip = |(name, values): &(String, Vec<String>)| {
        name == "Content-Encoding"
            && values.first().is_some_and(|value| value.eq_ignore_ascii_case("gzip"))
    };
    if record.body.is_empty() || !headers.iter().any(is_gzip) {
        return;
    }
    match coding::decoded(&record.body, "gzip", DECODED_MAX) {
        Ok(body) => {
            headers.retain(|(name, _)| name != "Content-Encoding" && name != "Content-Length");
            record.bytes_in = body.len() as u64;
            record.body = body;
        }
        Err(why) => {
            (record.code, record.headers, record.bytes_in) = (0, None, 0);
            record.error = format!("gzip: {why}");
        }
    }
}

/// Header lines as in Go's map: canonical names, values of a name together, and without headers
/// that the transport uses itself.
fn headers(kept: &CapturedResponse) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in &kept.headers {
        let name = canonical(name);
        if matches!(name.as_str(), "Transfer-Encoding" | "Trailer") {
            continue;
        }
        let value = value.trim().to_owned();
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => headers.push((name, vec![value])),
        }
    }
    headers
}

/// `content-type` as `Content-Type`.
fn canonical(name: &str) -> String {
    let mut upper = true;
    name.chars()
        .map(|c| {
            let cased = if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
            upper = c == '-';
            cased
        })
        .collect()
}

/// `404 Not Found`, with the phrase that the status has in RFC 9110; servers may have others.
fn status_line(status: u16) -> String {
    let phrase = match status {
        100 => "Continue",
        101 => "Switching Protocols",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Requested Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Entity",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        511 => "Network Authentication Required",
        _ => return status.to_string(),
    };
    format!("{status} {phrase}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_body_is_decoded_as_by_go() {
        let header = |name: &str, value: &str| (name.to_owned(), vec![value.to_owned()]);
        let record = |body: &[u8]| VegetaRecord {
            code: 200,
            body: body.to_vec(),
            bytes_in: body.len() as u64,
            headers: Some(vec![header("Content-Encoding", "gzip"), header("X-A", "b")]),
            ..VegetaRecord::default()
        };
        // `printf hello | gzip -n`
        let mut good =
            record(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0");
        decode(&mut good);
        assert_eq!((good.body.as_slice(), good.bytes_in), (&b"hello"[..], 5));
        assert_eq!(good.headers, Some(vec![header("X-A", "b")]));
        let mut bad = record(b"no gzip");
        decode(&mut bad);
        assert_eq!((bad.code, bad.headers.is_none()), (0, true));
        assert!(bad.error.starts_with("gzip: "), "{}", bad.error);
    }

    #[test]
    fn headers_are_those_of_gos_map() {
        let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let kept = CapturedResponse {
            headers: vec![
                line("content-TYPE", "text/plain"),
                line("set-cookie", "a=1"),
                line("Transfer-Encoding", "chunked"),
                line("Set-Cookie", "b=2"),
                line("ETag", " x "),
            ],
            body: Vec::new(),
        };
        let expected: Headers = vec![
            ("Content-Type".to_owned(), vec!["text/plain".to_owned()]),
            ("Set-Cookie".to_owned(), vec!["a=1".to_owned(), "b=2".to_owned()]),
            ("Etag".to_owned(), vec!["x".to_owned()]),
        ];
        assert_eq!(headers(&kept), expected);
    }
}
