//! Compares two outcomes of a request: status, then headers and body.

use std::collections::BTreeSet;

use gake_text::redact::{Redacted, Redactor};
use http::HeaderMap;

use super::body;
use super::field::{DifferenceKind, Differences};
use super::rules::ComparisonRules;
use crate::exchange::{BackendOutcome, BackendResponse};

/// The differences of two outcomes, by the rules for `endpoint`.
pub(super) fn differences<'a>(
    expected: &BackendOutcome,
    actual: &BackendOutcome,
    endpoint: &str,
    rules: &'a ComparisonRules,
    redactor: &'a Redactor,
) -> Differences<'a> {
    let mut out = Differences::new(rules.tolerances(endpoint), redactor);
    let (left, right) = (code(expected), code(actual));
    if left != right {
        // Other differences are consequences.
        let values = || (redactor.text(&left), redactor.text(&right));
        out.note("status", DifferenceKind::Value, values);
        return out;
    }
    if let (Ok(expected), Ok(actual)) = (&expected.result, &actual.result) {
        headers(&expected.headers, &actual.headers, rules, &mut out);
        if !is_cut(expected) && !is_cut(actual) {
            body::compare(expected, actual, rules.markers(), &mut out);
        }
    }
    out
}

/// The status, or the name of the failure.
pub(super) fn code(outcome: &BackendOutcome) -> String {
    match &outcome.result {
        Ok(response) => response.status.as_str().to_owned(),
        Err(failure) => failure.name().to_owned(),
    }
}

/// Whether the captured body is incomplete.
pub(super) fn is_cut(response: &BackendResponse) -> bool {
    response.body.truncated || response.body.len != response.body.bytes.len() as u64
}

fn headers(
    expected: &HeaderMap,
    actual: &HeaderMap,
    rules: &ComparisonRules,
    out: &mut Differences<'_>,
) {
    let names: BTreeSet<&str> = expected.keys().chain(actual.keys()).map(|n| n.as_str()).collect();
    for name in names.into_iter().filter(|name| !rules.ignores_header(name)) {
        let (left, right) = (values(expected, name), values(actual, name));
        if left == right {
            continue;
        }
        let redactor = out.redactor;
        let kind = match (left.is_empty(), right.is_empty()) {
            (false, true) => DifferenceKind::Missing,
            (true, false) => DifferenceKind::Added,
            _ => DifferenceKind::Value,
        };
        let shown = |values: &[String]| match values {
            [] => Redacted::plain("nothing"),
            // The compared form of a cookie contains no value.
            _ if name == "set-cookie" => redactor.text(&values.join(", ")),
            _ => redactor.header(name, values.join(", ").as_bytes()).text(),
        };
        out.note(&format!("header {name}"), kind, || (shown(&left), shown(&right)));
    }
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let all = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    if name == "set-cookie" {
        return all.map(|value| cookie(&value)).collect();
    }
    all.map(|value| value.trim().to_owned()).collect()
}

/// A cookie without value and expiry, which differ between sessions.
fn cookie(value: &str) -> String {
    let mut attributes = value.split(';').map(str::trim);
    let name = attributes.next().and_then(|pair| pair.split('=').next()).unwrap_or_default();
    let kept =
        attributes.filter(|attribute| !attribute.to_ascii_lowercase().starts_with("expires="));
    std::iter::once(format!("{name}=…"))
        .chain(kept.map(str::to_owned))
        .collect::<Vec<_>>()
        .join("; ")
}
