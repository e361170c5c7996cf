//! The admin service: anyone on this machine may read status, ledger and metrics; changes need the
//! token.

mod host;
mod serve;

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::control::{ProxyControl, ShadowState};
use crate::mirror::ledger::Category;

pub(crate) use serve::serve;

type AdminResponse = Response<http_body_util::Full<Bytes>>;

fn page<B>(control: &ProxyControl, request: &Request<B>) -> AdminResponse {
    if !host::is_ours(request) {
        return text(
            StatusCode::FORBIDDEN,
            "send exactly one Host header (an address or localhost) and a path as the target\n",
        );
    }
    let get = request.method() == Method::GET;
    match (get, request.uri().path()) {
        (true, "/") => text(StatusCode::OK, INDEX),
        (true, "/status") => json_page(&status(control)),
        (true, "/ledger") => json_page(&ledgers(control)),
        (true, "/metrics") => metrics(control),
        (false, "/percentage" | "/kill" | "/resume") if request.method() == Method::POST => {
            if is_allowed(control, request.headers()) {
                change(control, request.uri().path(), request.uri().query().unwrap_or_default())
            } else {
                let mut page = text(
                    StatusCode::UNAUTHORIZED,
                    "changes need the header `Authorization: Bearer TOKEN`\n",
                );
                let challenge = HeaderValue::from_static("Bearer");
                page.headers_mut().insert(http::header::WWW_AUTHENTICATE, challenge);
                page
            }
        }
        (_, "/percentage" | "/kill" | "/resume") => wrong_method("POST"),
        (false, "/" | "/status" | "/ledger" | "/metrics") => wrong_method("GET"),
        _ => text(StatusCode::NOT_FOUND, INDEX),
    }
}

const INDEX: &str = "\
GET  /status                                   the current state
GET  /ledger                                   the outcomes of all requests, by shadow
GET  /metrics                                  counters for Prometheus
POST /percentage?shadow=NAME&value=10          change a percentage; &over=60s ramps it
POST /kill  or  /kill?shadow=NAME              stop sending copies
POST /resume  or  /resume?shadow=NAME          resume
Changes need the header `Authorization: Bearer TOKEN`.
";

fn is_change<B>(control: &ProxyControl, request: &Request<B>) -> bool {
    request.method() == Method::POST && is_allowed(control, request.headers())
}

fn is_allowed(control: &ProxyControl, headers: &HeaderMap) -> bool {
    let Some(token) = &control.shared().config.admin_token else { return false };
    let shown =
        headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    shown.is_some_and(|shown| is_same(shown.trim_ascii(), token.as_bytes()))
}

/// Compares in constant time.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn change(control: &ProxyControl, path: &str, query: &str) -> AdminResponse {
    let (mut shadow, mut value, mut over) = (None, None, Duration::ZERO);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("shadow", name)) => shadow = Some(name),
            Some(("value", number)) if path == "/percentage" => match number.parse::<f64>() {
                Ok(number) if (0.0..=100.0).contains(&number) => value = Some(number),
                _ => return text(StatusCode::BAD_REQUEST, "the value must be 0 to 100\n"),
            },
            Some(("over", time)) if path == "/percentage" => {
                match gake_text::duration::parse_duration(time) {
                    Ok(time) => over = time,
                    Err(error) => return text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
                }
            }
            _ => return text(StatusCode::BAD_REQUEST, &format!("unknown parameter {pair:?}\n")),
        }
    }
    let changed = match (path, shadow, value) {
        ("/kill", shadow, _) => control.kill(shadow),
        ("/resume", shadow, _) => control.resume(shadow),
        (_, Some(shadow), Some(value)) => control.set_percentage(shadow, value, over),
        _ => return text(StatusCode::BAD_REQUEST, "write ?shadow=NAME&value=PERCENT\n"),
    };
    match changed {
        Ok(()) => json_page(&status(control)),
        Err(error) => text(StatusCode::NOT_FOUND, &format!("{error}\n")),
    }
}

fn status(control: &ProxyControl) -> Value {
    let stats = control.stats();
    let shared = control.shared();
    let hooks = control.hooks();
    let shadow = |shadow: &ShadowState| {
        json!({
            "name": &*shadow.ledger.name,
            "percentage": shadow.percentage,
            "killed": shadow.killed,
            "breaker_open": shadow.breaker_open,
            "waiting": shadow.waiting,
            "bytes": shadow.bytes,
            "in_flight": shadow.ledger.in_flight,
            "ok": shadow.ledger.count(Category::Ok),
            "shed": shadow.ledger.shed(),
        })
    };
    json!({
        "uptime_s": shared.started.elapsed().as_secs(),
        "draining": control.is_draining(),
        "master": {
            "name": &*shared.master.backend.name,
            "url": shared.master.backend.url(),
            "answers": classes(&stats.responses),
            "faults": stats.master_faults,
            "broken_answers": stats.broken_responses,
            "stale_reconnects": stats.stale_reconnects,
        },
        "clients": {
            "connections": stats.connections,
            "open": stats.open,
            "requests": stats.requests,
            "refused": stats.refused,
            "malformed": stats.malformed,
            "timeouts": stats.client_timeouts,
            "upgrades": stats.upgrades,
            "accept_errors": stats.accept_errors,
            "odd_names": stats.odd_names,
        },
        "shadows": control.shadows().iter().map(shadow).collect::<Vec<_>>(),
        "hooks": {
            "panics": hooks.panics,
            "errors": hooks.errors,
            "timeouts": hooks.timeouts,
            "overflows": hooks.overflows,
            "skipped": hooks.skipped,
            "unknown_names": hooks.unknown_names,
        },
        "exchanges_dropped": control.exchanges_dropped(),
    })
}

