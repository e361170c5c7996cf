//! The result as text and as JSON.

use std::fmt::Write as _;

use gake_text::units::{count, duration, plural};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use super::Findings;
use super::check::{Check, Group, Status};
use super::demand::Demand;
use super::limits::round;

/// The width of the column of names.
const NAME: usize = 23;

/// Where names begin.
const MARGIN: usize = 8;

/// Where lines break.
const WIDTH: usize = 100;

/// As text: the conclusion first, then the evidence.
pub fn text(findings: &Findings, colour: bool) -> String {
    let mut out = headline(findings);
    out.push('\n');
    for group in &findings.groups {
        let _ = writeln!(out, "\n{}", paint(group.name, Style::new().bold(), colour));
        for check in &group.checks {
            line(&mut out, check, colour);
        }
    }
    let _ = writeln!(out, "\n{}", tally(&findings.groups));
    out
}

/// What this machine can do, in one sentence.
fn headline(findings: &Findings) -> String {
    let facts = &findings.facts;
    let mut parts = Vec::new();
    if let Some(Ok(measured)) = &findings.calibration {
        let requests = count(round(measured.per_thread() as u64));
        let cores = plural(facts.cores, "core");
        parts.push(format!("about {requests} requests/s a worker thread ({cores})"));
        parts.push(format!("latencies from {} on", duration(measured.floor_p50 as f64)));
    }
    if let Some(most) = facts.ports_per_source() {
        parts.push(format!("{} connections from one address to one target", count(most)));
    }
    if parts.is_empty() {
        return "No facts about this machine could be read.".to_owned();
    }
    wrap(&format!("This machine: {}.", parts.join("; ")), "")
}

fn line(out: &mut String, check: &Check, colour: bool) {
    let style = match check.status {
        Status::Good => Style::new().green(),
        Status::Note => Style::new().yellow(),
        Status::Bad => Style::new().red().bold(),
    };
    let status = paint(&format!("{:<4}", check.status.name()), style, colour);
    let value = wrap(&format!("{:MARGIN$}{:<NAME$}{}", "", check.name, check.value), &hang(NAME));
    let _ = writeln!(out, "  {status}  {}", value.trim_start());
    if let Some(advice) = &check.advice {
        let arrow = paint("→", style, colour);
        let advice = wrap(&format!("{:MARGIN$}  {advice}", ""), &hang(2));
        let _ = writeln!(out, "{:MARGIN$}{arrow} {}", "", advice.trim_start());
    }
}

/// The indent of what follows a line, `more` beyond the margin.
fn hang(more: usize) -> String {
    " ".repeat(MARGIN + more)
}

