//! Requests and responses in the log, as `httpDebug` asks for.

use std::fmt::Write;

use gake_wire::HttpRequest;
use url::{Position, Url};

use super::facts::ResponseFacts;
use crate::test::{DebugParts, LogLevel};
use crate::user::vu::Vu;

/// Logs a request that is about to be sent.
pub(super) fn request(vu: &Vu, parts: DebugParts, request: &HttpRequest, url: &Url) {
    // Both have the same authority; the path that is sent may have `..` in it.
    let target = request.url.get(url[..Position::BeforePath].len()..).unwrap_or_default();
    let target = target.split('#').next().unwrap_or(target);
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    let mut text = format!("Request:\n{} {target} HTTP/1.1\nHost: {authority}\n", request.method);
    for (name, value) in &request.headers {
        let _ = writeln!(text, "{name}: {value}");
    }
    let body = request.body.as_deref().unwrap_or_default();
    if !body.is_empty() {
        let _ = writeln!(text, "Content-Length: {}", body.len());
    }
    log(vu, parts, text, body);
}

/// Logs a response.
pub(super) fn response(vu: &Vu, parts: DebugParts, response: &ResponseFacts) {
    if response.status == 0 {
        return;
    }
    let ResponseFacts { proto, status, reason, .. } = response;
    let mut text = format!("Response:\n{proto} {status} {reason}\n");
    for (name, value) in response.headers.iter() {
        let _ = writeln!(text, "{name}: {value}");
    }
    log(vu, parts, text, response.body.as_deref().unwrap_or_default());
}

fn log(vu: &Vu, parts: DebugParts, mut text: String, body: &[u8]) {
    text.push('\n');
    if parts == DebugParts::Full {
        text += &String::from_utf8_lossy(body);
    }
    text.push('\n');
    let (iteration, user) = (vu.iteration.get().to_string(), vu.number.to_string());
    let group = vu.group.borrow().to_string();
    let fields = [
        ("group", group.as_str()),
        ("iter", &iteration),
        ("scenario", &vu.scenario.name),
        ("source", "http-debug"),
        ("vu", &user),
    ];
    vu.test.log(LogLevel::Info, &text, &fields);
}
