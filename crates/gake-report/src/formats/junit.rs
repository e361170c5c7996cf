//! Objectives as test cases, in the JUnit XML that CI servers read.
//!
//! The first case is the run itself: an error when it is invalid or nothing succeeded. An invalid
//! run does not decide its objectives, which are then skipped. The suite's output is the text
//! summary.

use std::fmt::Write as _;

use gake_judge::{Evaluation, Summary, Validity};
use gake_text::units;

use super::headline;
use super::text::{self, Style};
use super::xml::escape;

/// The summary as JUnit XML, with a final newline.
#[must_use]
pub fn render(summary: &Summary) -> String {
    let (run, verdict) = (&summary.run, &summary.verdict);
    let invalid = verdict.validity == Validity::Invalid;
    let error = error(summary);
    let objectives = &verdict.objectives;
    let missed = objectives.iter().filter(|objective| !objective.met).count();
    let (failures, skipped) = if invalid { (0, objectives.len()) } else { (missed, 0) };
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{}\" skipped=\"{skipped}\" time=\"{:.3}\"",
        objectives.len() + 1,
        u8::from(error.is_some()),
        run.elapsed as f64 / 1e9,
    );
    let target = escape(&run.plan.target);
    let started = jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%dT%H:%M:%S").to_string());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "<testsuites name=\"gake\" {counts}>");
    let _ = writeln!(xml, "  <testsuite name=\"{target}\" {counts} timestamp=\"{started}\">");
    xml.push_str("    <properties>\n");
    for (name, value) in [
        ("plan", run.plan.to_string()),
        ("validity", verdict.validity.name().to_owned()),
        ("findings", verdict.findings.iter().map(|f| f.id).collect::<Vec<_>>().join(" ")),
    ] {
        let value = escape(&value);
        let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{value}\"/>");
    }
    xml.push_str("    </properties>\n");
    let _ = write!(xml, "    <testcase classname=\"gake.run\" name=\"the run is valid\"");
    if let Some((kind, lines)) = error {
        let message = escape(lines.first().map_or("", String::as_str));
        let body = escape(&lines.join("\n"));
        let _ = writeln!(
            xml,
            ">\n      <error type=\"{kind}\" message=\"{message}\">{body}</error>\n    </testcase>"
        );
    } else {
        xml.push_str("/>\n");
    }
    for objective in objectives {
        case(&mut xml, objective, invalid);
    }
    let output = escape(&text::render(summary, Style::default())).replace("&#10;", "\n");
    let _ = writeln!(xml, "    <system-out>{output}</system-out>");
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// The kind and reasons of the run's own error.
fn error(summary: &Summary) -> Option<(&'static str, Vec<String>)> {
    let verdict = &summary.verdict;
    let reasons = verdict.reasons.iter().map(|reason| reason.text.clone());
    if let Some(nothing) = &verdict.nothing_ok {
        let first = [headline::nothing_ok(nothing), nothing.advice.to_owned()];
        return Some(("nothing_ok", first.into_iter().chain(reasons).collect()));
    }
    (verdict.validity == Validity::Invalid).then(|| ("invalid", reasons.collect()))
}

fn case(xml: &mut String, objective: &Evaluation, invalid: bool) {
    let name = escape(&objective.text);
    let _ = write!(xml, "    <testcase classname=\"gake.objective\" name=\"{name}\"");
    let seen = escape(&format!("{} is not met: {}", objective.text, objective.shown()));
    if invalid {
        let _ = writeln!(
            xml,
            ">\n      <skipped message=\"the run is invalid; measured {}\"/>\n    </testcase>",
            escape(&objective.shown())
        );
    } else if objective.met {
        xml.push_str("/>\n");
    } else {
        let exact = objective.value.map_or_else(String::new, |value| {
            format!("\nmeasured {} {}", units::number(value), objective.unit.name())
        });
        let _ = writeln!(
            xml,
            ">\n      <failure type=\"objective\" message=\"{seen}\">{seen}{exact}</failure>\n    \
             </testcase>"
        );
    }
}

#[cfg(test)]
#[path = "junit_tests.rs"]
mod tests;
