//! The admin service: anyone on this machine may read status, ledger and metrics; changes need the
//! token.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use gake_listen::{Reply, Request, Site};
use serde_json::{Value, json};

use crate::control::{ProxyControl, ShadowState};
use crate::mirror::ledger::Category;

/// The service for a proxy.
pub(crate) struct AdminSite(pub(crate) ProxyControl);

impl Site for AdminSite {
    fn reply(&self, request: &Request<'_>) -> Reply {
        let control = &self.0;
        match (request.method, request.path) {
            ("GET", "/") => text("200 OK", INDEX),
            ("GET", "/status") => json_page(&status(control)),
            ("GET", "/ledger") => json_page(&ledgers(control)),
            ("GET", "/metrics") => metrics(control),
            ("POST", "/percentage" | "/kill" | "/resume") => match is_allowed(control, request) {
                true => change(control, request.path, request.query),
                false => Reply::text(
                    "401 Unauthorized",
                    "WWW-Authenticate: Bearer\r\n",
                    "changes need the header `Authorization: Bearer TOKEN`\n",
                ),
            },
            (_, "/percentage" | "/kill" | "/resume") => wrong_method("POST"),
            (_, "/" | "/status" | "/ledger" | "/metrics") => wrong_method("GET"),
            _ => text("404 Not Found", INDEX),
        }
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

fn is_allowed(control: &ProxyControl, request: &Request<'_>) -> bool {
    let token = control.shared().config.admin_token.as_deref();
    token.is_some_and(|token| request.has_bearer(token))
}

fn change(control: &ProxyControl, path: &str, query: &str) -> Reply {
    let (mut shadow, mut value, mut over) = (None, None, Duration::ZERO);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("shadow", name)) => shadow = Some(name),
            Some(("value", number)) if path == "/percentage" => match number.parse::<f64>() {
                Ok(number) if (0.0..=100.0).contains(&number) => value = Some(number),
                _ => return text("400 Bad Request", "the value must be 0 to 100\n"),
            },
            Some(("over", time)) if path == "/percentage" => {
                match gake_text::duration::parse_duration(time) {
                    Ok(time) => over = time,
                    Err(error) => return text("400 Bad Request", &format!("{error}\n")),
                }
            }
            _ => return text("400 Bad Request", &format!("unknown parameter {pair:?}\n")),
        }
    }
    let changed = match (path, shadow, value) {
        ("/kill", shadow, _) => control.kill(shadow),
        ("/resume", shadow, _) => control.resume(shadow),
        (_, Some(shadow), Some(value)) => control.set_percentage(shadow, value, over),
        _ => return text("400 Bad Request", "write ?shadow=NAME&value=PERCENT\n"),
    };
    match changed {
        Ok(()) => json_page(&status(control)),
        Err(error) => text("404 Not Found", &format!("{error}\n")),
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

fn metrics(control: &ProxyControl) -> Reply {
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
    Reply::new("200 OK", "text/plain; version=0.0.4", "", vec![Arc::from(out.into_bytes())])
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

fn wrong_method(allowed: &str) -> Reply {
    let allow = format!("Allow: {allowed}\r\n");
    Reply::text("405 Method Not Allowed", &allow, format!("use {allowed}\n"))
}

fn json_page(value: &Value) -> Reply {
    let body = Arc::from(format!("{value:#}\n").into_bytes());
    Reply::new("200 OK", "application/json", "", vec![body])
}

fn text(status: &str, content: &str) -> Reply {
    Reply::text(status, "", content)
}
