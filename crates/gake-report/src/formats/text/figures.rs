//! Counts, rates, latencies, status codes, labels.

use gake_core::record::{Histogram, Run};
use gake_judge::stats::{RunRates, per_second, share};
use gake_judge::trusted;
use gake_text::units;

use super::super::all_open;
use super::super::latencies::{self, COLUMNS};
use super::page::{INDENT, Paint, TextPage, fit};
use super::scenarios;

const LABELS_MAX: usize = 20;

/// The number of connections from which the time to open them is shown.
const MANY: u64 = 1_000;

/// The number of connections from which the memory per connection is meaningful.
const VERY_MANY: u64 = 10_000;

/// Marks a percentile with too few samples behind it.
const UNTRUSTED: &str = "~";

/// Requests, rates, transfer, connections, the generator.
pub(super) fn counts(page: &mut TextPage, run: &Run) {
    page.gap();
    scenarios::iterations(page, run);
    let counts = &run.tally.counts;
    let [due, sent, ok, failed, unfinished, dropped] =
        [counts.due(), counts.sent, counts.ok, counts.failed, counts.unfinished, counts.dropped]
            .map(units::count);
    let failed_text = bad(page, counts.failed, &format!("{failed} failed"));
    let unfinished_text = bad(page, counts.unfinished, &format!("{unfinished} unfinished"));
    let dropped_text = bad(page, counts.dropped, &format!("{dropped} dropped"));
    let plus = page.plus();
    let unsent = match counts.unsent {
        0 => String::new(),
        n => format!("{plus}{}", bad(page, n, &format!("{} unsent", units::count(n)))),
    };
    page.headed("requests", &format!("{due} due = {sent} sent{plus}{dropped_text}{unsent}"));
    let parts = [format!("{ok} ok"), failed_text, unfinished_text].join(plus);
    page.headed("", &format!("{sent} sent = {parts}"));
    let rates = RunRates::of(run);
    let asked = rates.asked.map(|asked| format!("{} asked   ", units::rate(asked)));
    let rest = format!(
        "{}{} sent   {} completed   {} ok",
        asked.unwrap_or_default(),
        units::rate(rates.sent),
        units::rate(rates.completed),
        units::rate(rates.goodput)
    );
    page.headed("rate", &rest);
    let flow = |n: u64| {
        let rate = units::bytes(per_second(n as f64, run.completing));
        format!("{} ({rate}/s)", units::bytes(n as f64))
    };
    let transfer = format!("{} in   {} out", flow(counts.bytes_in), flow(counts.bytes_out));
    page.headed("transfer", &transfer);
    page.headed("connections", &connections(page, run));
    page.headed("generator", &generator(run));
}

/// A text that is red unless the count is 0.
fn bad(page: &TextPage, count: u64, text: &str) -> String {
    page.paint(if count == 0 { Paint::Plain } else { Paint::Bad }, text)
}

fn connections(page: &TextPage, run: &Run) -> String {
    let counts = &run.tally.counts;
    let opened = units::count(counts.opened);
    let mut text = format!("{opened} opened   {} open at most", units::count(run.peak_connections));
    if let Some(after) = all_open(run).filter(|_| run.peak_connections >= MANY) {
        text.push_str(&format!("   all open after {}", units::duration(after as f64)));
    }
    if run.peak_connections >= VERY_MANY && run.generator.rss_bytes > 0 {
        let each = run.generator.rss_bytes as f64 / run.peak_connections as f64;
        text.push_str(&format!("   {} of memory each", units::bytes(each)));
    }
    if counts.streams > 0 {
        text.push_str(&format!("   {} streams", units::count(counts.streams)));
    }
    for (count, one, several) in [
        (counts.stale_reconnects, "stale, reopened", "stale, reopened"),
        (counts.retransmits, "segment retransmitted", "segments retransmitted"),
        (counts.excess, "with unsolicited bytes", "with unsolicited bytes"),
        (counts.idle_failed, "idle one not opened", "idle ones not opened"),
        (counts.idle_lost, "idle one lost", "idle ones lost"),
        (counts.redirects, "redirect followed", "redirects followed"),
        (counts.unhandled, "sent again, unprocessed", "sent again, unprocessed"),
        (counts.http3_fallbacks, "offer of HTTP/3 unusable", "offers of HTTP/3 unusable"),
        (counts.quic_lost, "packet lost", "packets lost"),
        (counts.stream_resets, "stream reset", "streams reset"),
        (counts.goaways, "GOAWAY", "GOAWAYs"),
        (counts.sessions_ended, "session ended by the server", "sessions ended by the server"),
        (counts.stream_waits, "waited for a stream", "waited for a stream"),
        (counts.window_waits, "body waited for the window", "bodies waited for the window"),
    ] {
        if count > 0 {
            let what = if count == 1 { one } else { several };
            let part = format!("{} {what}", units::count(count));
            text.push_str("   ");
            text.push_str(&page.paint(Paint::Warn, &part));
        }
    }
    text
}