fn classes(counts: &[u64; 6]) -> Value {
    let named = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    named
        .map(|(class, count)| (format!("{class}xx"), json!(count)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn ledgers(control: &ProxyControl) -> Value {
    let ledger = |shadow: ShadowState| {
        let ledger = shadow.ledger;
        let mut table = serde_json::Map::new();
        table.insert("name".to_owned(), json!(&*ledger.name));
        table.insert("received".to_owned(), json!(ledger.received));
        for category in Category::ALL {
            table.insert(category.name().to_owned(), json!(ledger.count(category)));
        }
        table.insert("in_flight".to_owned(), json!(ledger.in_flight));
        table.insert("balance".to_owned(), json!(ledger.balance()));
        table.insert("answers".to_owned(), classes(&ledger.classes));
        table.insert("bytes_in".to_owned(), json!(ledger.bytes_in));
        Value::Object(table)
    };
    control.shadows().into_iter().map(ledger).collect()
}

fn metrics(control: &ProxyControl) -> AdminResponse {
    let stats = control.stats();
    let mut out = String::new();
    let dropped = control.exchanges_dropped();
    for (name, help, value) in [
        ("requests_total", "Requests received.", stats.requests),
        ("connections_total", "Clients' connections accepted.", stats.connections),
        ("refused_total", "Requests refused.", stats.refused),
        ("malformed_total", "Connections closed for input that is not HTTP.", stats.malformed),
        ("client_timeouts_total", "Client timeouts.", stats.client_timeouts),
        ("master_faults_total", "Requests without a response.", stats.master_faults),
        ("broken_answers_total", "Responses that ended early.", stats.broken_responses),
        ("stale_reconnects_total", "Idle connections found closed.", stats.stale_reconnects),
        ("upgrades_total", "Requests that switched protocols.", stats.upgrades),
        ("accept_errors_total", "Failed accepts.", stats.accept_errors),
        ("odd_names_total", "Header names dropped for ambiguous characters.", stats.odd_names),
        ("exchanges_dropped_total", "Exchanges dropped by full queues.", dropped),
    ] {
        metric(&mut out, name, "counter", help, [(String::new(), value as f64)]);
    }
    let open = [(String::new(), stats.open as f64)];
    metric(&mut out, "open_connections", "gauge", "Clients' connections.", open);
    let responses = stats.responses.iter().enumerate();
    metric(
        &mut out,
        "master_answers_total",
        "counter",
        "Responses of the master.",
        responses.map(|(class, count)| (format!("{{class=\"{class}xx\"}}"), *count as f64)),
    );
    let hooks = control.hooks();
    let failures = [
        ("panic", hooks.panics),
        ("error", hooks.errors),
        ("timeout", hooks.timeouts),
        ("overflow", hooks.overflows),
        ("skipped", hooks.skipped),
        ("unknown_name", hooks.unknown_names),
    ];
    metric(
        &mut out,
        "hook_failures_total",
        "counter",
        "Failed hook calls.",
        failures.map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), count as f64)),
    );
    shadow_metrics(&control.shadows(), &mut out);
    let mut page = text(StatusCode::OK, &out);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    page.headers_mut().insert(CONTENT_TYPE, kind);
    page
}

fn shadow_metrics(shadows: &[ShadowState], out: &mut String) {
    let label = |shadow: &ShadowState| format!("{{shadow=\"{}\"}}", shadow.ledger.name);
    metric(
        out,
        "shadow_received_total",
        "counter",
        "Requests received, by shadow.",
        shadows.iter().map(|shadow| (label(shadow), shadow.ledger.received as f64)),
    );
    let outcomes = shadows.iter().flat_map(|shadow| {
        Category::ALL.into_iter().map(|category| {
            let (name, outcome) = (&shadow.ledger.name, category.name());
            let labels = format!("{{shadow=\"{name}\",outcome=\"{outcome}\"}}");
            (labels, shadow.ledger.count(category) as f64)
        })
    });
    metric(out, "shadow_requests_total", "counter", "Outcomes, by shadow.", outcomes);
    for (name, help, value) in [
        (
            "shadow_in_flight",
            "Copies queued or running.",
            (|s| s.ledger.in_flight as f64) as fn(&ShadowState) -> f64,
        ),
        ("shadow_waiting", "Copies queued.", |s| s.waiting as f64),
        ("shadow_bytes", "Bytes of bodies of queued and running copies.", |s| s.bytes as f64),
        ("shadow_percentage", "The current percentage.", |s| s.percentage),
        ("shadow_killed", "Whether the kill switch is on.", |s| f64::from(u8::from(s.killed))),
        ("shadow_breaker_open", "Whether the breaker is open.", |s| {
            f64::from(u8::from(s.breaker_open))
        }),
    ] {
        metric(out, name, "gauge", help, shadows.iter().map(|s| (label(s), value(s))));
    }
}

fn metric(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    values: impl IntoIterator<Item = (String, f64)>,
) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "# HELP gake_shadow_proxy_{name} {help}\n# TYPE gake_shadow_proxy_{name} {kind}"
    );
    for (labels, value) in values {
        let _ = writeln!(out, "gake_shadow_proxy_{name}{labels} {value}");
    }
}

fn wrong_method(allowed: &'static str) -> AdminResponse {
    let mut page = text(StatusCode::METHOD_NOT_ALLOWED, &format!("use {allowed}\n"));
    page.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    page
}

fn json_page(value: &Value) -> AdminResponse {
    let mut page = text(StatusCode::OK, &format!("{value:#}\n"));
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    page
}

fn text(status: StatusCode, content: &str) -> AdminResponse {
    let mut page = Response::new(http_body_util::Full::new(Bytes::from(content.to_owned())));
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    page
}