/// Breaks a line between words at [`WIDTH`]; what follows begins with `indent`. The first line
/// keeps its own spaces.
fn wrap(text: &str, indent: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for word in text.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column + width > WIDTH && width > 0 {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(indent);
            column = indent.len();
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out
}

fn paint(text: &str, style: Style, colour: bool) -> String {
    if colour { text.style(style).to_string() } else { text.to_owned() }
}

fn tally(groups: &[Group]) -> String {
    let of = |status| {
        let checks = groups.iter().flat_map(|group| &group.checks);
        checks.filter(|check| check.status == status).count()
    };
    format!("{} good, {} to note, {} bad", of(Status::Good), of(Status::Note), of(Status::Bad))
}

/// As JSON: the schema `gake.doctor/1`.
pub fn json(findings: &Findings) -> Value {
    let checks = findings.groups.iter().flat_map(|group| {
        group.checks.iter().map(|check| {
            json!({
                "group": group.name,
                "name": check.name,
                "value": check.value,
                "status": check.status.name(),
                "advice": check.advice,
            })
        })
    });
    json!({
        "schema": "gake.doctor/1",
        "checks": checks.collect::<Vec<_>>(),
        "limits": limits(findings),
        "timer_lateness_ns": findings.lateness.as_ref().ok().map(|late| json!({
            "p50": late.p50, "p99": late.p99, "max": late.max,
        })),
        "loopback": findings.calibration.as_ref().and_then(|c| c.as_ref().ok()).map(|c| json!({
            "requests_per_s_thread": c.per_thread(),
            "requests_per_s_answered": c.completed,
            "cpu_per_request_ns": c.cpu_per_request,
            "generator_share": c.busiest,
            "generator_wait_share": c.waited,
            "latency_ns": { "p50": c.floor_p50, "p99": c.floor_p99 },
            "pinned": c.pinned,
        })),
        "connections": findings.demand.as_ref().map(connections),
    })
}

fn limits(findings: &Findings) -> Value {
    let facts = &findings.facts;
    // No limit is null, as in JSON there is no number for it.
    let bounded = |n: u64| (n != u64::MAX).then_some(n);
    json!({
        "descriptors": {
            "soft": bounded(facts.descriptors.0), "hard": bounded(facts.descriptors.1),
        },
        "files": facts.files.map(|(open, most)| json!({ "open": open, "max": most })),
        "epoll_watches": facts.epoll_watches,
        "ports": facts.ports.map(|(first, last)| json!({ "first": first, "last": last })),
        "connections_per_source": facts.ports_per_source(),
        "addresses": facts.addresses,
        "somaxconn": facts.somaxconn,
        "syn_backlog": facts.syn_backlog,
        "tw_reuse": facts.tw_reuse,
        "tcp_mem_pages": facts.tcp_mem,
        "conntrack": facts.conntrack.map(|(now, most)| json!({ "count": now, "max": most })),
        "memory_bytes": facts.memory_free(),
        "cores": facts.cores,
        "governor": facts.governor,
        "clock": facts.clock,
        "load": facts.load,
        "core_wait_share": findings.waited,
    })
}

fn connections(demand: &Demand) -> Value {
    json!({
        "asked": demand.connections,
        "shards": demand.shards,
        "server_shards": demand.server_shards,
        "sources": demand.sources,
        "memory_bytes": {
            "remote": demand.remote_bytes,
            "remote_tls": demand.remote_tls_bytes,
            "remote_idle": demand.remote_idle_bytes,
            "local": demand.local_bytes,
        },
        "local_files": demand.local_files,
        "opening_s": demand.opening.as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::calibrate::Calibration;
    use crate::cmd::doctor::facts::Facts;
    use crate::cmd::doctor::timing::Lateness;

    fn findings() -> Findings {
        Findings {
            facts: Facts {
                descriptors: (1_024, u64::MAX),
                ports: Some((32_768, 60_999)),
                cores: 2,
                ..Facts::default()
            },
            waited: Some(0.0),
            lateness: Ok(Lateness { p50: 20_000, p99: 80_000, max: 300_000 }),
            calibration: Some(Ok(Calibration {
                completed: 61_000.0,
                cpu_per_request: 12_500,
                busiest: 0.8,
                waited: 0.0,
                floor_p50: 45_000,
                floor_p99: 70_000,
                pinned: true,
            })),
            demand: None,
            groups: vec![Group {
                name: "files",
                checks: vec![
                    Check::good("one", "1"),
                    Check::new("two", Status::Bad, "2").advise("do this"),
                ],
            }],
        }
    }

    #[test]
    fn the_result_comes_first() {
        assert_eq!(
            text(&findings(), false),
            "This machine: about 80,000 requests/s a worker thread (2 cores); latencies from \
             45.0 µs on; 12,704\n\
             connections from one address to one target.\n\
             \n\
             files\n\
             \x20 good  one                    1\n\
             \x20 bad   two                    2\n\
             \x20       → do this\n\
             \n\
             1 good, 0 to note, 1 bad\n"
        );
        assert!(text(&findings(), true).contains("\u{1b}["));
    }

    #[test]
    fn long_lines_break_between_words() {
        let words = "word ".repeat(30);
        let lines = wrap(words.trim_end(), "  ");
        assert!(lines.lines().all(|line| line.len() <= WIDTH && !line.ends_with(' ')), "{lines}");
        assert_eq!(lines.lines().nth(1).map(|line| line.starts_with("  word")), Some(true));
        assert_eq!(wrap("  a   b", ""), "  a   b");
    }

    #[test]
    fn programs_get_numbers() {
        let json = json(&findings());
        assert_eq!(json["schema"], "gake.doctor/1");
        assert_eq!(json["checks"][1]["advice"], "do this");
        assert_eq!(json["limits"]["descriptors"]["hard"], Value::Null);
        assert_eq!(json["loopback"]["cpu_per_request_ns"], 12_500);
        assert_eq!(json["connections"], Value::Null);
    }
}
