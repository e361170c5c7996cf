//! The outcome of an arrival, as Vegeta's result.

use std::sync::Arc;

use gake_core::record::{CapturedResponse, ExchangeEnd, Fault, Outcome};
use gake_report::vegeta::{Headers, Timestamp, VegetaRecord};
use gake_wire::{HttpRequest, PreparedRequests};

use super::targets::Requests;
use crate::go_errors;

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
