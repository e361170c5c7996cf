//! Works of a program's own: their metrics decide a run by name and tags.

use gake_judge::Conclusion;
use gake_report::formats::text::Style;
use gake_report::{Format, write};

use super::orders::{EXCHANGES, ITERATIONS, judged, spec};

#[test]
fn objectives_by_tag_decide() {
    for (objective, expected) in [
        ("checks{check:paid}>=75%", Conclusion::Done),
        ("checks{check:paid}>80%", Conclusion::ObjectiveFailed),
        ("items{kind:large}:min<=2", Conclusion::ObjectiveFailed),
        ("items{kind:small,scenario:shop}:count>=200", Conclusion::Done),
    ] {
        let summary = judged(&spec(objective)).unwrap();
        let counts = summary.run.tally.counts;
        let exchanges = EXCHANGES * ITERATIONS;
        let seen = (counts.started, counts.finished(), counts.sent, counts.ok);
        assert_eq!(seen, (ITERATIONS, ITERATIONS, exchanges, exchanges), "{objective}");
        let shown = summary.verdict.objectives[0].shown();
        let reasons = &summary.verdict.reasons;
        assert_eq!(summary.verdict.conclusion(), expected, "{objective}: {shown}; {reasons:?}");
    }
}

#[test]
fn every_sample_is_counted_once_and_shown() {
    let summary = judged(&spec("checks{check:paid}>80%")).unwrap();
    let of =
        |text: &str| gake_judge::judge(&summary.run, &[text.parse().unwrap()]).objectives_met();
    for exact in [
        "checks:count>=1200",
        "checks:count<=1200",
        "checks{check:paid}>=75%",
        "checks{check:paid}<=75%",
        "checks{check:received}>=100%",
        "items:count>=800",
        "items:count<=800",
        "items{kind:small}:max<=2",
        "items{kind:large}:min>=30",
        "items{kind:returned}:count>=400",
        "sent>=2000",
        "sent<=2000",
    ] {
        assert!(of(exact), "{exact}");
    }
    let shown = |format| {
        let mut out = Vec::new();
        write(&summary, format, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = shown(Format::Text);
    for part in ["checks", "items", "checks{check:paid}>80%", "75"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let json = shown(Format::Json);
    for part in ["\"checks\"", "\"items\"", "\"paid\"", "\"returned\"", "checks{check:paid}>80%"] {
        assert!(json.contains(part), "{part}:\n{json}");
    }
}

#[test]
fn an_objective_on_what_the_works_do_not_have_is_refused() {
    let error = judged(&spec("item:max<3")).unwrap_err().to_string();
    assert!(error.contains("there is no metric \"item\""), "{error}");
    assert!(error.contains("checks, items"), "{error}");
}

#[test]
fn series_over_their_bound_count_together() {
    // Three of items and three of checks; each worker sees all.
    let mut spec = spec("items:count>=800");
    spec.max_series = 2;
    let summary = judged(&spec).unwrap();
    let series = &summary.run.tally.series;
    let distinct = series.series().filter(|(key, _)| !key.is_other()).count();
    assert_eq!(distinct, 2, "{series:?}");
    assert!(series.over() > 0, "{series:?}");
    let samples: u64 = series.series().map(|(_, value)| value.samples()).sum();
    assert_eq!(samples, 5 * ITERATIONS);
    assert!(summary.verdict.objectives[0].met, "{:?}", summary.verdict.objectives);
}