/// The generator's own usage: CPU time per request, its busiest worker, memory.
pub(crate) fn generator(run: &Run) -> String {
    let generator = &run.generator;
    let mut text = String::new();
    let sent = run.tally.counts.sent;
    if generator.cpu > 0 && sent > 0 {
        let each = units::duration(generator.cpu as f64 / sent as f64);
        text.push_str(&format!("{each} CPU/request   "));
    }
    let worker = if generator.threads > 1 { "busiest worker" } else { "worker" };
    text.push_str(&format!("{worker} {} of a core", units::percent(generator.busiest)));
    if generator.rss_bytes > 0 {
        text.push_str(&format!("   {}", units::bytes(generator.rss_bytes as f64)));
    }
    text
}

pub(super) fn latency(page: &mut TextPage, run: &Run) {
    let rows = latencies::rows(&run.tally.latency);
    if rows.is_empty() {
        return;
    }
    page.gap();
    let most = rows.iter().map(|(_, histogram)| histogram.count()).max().unwrap_or(0);
    let columns = if most < FEW { columns_of_few(most) } else { columns(page.width()) };
    let mut head = format!("{:<INDENT$}", "latency");
    for column in &columns {
        head.push_str(&format!("{:>COLUMN$}", column.name()));
    }
    let head = page.paint(Paint::Heading, &head);
    page.line(&head);
    let mut guessed = false;
    for (name, histogram) in &rows {
        let (cells, untrusted) = cells(histogram, &columns);
        guessed |= untrusted;
        let paint = if *name == latencies::HEADLINE { Paint::Heading } else { Paint::Plain };
        let row = page.paint(paint, &format!("{:<INDENT$}{cells}", format!("  {name}")));
        page.line(&row);
    }
    if guessed {
        let note = format!("{UNTRUSTED} fewer than 10 samples lie beyond it");
        page.wrapped(INDENT, "", Paint::Quiet, &note);
    }
}

const COLUMN: usize = 9;

/// Fewer samples have no percentiles but the median.
const FEW: u64 = 10;

/// The columns of fewer than [`FEW`] samples; a single one has one figure.
fn columns_of_few(samples: u64) -> Vec<LatencyColumn> {
    match samples {
        0 | 1 => vec![LatencyColumn::Only],
        _ => {
            vec![LatencyColumn::Min, LatencyColumn::Median, LatencyColumn::Max, LatencyColumn::Mean]
        }
    }
}

/// A column of the latency table.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LatencyColumn {
    Quantile(&'static str, f64),
    /// The single sample.
    Only,
    Min,
    Median,
    Max,
    Mean,
}

impl LatencyColumn {
    fn name(self) -> &'static str {
        match self {
            Self::Quantile(name, _) => name,
            Self::Only => "",
            Self::Min => "min",
            Self::Median => "median",
            Self::Max => "max",
            Self::Mean => "mean",
        }
    }
}

/// The columns that fit a page of `width`. A narrow one leaves out the mean first, then p99.9 and
/// p95.
fn columns(width: usize) -> Vec<LatencyColumn> {
    const EXPENDABLE: [&str; 3] = ["mean", "p99.9", "p95"];
    let quantiles = COLUMNS.iter().map(|(name, quantile)| LatencyColumn::Quantile(name, *quantile));
    let mut columns: Vec<_> = quantiles.chain([LatencyColumn::Max, LatencyColumn::Mean]).collect();
    let room = width.saturating_sub(INDENT) / COLUMN;
    for name in EXPENDABLE.into_iter().take(columns.len().saturating_sub(room)) {
        columns.retain(|column| column.name() != name);
    }
    columns
}

