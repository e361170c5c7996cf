//! The report of a comparison as text.

use std::fmt::Write;

use gake_text::foreign;
use gake_text::units::{count, duration, percent, plural};

use super::judge::{
    EndpointReport, FieldDifference, FieldVerdict, LatencyReport, Pace, ShadowReport,
};

/// Differences and endpoints in a list; the rest is counted.
const SHOWN_MAX: usize = 25;

/// Renders a report as text.
#[must_use]
pub fn text(report: &ShadowReport) -> String {
    let mut out = String::new();
    head(report, &mut out);
    for (verdict, title, explained) in [
        (
            FieldVerdict::Real,
            "Real differences",
            "the shadow differs from the master more often than two masters do",
        ),
        (
            FieldVerdict::Untested,
            "Differences",
            "not tested against noise: no second instance of the master",
        ),
        (
            FieldVerdict::Unproven,
            "Unproven",
            "two masters never differ here, but there are too few to exclude chance",
        ),
        (FieldVerdict::Noise, "Noise", "two masters differ as well"),
    ] {
        let all: Vec<_> = report.of(verdict).collect();
        if all.is_empty() {
            continue;
        }
        line(&mut out, &format!("\n{title} ({}): {explained}", all.len()));
        all.iter().take(SHOWN_MAX).for_each(|found| difference(found, &mut out));
        more(all.len(), &mut out);
    }
    latencies(report, &mut out);
    statuses(report, &mut out);
    if !report.suggestions.is_empty() {
        line(&mut out, "\nRules that ignore noise and likely noise, for --rules FILE:\n");
        line(&mut out, &report.suggestions);
    }
    out
}

fn line(out: &mut String, text: &str) {
    // Names come from traffic: escape what a terminal would interpret.
    out.push_str(&foreign::lines(text));
    out.push('\n');
}

fn more(all: usize, out: &mut String) {
    if all > SHOWN_MAX {
        line(out, &format!("  ... and {} more (--format json has all)", all - SHOWN_MAX));
    }
}

fn head(report: &ShadowReport, out: &mut String) {
    let secondary = match &report.secondary {
        Some(name) => {
            format!(", {} of them also with {}", count(report.paired), foreign::line(name))
        }
        None => String::new(),
    };
    let (master, shadow) = (foreign::line(&report.master), foreign::line(&report.shadow));
    line(
        out,
        &format!(
            "{shadow} against {master}: {} to {} compared{secondary}",
            plural(report.exchanges, "request"),
            plural(report.endpoints.len() as u64, "endpoint")
        ),
    );
    for (number, what) in [
        (
            report.skipped,
            "requests were not compared: not sent to the shadow, or the client disconnected",
        ),
        (report.ignored, "differences are ignored by rules"),
        (report.fields_lost, "differences in fields beyond the limit are not judged"),
        (
            report.endpoints.iter().map(|endpoint| endpoint.bodies_cut).sum(),
            "response bodies were too long to be compared",
        ),
    ] {
        if number > 0 {
            line(out, &format!("  {} {what}", count(number)));
        }
    }
    let real =
        (report.of(FieldVerdict::Real).count() + report.of(FieldVerdict::Untested).count()) as u64;
    let slower = report.with_pace(Pace::Slower).count() as u64;
    let verdict = match (real, slower) {
        _ if report.exchanges == 0 => "nothing was compared".to_owned(),
        (0, 0) => "no difference found".to_owned(),
        (fields, 0) => plural(fields, "difference"),
        (0, slower) => format!("{} slower", plural(slower, "endpoint")),
        (fields, slower) => {
            format!("{}, {} slower", plural(fields, "difference"), plural(slower, "endpoint"))
        }
    };
    let within = if real + slower > 0 && !report.differs { ", within the tolerance" } else { "" };
    line(out, &format!("{verdict}{within}"));
}

