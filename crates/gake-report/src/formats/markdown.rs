//! A summary for a pull request or a ticket: GitHub's Markdown, which others render as well.
//!
//! The verdict, the figures and the objectives are visible, the rest is folded. Text from outside
//! (targets, labels, details of faults) cannot break a table, act as markup, or mention people or
//! issues.

use std::fmt::Write as _;

use gake_core::record::{Histogram, Run};
use gake_judge::stats::{RunRates, share};
use gake_judge::{Summary, advice, agent_lines, trusted};
use gake_text::units;

use super::headline::{self, Tone};
use super::latencies::{self, COLUMNS};

const ROWS_MAX: usize = 20;

/// The summary as Markdown, with a final newline.
#[must_use]
pub fn render(summary: &Summary) -> String {
    let mut text = String::new();
    verdict(&mut text, summary);
    figures(&mut text, &summary.run);
    objectives(&mut text, summary);
    findings(&mut text, summary);
    unfold(&mut text, "Latencies", &latencies(&summary.run));
    unfold(&mut text, "Status codes and faults", &ends(&summary.run));
    unfold(&mut text, "Labels", &labels(&summary.run));
    text
}

/// Appends a line. Writing to a String cannot fail.
macro_rules! line {
    ($text:expr) => { $text.push('\n') };
    ($text:expr, $($arg:tt)*) => {{ let _ = writeln!($text, $($arg)*); }};
}

fn verdict(text: &mut String, summary: &Summary) {
    let (run, verdict) = (&summary.run, &summary.verdict);
    let statements = headline::statements(summary);
    let mark = match statements.iter().map(|(tone, _)| tone).max() {
        Some(Tone::Bad) => "❌",
        Some(Tone::Doubtful) => "⚠",
        _ => "✅",
    };
    let statements = statements.into_iter().map(|(_, statement)| statement);
    let all: Vec<_> =
        statements.chain(headline::ending(run)).map(|statement| prose(&statement)).collect();
    line!(text, "### {mark} {}", all.join(" · "));
    line!(text);
    if let Some(nothing) = &verdict.nothing_ok {
        line!(text, "{}\n", prose(nothing.advice));
    }
    let plan = run.plan.to_string();
    let plan = plan.strip_prefix(&format!("{}: ", run.plan.target)).unwrap_or(&plan);
    let took = units::duration(run.elapsed as f64);
    line!(text, "{}: {}", code(&run.plan.target), prose(plan));
    line!(text, "{} ran {took}{}", headline::started(run), headline::spoken(run));
    let target = headline::target(summary).into_iter().map(|one| one.meaning);
    let reasons = verdict.reasons.iter().map(|reason| reason.text.clone());
    let target = target.filter(|meaning| !meaning.is_empty());
    for (i, reason) in target.chain(reasons).enumerate() {
        if i == 0 {
            line!(text);
        }
        line!(text, "- {}", prose(&reason));
    }
}

fn figures(text: &mut String, run: &Run) {
    let counts = &run.tally.counts;
    let errors = counts.due().saturating_sub(counts.ok);
    let rates = RunRates::of(run);
    let response = run.tally.latency.response();
    line!(text, "\n| requests | asked | sent | ok | errors | p50 | p99 | max |");
    line!(text, "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    line!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} | {} |",
        units::count(counts.due()),
        rates.asked.map_or_else(|| "–".to_owned(), units::rate),
        units::rate(rates.sent),
        units::rate(rates.goodput),
        units::percent(share(errors, counts.due())),
        quantile(&response, 0.5),
        quantile(&response, 0.99),
        duration(&response, response.max() as f64)
    );
}

fn objectives(text: &mut String, summary: &Summary) {
    let objectives = &summary.verdict.objectives;
    if objectives.is_empty() {
        return;
    }
    line!(text, "\n| | objective | measured |");
    line!(text, "| --- | --- | ---: |");
    for objective in objectives {
        let mark = if objective.met { "✅" } else { "❌" };
        line!(text, "| {mark} | {} | {} |", code(&objective.text), prose(&objective.shown()));
    }
}

fn findings(text: &mut String, summary: &Summary) {
    for (i, finding) in summary.verdict.findings.iter().enumerate() {
        if i == 0 {
            line!(text, "\n**Findings**\n");
        }
        let (evidence, advice) = (prose(&finding.evidence), prose(&finding.advice));
        let check = prose(&finding.check);
        line!(text, "- `{}`: {evidence}. *{advice}* (check: {check})", finding.id);
    }
    for (i, line) in agent_lines(&summary.run.agents).take(ROWS_MAX).enumerate() {
        if i == 0 {
            line!(text, "\n**Agents**\n");
        }
        line!(text, "- {}", prose(line.trim_start_matches("agent ")));
    }
    for (i, event) in summary.run.events.iter().take(ROWS_MAX).enumerate() {
        if i == 0 {
            line!(text, "\n**Events**\n");
        }
        line!(text, "- {}: {}", units::duration(event.at as f64), prose(&event.text));
    }
}

fn latencies(run: &Run) -> String {
    let rows = latencies::rows(&run.tally.latency);
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    let names = COLUMNS.map(|(name, _)| name).join(" | ");
    line!(text, "| | count | {names} | max | mean |");
    line!(text, "| --- | {}", "---: | ".repeat(COLUMNS.len() + 3).trim_end());
    for (name, histogram) in rows {
        let cells = COLUMNS.map(|(_, q)| quantile(&histogram, q)).join(" | ");
        let [max, mean] = [histogram.max() as f64, histogram.mean()].map(units::duration);
        line!(text, "| {name} | {} | {cells} | {max} | {mean} |", units::count(histogram.count()));
    }
    line!(text, "\n\\~ fewer than 10 samples lie beyond it");
    text
}