/// The cells of a row, and whether any is untrusted.
fn cells(histogram: &Histogram, columns: &[LatencyColumn]) -> (String, bool) {
    let mut text = String::new();
    let mut guessed = false;
    for column in columns {
        let (value, is_trusted) = match *column {
            LatencyColumn::Quantile(_, quantile) => {
                (histogram.quantile(quantile) as f64, trusted(quantile, histogram.count()))
            }
            LatencyColumn::Min => (histogram.min() as f64, true),
            LatencyColumn::Median => (histogram.quantile(0.5) as f64, true),
            LatencyColumn::Only | LatencyColumn::Max => (histogram.max() as f64, true),
            LatencyColumn::Mean => (histogram.mean(), true),
        };
        guessed |= !is_trusted;
        let mark = if is_trusted { "" } else { UNTRUSTED };
        text.push_str(&format!("{:>COLUMN$}", format!("{mark}{}", units::duration(value))));
    }
    (text, guessed)
}

pub(super) fn statuses(page: &mut TextPage, run: &Run) {
    let statuses = run.tally.statuses();
    if statuses.is_empty() {
        return;
    }
    page.gap();
    let total: u64 = statuses.iter().map(|status| status.1).sum();
    let widest = statuses.iter().map(|status| units::count(status.1).len()).max().unwrap_or(0);
    for (i, (status, count)) in statuses.iter().enumerate() {
        let heading = if i == 0 { "status" } else { "" };
        let paint = if run.plan.expect.accepts(*status) { Paint::Plain } else { Paint::Bad };
        let code = page.paint(paint, &status.to_string());
        let part = units::percent(share(*count, total));
        page.headed(heading, &format!("{code}   {:>widest$}   {part:>8}", units::count(*count)));
    }
    let wrong = run.tally.counts.wrong_bodies;
    if wrong > 0 {
        let text = format!("{} with an unexpected body", units::plural(wrong, "response"));
        page.headed("", &page.paint(Paint::Bad, &text));
    }
}

/// One line per label.
pub(super) fn labels(page: &mut TextPage, run: &Run) {
    let labels: Vec<_> = run.plan.labels.iter().zip(run.tally.labels()).collect();
    if labels.len() < 2 {
        return;
    }
    page.gap();
    let shown = &labels[..labels.len().min(LABELS_MAX)];
    // The names are indented by two columns.
    let name_width = shown.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or(0);
    let name_width = name_width.clamp(INDENT - 2, page.width().saturating_sub(47).max(INDENT - 2));
    let has_max = page.width() >= name_width + 47;
    let mut head =
        format!("{:<name_width$}  {:>10}{:>8}{:>9}{:>9}", "label", "sent", "failed", "p50", "p99");
    if has_max {
        head.push_str(&format!("{:>9}", "max"));
    }
    let head = page.paint(Paint::Heading, &head);
    page.line(&head);
    for (name, label) in shown {
        let response = &label.response;
        let quantile = |quantile| {
            if response.is_empty() {
                return "–".to_owned();
            }
            let mark = if trusted(quantile, response.count()) { "" } else { UNTRUSTED };
            format!("{mark}{}", units::duration(response.quantile(quantile) as f64))
        };
        let name = fit(name, name_width - 2);
        let failed = format!("{:>8}", units::count(label.counts.failed));
        let mut row = format!(
            "  {name:<width$}  {:>10}{}{:>9}{:>9}",
            units::count(label.counts.sent),
            bad(page, label.counts.failed, &failed),
            quantile(0.5),
            quantile(0.99),
            width = name_width - 2
        );
        if has_max {
            let max = (!response.is_empty()).then(|| units::duration(response.max() as f64));
            row.push_str(&format!("{:>9}", max.unwrap_or_else(|| "–".to_owned())));
        }
        page.line(&row);
    }
    if labels.len() > shown.len() {
        let more = format!("and {} more; JSON has them all", labels.len() - shown.len());
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}
