//! Logs requests and responses (`httpDebug`).

use std::fmt::Write;

use gake_js::crypto::uuid;
use gake_wire::HttpRequest;
use url::{Position, Url};

use super::request_headers::canonical;
use super::response_facts::ResponseFacts;
use crate::test::{HttpDebug, LogLevel};
use crate::user::vu::Vu;

const FRAMING: [&str; 2] = ["Content-Length", "Transfer-Encoding"];

/// A random UUID that connects a request with its response.
pub(super) fn request_id() -> String {
    let mut bytes = vec![0; 16];
    // Without randomness the ids are equal.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    uuid(bytes)
}

pub(super) fn request(vu: &Vu, what: HttpDebug, request: &HttpRequest, url: &Url, id: &str) {
    // The path that is sent may contain `..`.
    let target = request.url.get(url[..Position::BeforePath].len()..).unwrap_or_default();
    let target = target.split('#').next().unwrap_or(target);
    let mut text = format!("Request:\n{} {target} HTTP/1.1\n", request.method);
    for (name, value) in &request.headers {
        if !value.is_empty() {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    // Go always writes this line.
    if !request.headers.iter().any(|(name, _)| name == "Accept-Encoding") {
        text += "Accept-Encoding: gzip\n";
    }
    let body = request.body.as_deref().unwrap_or_default();
    log(vu, what, text, body, id);
}

pub(super) fn response(vu: &Vu, what: HttpDebug, response: &ResponseFacts, id: &str) {
    if response.status == 0 {
        return;
    }
    let ResponseFacts { proto, status, reason, .. } = response;
    let mut text = format!("Response:\n{proto} {status} {reason}\n");
    let mut headers: Vec<(String, &str)> =
        response.headers.iter().map(|(name, value)| (canonical(name), value)).collect();
    // Framing headers come first.
    headers.sort_by_key(|(name, _)| (!FRAMING.contains(&name.as_str()), name.clone()));
    for (name, value) in headers {
        let _ = writeln!(text, "{name}: {value}");
    }
    log(vu, what, text, response.body.as_deref().unwrap_or_default(), id);
}

fn log(vu: &Vu, what: HttpDebug, mut text: String, body: &[u8], id: &str) {
    text.push('\n');
    if what == HttpDebug::Full {
        text += &String::from_utf8_lossy(body);
    }
    text.push('\n');
    let (iteration, user) = (vu.iteration.get().to_string(), vu.number.to_string());
    let group = vu.group.borrow().to_string();
    let fields = [
        ("group", group.as_str()),
        ("iter", &iteration),
        ("request_id", id),
        ("scenario", &vu.scenario.name),
        ("source", "http-debug"),
        ("vu", &user),
    ];
    vu.test.log(LogLevel::Info, &text, &fields);
}
