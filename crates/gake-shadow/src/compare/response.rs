//! Two outcomes of one request, compared: status, then headers and body.

use std::collections::BTreeSet;

use gake_text::redact::Redactor;
use http::HeaderMap;

use super::body;
use super::field::{DifferenceKind, Differences};
use super::rules::ComparisonRules;
use crate::exchange::{BackendOutcome, BackendResponse};

/// Where outcomes of one request differ, by what `rules` say for `endpoint`.
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
        // What else differs is a consequence.
        out.note("status", DifferenceKind::Value, || (left, right));
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

/// The status, or the name of what went wrong.
pub(super) fn code(outcome: &BackendOutcome) -> String {
    match &outcome.result {
        Ok(response) => response.status.as_str().to_owned(),
        Err(failure) => failure.name().to_owned(),
    }
}

/// Whether not all of the body was kept.
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
            [] => "nothing".to_owned(),
            // What is left of a cookie holds no secret.
            _ if name == "set-cookie" => values.join(", "),
            _ => {
                let joined = values.join(", ");
                String::from_utf8_lossy(&redactor.header(name, joined.as_bytes())).into_owned()
            }
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

/// A cookie without its value, which is another one for each session, and without its expiry.
fn cookie(value: &str) -> String {
    let mut parts = value.split(';').map(str::trim);
    let name = parts.next().and_then(|pair| pair.split('=').next()).unwrap_or_default();
    let kept = parts.filter(|part| !part.to_ascii_lowercase().starts_with("expires="));
    std::iter::once(format!("{name}=…"))
        .chain(kept.map(str::to_owned))
        .collect::<Vec<_>>()
        .join("; ")
}
