//! The snapshot as Prometheus text, for `/metrics`.

use std::fmt::Write;

use super::Stats;
use crate::LabConfig;

pub(crate) fn render(stats: &Stats, config: &LabConfig) -> String {
    let mut out = String::with_capacity(2048);
    let routes = stats.routes.iter().map(|(route, n)| (format!("{{route=\"{route}\"}}"), *n));
    family(&mut out, "requests_total", "counter", "Requests whose head was read.", routes);
    let statuses =
        stats.responses.iter().map(|(status, n)| (format!("{{status=\"{status}\"}}"), *n));
    family(&mut out, "responses_total", "counter", "Responses handed over whole.", statuses);

    let c = &stats.connections;
    for (name, kind, help, value) in [
        (
            "control_requests_total",
            "counter",
            "Requests to the lab itself.",
            stats.control_requests,
        ),
        (
            "aborted_total",
            "counter",
            "Clients gone before their response was whole.",
            stats.aborted,
        ),
        ("cut_total", "counter", "Responses aborted on purpose.", stats.cut),
        ("malformed_total", "counter", "Input that was not HTTP.", stats.malformed),
        ("in_flight", "gauge", "Requests read and not yet ended.", stats.in_flight),
        ("queue", "gauge", "Requests that wait for a worker.", stats.waiting),
        ("threads_busy", "gauge", "Workers that hold a request.", stats.threads_busy),
        ("connections_opened_total", "counter", "Connections accepted.", c.opened),
        ("connections_open", "gauge", "Connections open.", c.open),
        ("connections_peak", "gauge", "The most connections open at once.", c.peak),
        ("connections_timed_out_total", "counter", "Closed by the time-out.", c.timed_out),
        ("accept_errors_total", "counter", "Accepts that failed.", c.accept_errors),
        ("bytes_in_total", "counter", "Bytes read.", stats.bytes_in),
        ("bytes_out_total", "counter", "Bytes written.", stats.bytes_out),
    ] {
        family(&mut out, name, kind, help, [(String::new(), value)]);
    }
    for (name, help, bound) in [
        ("threads", "Workers of the pool.", config.threads),
        ("connections_max", "Connections that may be open at once.", config.max_connections),
    ] {
        if let Some(bound) = bound {
            family(&mut out, name, "gauge", help, [(String::new(), bound)]);
        }
    }
    let stalled = [(String::new(), stats.stalled.as_secs_f64())];
    let help = "Seconds for which the whole server was stalled.";
    family(&mut out, "stalled_seconds_total", "counter", help, stalled);
    let s = &stats.service;
    let sums = [("_sum".to_owned(), s.sum_s), ("_count".to_owned(), s.count as f64)];
    let help = "Time for which requests held their worker.";
    family(&mut out, "service_seconds", "summary", help, sums);
    let squares = [(String::new(), s.sum_squares_s2)];
    let help = "Sum of the squares of service_seconds.";
    family(&mut out, "service_seconds_squares_total", "counter", help, squares);
    let elapsed = [(String::new(), stats.elapsed.as_secs_f64())];
    family(&mut out, "uptime_seconds", "gauge", "Seconds since the start.", elapsed);
    out
}

/// One metric: its comment lines, and a line per (suffix, value).
fn family<V: std::fmt::Display>(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    samples: impl IntoIterator<Item = (String, V)>,
) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "# HELP gake_lab_{name} {help}\n# TYPE gake_lab_{name} {kind}");
    for (suffix, value) in samples {
        let _ = writeln!(out, "gake_lab_{name}{suffix} {value}");
    }
}