fn ends(run: &Run) -> String {
    let mut text = String::new();
    let (statuses, mut faults) = (run.tally.statuses(), run.tally.faults().to_vec());
    if statuses.is_empty() && faults.is_empty() {
        return text;
    }
    line!(text, "| end | count | |");
    line!(text, "| --- | ---: | --- |");
    for &(status, count) in statuses {
        let mark = if run.plan.expect.accepts(status) { "" } else { "not expected" };
        line!(text, "| {status} | {} | {mark} |", units::count(count));
    }
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.1));
    for (fault, count) in faults.iter().take(ROWS_MAX) {
        let (name, advice) = (prose(&fault.in_words()), prose(advice(*fault)));
        line!(text, "| {name} | {} | {advice} |", units::count(*count));
    }
    more(&mut text, faults.len());
    text
}

fn labels(run: &Run) -> String {
    let mut text = String::new();
    let labels: Vec<_> = run.plan.labels.iter().zip(run.tally.labels()).collect();
    if labels.len() < 2 {
        return text;
    }
    line!(text, "| label | sent | failed | p50 | p99 | max |");
    line!(text, "| --- | ---: | ---: | ---: | ---: | ---: |");
    for (name, label) in labels.iter().take(ROWS_MAX) {
        line!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            code(name),
            units::count(label.counts.sent),
            units::count(label.counts.failed),
            quantile(&label.response, 0.5),
            quantile(&label.response, 0.99),
            duration(&label.response, label.response.max() as f64)
        );
    }
    more(&mut text, labels.len());
    text
}

/// Adds the number of omitted rows.
fn more(text: &mut String, rows: usize) {
    if rows > ROWS_MAX {
        line!(text, "\nand {} more; JSON has them all", rows - ROWS_MAX);
    }
}

fn unfold(text: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        line!(text, "\n<details><summary>{title}</summary>\n\n{body}\n</details>");
    }
}

/// A quantile, marked when too few samples are behind it. The mark is escaped: two of them would
/// strike out the text between them.
fn quantile(histogram: &Histogram, quantile: f64) -> String {
    let value = duration(histogram, histogram.quantile(quantile) as f64);
    let marked = !histogram.is_empty() && !trusted(quantile, histogram.count());
    format!("{}{value}", if marked { "\\~" } else { "" })
}

fn duration(histogram: &Histogram, ns: f64) -> String {
    if histogram.is_empty() { "–".to_owned() } else { units::duration(ns) }
}

/// Text from outside as a code span without markup. The fence is longer than any run of backticks
/// inside; a bar is escaped because it would end a table cell even there.
pub(crate) fn code(text: &str) -> String {
    let text = one_line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Spaces inside the fence separate it from backticks at the edges and are not rendered.
    let edge =
        if text.is_empty() || text.contains('`') || text.starts_with(' ') { " " } else { "" };
    format!("{fence}{edge}{}{edge}{fence}", text.replace('|', "\\|"))
}

/// A sentence with its quotes from outside, without markup.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A comment after it keeps a name or number from becoming a mention.
            '@' | '#' => {
                out.push(c);
                out.push_str("<!-- -->");
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    // Bare URLs would become links.
    out.replace("://", ":<!-- -->//")
}

/// Without line breaks and other control characters, which would end a table row.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\u{2028}' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::{bless, healthy, troubled};

    fn summary(run: Run, objectives: &[&str]) -> Summary {
        let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
        Summary::new(run, &objectives)
    }

    fn compare(name: &str, text: &str) {
        bless(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name), text);
    }

    #[test]
    fn a_healthy_run_and_one_in_trouble() {
        let objectives = ["p99<50ms", "errors<0.1%", "rate>=990/s"];
        compare("healthy.md", &render(&summary(healthy(), &objectives)));
        let objectives = ["p99<5ms", "errors<1%", "checkout:p50<10ms"];
        compare("troubled.md", &render(&summary(troubled(), &objectives)));
    }

    #[test]
    fn hostile_names_stay_in_their_cells() {
        let hostile = "``a|b```\n<script>alert(1)</script> @team #1 | **x**";
        let mut run = troubled();
        run.plan.target = format!("http://h/{hostile}");
        run.plan.labels[0] = hostile.to_owned();
        run.events[0].text = gake_text::redact::Redactor::off().text(hostile);
        let text = render(&summary(run, &["p99<5ms"]));
        for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            let mut rows = table.lines();
            let columns = cells(rows.next().unwrap());
            assert!(rows.all(|row| cells(row) == columns), "{table}");
        }
        // Outside of code spans there is no tag but ours, and no mention.
        let mut outside = String::new();
        for line in text.lines() {
            let mut rest = line;
            while let Some(at) = rest.find('`').filter(|at| !rest[..*at].ends_with('\\')) {
                outside.push_str(&rest[..at]);
                let fence: String = rest[at..].chars().take_while(|c| *c == '`').collect();
                let body = &rest[at + fence.len()..];
                let end = body.rfind(&fence).expect("every span ends in its line");
                rest = &body[end + fence.len()..];
            }
            outside.push_str(rest);
            outside.push('\n');
        }
        assert!(!outside.contains("<script") && !outside.contains("@team"), "{outside}");
    }

    #[test]
    fn spans_hold_what_they_quote() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("`a`"), "`` `a` ``");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(prose("<b> *x* a@b http://h"), "&lt;b&gt; \\*x\\* a@<!-- -->b http:<!-- -->//h");
    }
}
