//! One request and its response, shown whole with their times, secrets masked.

use std::fmt::Write as _;

use gake_core::record::ExchangeEnd;
use gake_core::spec::RunSpec;
use gake_run::{FirstExchange, ResolvedRun, send_first};
use gake_text::foreign;
use gake_text::redact::Redactor;
use gake_text::units;

use crate::{Console, Exit, Failure};

/// Sends the first request of a run, and shows it and its response.
///
/// # Errors
/// When the run has no request of its own, or there is no response.
pub fn debug(
    prepared: &ResolvedRun,
    spec: &RunSpec,
    redactor: &Redactor,
    console: &Console,
) -> Result<Exit, Failure> {
    let shown = send_first(prepared, spec.connection.timeout).ok_or_else(|| {
        Failure::usage("--debug shows a request of a URL, a targets file or a recording, over HTTP")
    })?;
    let shown = shown.map_err(Failure::could_not)?;
    console.result(&text(&shown, redactor))?;
    match shown.exchange.end {
        ExchangeEnd::Response(_) => Ok(Exit::Done),
        ExchangeEnd::Fault(fault) => Err(Failure::could_not(format!("no response: {fault}"))),
        ExchangeEnd::Unfinished => Err(Failure::could_not("no response in time")),
    }
}

/// The request with `>` before each line of its head, the response with `<`, and the times.
fn text(shown: &FirstExchange, redactor: &Redactor) -> String {
    let FirstExchange { request, exchange, response } = shown;
    let mut text = String::new();
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.unwrap_or(request.len());
    let (head, body) = (&request[..end], request.get(end + 4..).unwrap_or_default());
    let head = String::from_utf8_lossy(head);
    let mut kind = String::new();
    for (number, line) in head.split("\r\n").enumerate() {
        let line = match line.split_once(": ") {
            Some((name, value)) if number > 0 => {
                if name.eq_ignore_ascii_case("content-type") {
                    value.clone_into(&mut kind);
                }
                header(name, value, redactor)
            }
            _ => request_line(line, redactor),
        };
        let _ = writeln!(text, "> {}", foreign::line(&line));
    }
    add_body(&mut text, &kind, body, body.len() as u64, redactor);
    if let ExchangeEnd::Response(answer) = exchange.end {
        let _ = writeln!(text, "\n< {}", answer.status);
        kind.clear();
        for (name, value) in &response.headers {
            if name.eq_ignore_ascii_case("content-type") {
                value.clone_into(&mut kind);
            }
            let _ = writeln!(text, "< {}", foreign::line(&header(name, value, redactor)));
        }
        add_body(&mut text, &kind, &response.body, answer.body_bytes, redactor);
    }
    text.push('\n');
    let first = exchange.first_byte.map(|first| first.saturating_sub(exchange.write));
    let total = exchange.done - exchange.write.min(exchange.done);
    let times = [("connect", exchange.connect), ("tls", exchange.tls), ("first byte", first)];
    for (name, time) in times.into_iter().chain([("complete", Some(total))]) {
        if let Some(time) = time {
            let _ = writeln!(text, "{name:<12}{}", units::duration(time as f64));
        }
    }
    text
}

/// A request line; what is secret in its target is masked.
fn request_line(line: &str, redactor: &Redactor) -> String {
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    match words[..] {
        [method, target, version] => format!("{method} {} {version}", &*redactor.target(target)),
        _ => redactor.text(line).into_inner(),
    }
}

/// A header line; what is secret is masked.
fn header(name: &str, value: &str, redactor: &Redactor) -> String {
    let value = redactor.header(name, value.as_bytes());
    format!("{name}: {}", &*value.text())
}

/// A body of `length` bytes, of which `bytes` are known.
fn add_body(text: &mut String, kind: &str, bytes: &[u8], length: u64, redactor: &Redactor) {
    if length == 0 {
        return;
    }
    let body = redactor.body(kind, bytes);
    match std::str::from_utf8(&body) {
        Ok(body) => {
            let _ = writeln!(text, "\n{}", foreign::lines(body.trim_end_matches('\n')));
            if (bytes.len() as u64) < length {
                let _ = writeln!(text, "[{length} bytes in all]");
            }
        }
        Err(_) => {
            let _ = writeln!(text, "\n[{length} bytes that are no text]");
        }
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::{CapturedResponse, Exchange, ResponseSummary};
    use gake_text::redact::SecretNames;

    use super::*;

    #[test]
    fn an_exchange_is_shown_with_masked_secrets() {
        let request =
            b"POST /a?token=s3cret HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer s3cret\r\n\
                        Content-Type: application/json\r\n\r\n{\"password\":\"s3cret\",\"n\":1}";
        let answer = ResponseSummary { status: 200, body_bytes: 4 };
        let exchange = Exchange {
            write: 1_000_000,
            first_byte: Some(3_000_000),
            done: 3_500_000,
            connect: Some(250_000),
            end: ExchangeEnd::Response(answer),
            ..Exchange::unfinished(0)
        };
        let headers = [("Set-Cookie", "sid=s3cret"), ("X-A", "\u{1b}[31m")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let response = CapturedResponse { headers, body: b"hi\n\xff".to_vec() };
        let shown = FirstExchange { request: request.to_vec(), exchange, response };
        let text = text(&shown, &Redactor::new([7; 16], SecretNames::default()));
        assert!(!text.contains("s3cret") && !text.contains('\u{1b}'), "{text}");
        for line in ["> Host: h", "< 200", "[4 bytes that are no text]"] {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
        let begins = |start: &str| text.lines().any(|line| line.starts_with(start));
        assert!(
            begins("> POST /a?token=") && begins("connect ") && begins("first byte "),
            "{text}"
        );
        assert!(begins("complete ") && !begins("tls "), "{text}");
    }
}