fn difference(found: &FieldDifference, out: &mut String) {
    let mut facts = format!("{} of {}", count(found.shadow), count(found.exchanges));
    if found.paired > 0 {
        // Writing to a String cannot fail.
        let (own, paired) = (count(found.secondary), count(found.paired));
        let _ = write!(facts, ", two masters {own} of {paired}");
    }
    if let Some(q) = found.q.filter(|_| found.verdict == FieldVerdict::Real) {
        let _ = write!(facts, ", false discovery rate {}", small(q));
    }
    if let Some(like) = found.looks_like.filter(|_| found.verdict == FieldVerdict::Untested) {
        let _ = write!(facts, ", looks like {like}");
    }
    let share = percent(found.shadow as f64 / found.exchanges.max(1) as f64);
    let (endpoint, path) = (foreign::line(&found.endpoint), foreign::line(&found.path));
    line(out, &format!("  {endpoint}  {path} {}  {share} ({facts})", found.kind));
    if let Some(example) = found.example.as_ref().filter(|_| found.verdict != FieldVerdict::Noise) {
        line(out, &format!("      expected {}, got {}", example.expected, example.actual));
        line(out, &format!("      {}", example.request));
    }
}

fn latencies(report: &ShadowReport, out: &mut String) {
    if report.endpoints.is_empty() {
        return;
    }
    let other = report.secondary.as_ref().filter(|_| report.paired > 0);
    let other = foreign::line(other.unwrap_or(&report.master));
    let against = format!("{} / {other}", foreign::line(&report.shadow));
    line(out, "\nTime to the response's head");
    let shown: Vec<_> = report.endpoints.iter().take(SHOWN_MAX).collect();
    let names: Vec<_> = shown.iter().map(|endpoint| foreign::line(&endpoint.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
    line(
        out,
        &format!(
            "  {:width$} {:>9}  {:>20}  {:>20}  {against} (95 %)",
            "endpoint",
            "requests",
            format!("{} p50 p99", cut(&report.master)),
            format!("{} p50 p99", cut(&report.shadow)),
        ),
    );
    for (EndpointReport { exchanges, latency, .. }, name) in shown.into_iter().zip(names) {
        let of = |p50, p99| format!("{} {:>9}", duration(p50), duration(p99));
        let text = format!(
            "  {name:width$} {exchanges:>9}  {:>20}  {:>20}  {}",
            of(latency.master_p50, latency.master_p99),
            of(latency.shadow_p50, latency.shadow_p99),
            ratio(latency)
        );
        line(out, text.trim_end());
    }
    more(report.endpoints.len(), out);
    if report.with_pace(Pace::Untested).next().is_some() {
        line(
            out,
            "  Not judged: only the master is on the clients' path; --noise adds a second instance \
             that gets requests as the shadow does",
        );
    }
}

fn ratio(latency: &LatencyReport) -> String {
    let Some(median) = latency.ratio else { return String::new() };
    let verdict = match latency.pace {
        Pace::Slower => "  slower",
        Pace::Faster => "  faster",
        Pace::Alike => "",
        Pace::TooFew => "  too few to judge",
        Pace::Untested => "  not judged",
    };
    format!("{:.2} ({:.2} to {:.2}){verdict}", median.middle, median.low, median.high)
}

fn statuses(report: &ShadowReport, out: &mut String) {
    if report.statuses.iter().all(|(master, shadow, _)| master == shadow) {
        return;
    }
    let (master, shadow) = (foreign::line(&report.master), foreign::line(&report.shadow));
    line(out, &format!("\nStatus: {master} → {shadow}"));
    for (master, shadow, number) in &report.statuses {
        let (master, shadow) = (foreign::line(master), foreign::line(shadow));
        line(out, &format!("  {master:>5} → {shadow:<12} {:>10}", count(*number)));
    }
}

fn cut(name: &str) -> String {
    foreign::line(name).chars().take(12).collect()
}

fn small(q: f64) -> String {
    if q < 0.001 { "< 0.001".to_owned() } else { format!("{q:.3}") }
}
