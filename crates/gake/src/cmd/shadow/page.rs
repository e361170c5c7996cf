//! Judged comparisons for the HTML page: every list and text of bounded length.

use gake_shadow::compare::judge::{FieldDifference, FieldVerdict, Pace, ShadowReport};
use serde_json::{Value, json};

/// Characters of a name.
const NAME_MAX: usize = 160;

/// Characters of the suggested rules.
const RULES_MAX: usize = 40_000;

/// A report as `ui/src/pages/shadow-data.ts` has it, with a bound on the entries of each list: the
/// first, which weigh most.
pub fn shown(report: &ShadowReport, rows: usize) -> Value {
    let real = |found: &&FieldDifference| {
        matches!(found.verdict, FieldVerdict::Real | FieldVerdict::Untested)
    };
    let bodies_cut: u64 = report.endpoints.iter().map(|endpoint| endpoint.bodies_cut).sum();
    let more = json!({
        "bodies_cut": bodies_cut,
        "fields": report.differences.iter().filter(real).count(),
        "slower": report.with_pace(Pace::Slower).count(),
        "more_differences": report.differences.len().saturating_sub(rows),
        "all_endpoints": report.endpoints.len(),
    });
    // Every key is a text, so this cannot fail.
    let mut page = serde_json::to_value(cut_report(report.clone(), rows)).unwrap_or_default();
    if let (Value::Object(page), Value::Object(more)) = (&mut page, more) {
        page.extend(more);
    }
    page
}

fn cut_report(mut report: ShadowReport, rows: usize) -> ShadowReport {
    report.differences.truncate(rows);
    report.endpoints.truncate(rows);
    report.statuses.truncate(rows);
    cut_rules(&mut report.suggestions, RULES_MAX.min(rows * 100));
    cut(&mut report.master);
    cut(&mut report.shadow);
    report.secondary.iter_mut().for_each(cut);
    report.endpoints.iter_mut().for_each(|endpoint| cut(&mut endpoint.name));
    for difference in &mut report.differences {
        cut(&mut difference.endpoint);
        cut(&mut difference.path);
        if let Some(example) = &mut difference.example {
            for text in [&mut example.request, &mut example.expected, &mut example.actual] {
                text.cut(NAME_MAX, "…");
            }
        }
    }
    report
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(NAME_MAX) {
        text.truncate(end);
        text.push('…');
    }
}

/// Leaves whole rules only, for the rest would not be TOML.
fn cut_rules(rules: &mut String, most: usize) {
    if rules.len() <= most {
        return;
    }
    let ends = rules.match_indices("\n\n").map(|(at, _)| at);
    let end = ends.take_while(|at| *at <= most).last().unwrap_or(0);
    rules.truncate(end);
    rules.push_str("\n\n# More rules are in the text and JSON output.\n");
}

#[cfg(test)]
mod tests {
    use gake_shadow::compare::judge::{Terms, judge};
    use gake_shadow::compare::{ComparisonRules, ShadowComparison};

    use super::*;

    #[test]
    fn the_largest_comparison_there_can_be_is_a_small_page() {
        let fields: Vec<_> = (0..200)
            .map(|n| {
                let text = "<".repeat(200);
                serde_json::json!({
                    "path": format!("$.f{n}{text}"), "kind": "value", "shadow": 40,
                    "only_shadow": 40,
                    "example": {"request": text, "expected": text, "actual": text},
                })
            })
            .collect();
        let endpoint = |n: u32| {
            let name = format!("GET /{n}/{}", "<".repeat(500));
            let counts = serde_json::json!({
                "exchanges": 50, "paired": 50, "fields": fields, "statuses": {"200 503": 3},
            });
            (name, counts)
        };
        let endpoints: serde_json::Map<_, _> = (0..100).map(endpoint).collect();
        let mut comparison = ShadowComparison::new("s");
        comparison.endpoints = serde_json::from_value(endpoints.into()).unwrap();
        let report = judge(&comparison, &ComparisonRules::default(), Terms::default());
        assert_eq!(report.differences.len(), 20_000);
        let html = gake_report::html::shadow(|rows| vec![shown(&report, rows)]);
        assert!(html.len() <= 500_000, "{}", html.len());
        let page = shown(&report, 50);
        assert_eq!(page["differences"].as_array().unwrap().len(), 50);
        assert_eq!(page["more_differences"], 19_950);
        assert_eq!((&page["fields"], &page["all_endpoints"]), (&20_000.into(), &100.into()));
    }

    #[test]
    fn rules_that_are_cut_are_rules() {
        let rule = "[[ignore]]\nendpoint = \"GET /a\"\npaths = [\n  \"$.x\",\n]\n\n";
        let mut rules = rule.repeat(1_000);
        cut_rules(&mut rules, 1_000);
        assert!(rules.len() < 1_100, "{}", rules.len());
        assert!(rules.parse::<toml::Table>().is_ok(), "{rules}");
    }
}
