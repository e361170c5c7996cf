//! Properties of series tables, and their memory.

use std::sync::Arc;

use expect_test::expect;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn metric(name: &str, kind: MetricKind) -> Arc<Definition> {
    let unit = MetricUnit::Number;
    Arc::new(Definition { name: name.to_owned(), kind, unit })
}

/// A sample: which metric, which tag, its value and instant.
type Sample = (usize, u8, f64, u64);

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let value = prop_oneof![Just(0.0), -5.0..5.0, (0..100_000u32).prop_map(f64::from)];
    vec((0..4usize, 0..5u8, value, 0..4u64), 0..60)
}

fn table(samples: &[Sample]) -> SeriesTable {
    let mut table = SeriesTable::default();
    for &(kind, tag, value, at) in samples {
        let kind = MetricKind::ALL[kind];
        let id = table.intern(&metric(kind.name(), kind), &Tags::new([("tag", tag.to_string())]));
        table.add(id, value, at);
    }
    table
}

fn merged(a: &SeriesTable, b: &SeriesTable) -> SeriesTable {
    let mut all = a.clone();
    all.merge(b);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn tables_merge_in_any_order_by_name(a in samples(), b in samples(), c in samples()) {
        let (ta, tb, tc) = (table(&a), table(&b), table(&c));
        prop_assert_eq!(merged(&ta, &tb), merged(&tb, &ta));
        prop_assert_eq!(merged(&merged(&ta, &tb), &tc), merged(&ta, &merged(&tb, &tc)));
        let whole: Vec<_> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(merged(&ta, &tb), table(&whole));
    }

    #[test]
    fn a_cleared_table_is_empty_and_its_indexes_stay_valid(a in samples(), b in samples()) {
        let worker = table(&a);
        let mut spare = table(&b);
        spare.clear();
        prop_assert_eq!(&spare, &SeriesTable::default());
        prop_assert!(spare.is_empty());
        spare.follow(&worker);
        let mut again = worker.clone();
        again.clear();
        for &(kind, tag, value, at) in &a {
            let kind = MetricKind::ALL[kind];
            let tags = Tags::new([("tag", tag.to_string())]);
            let id = again.intern(&metric(kind.name(), kind), &tags);
            spare.add(id, value, at);
        }
        prop_assert_eq!(spare, worker);
    }
}

#[test]
fn each_kind_aggregates_its_samples() {
    let mut table = SeriesTable::default();
    for kind in MetricKind::ALL {
        let id = table.intern(&metric(kind.name(), kind), &Tags::default());
        for (at, value) in [(5, 3.0), (9, 0.0), (2, -1.5)] {
            table.add(id, value, at);
        }
        table.add(id, f64::NAN, 10);
    }
    assert_eq!(table.not_numbers(), 4);
    let values: Vec<_> = table.sorted().into_iter().map(|series| series.1.clone()).collect();
    assert!(matches!(&values[0], SeriesValue::Counter { sum, samples: 3 } if sum.value() == 1.5));
    assert_eq!(values[1], SeriesValue::Gauge { last: 0.0, at: 9, min: -1.5, max: 3.0, samples: 3 });
    assert_eq!(values[2], SeriesValue::Rate { passed: 2, samples: 3 });
    assert!(matches!(&values[3], SeriesValue::Trend(trend) if trend.min_number() == -1.5));
}

#[test]
fn series_beyond_the_limit_are_counted_under_other() {
    let mut table = SeriesTable::with_limit(10);
    let hits = metric("hits", MetricKind::Counter);
    for n in 0..1_000_u32 {
        let id = table.intern(&hits, &Tags::new([("user", n.to_string())]));
        table.add(id, 1.0, 0);
    }
    assert_eq!((table.series().count(), table.over()), (11, 990));
    // Merging two full tables does not exceed the limit either.
    let mut whole = SeriesTable::with_limit(10);
    whole.merge(&table);
    let mut others = SeriesTable::with_limit(10);
    (0..20).for_each(|n: u32| {
        let id = others.intern(&hits, &Tags::new([("page", n.to_string())]));
        others.add(id, 1.0, 0);
    });
    whole.merge(&others);
    assert_eq!((whole.series().count(), whole.over()), (11, 990 + 20));
    let encoded = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<SeriesTable>(&encoded).unwrap(), whole);
    let total: u64 = whole.series().map(|(_, value)| value.samples()).sum();
    assert_eq!(total, 1_020);
}

#[test]
fn series_are_selected_by_metric_and_tags() {
    let mut table = SeriesTable::default();
    let steps = metric("steps", MetricKind::Counter);
    for (name, group) in [("login", "a"), ("login", "b"), ("home", "a")] {
        let id = table.intern(&steps, &Tags::new([("name", name), ("group", group)]));
        table.add(id, 1.0, 0);
    }
    let count =
        |tags: &[(&str, &str)]| table.select("steps", &Tags::new(tags.iter().copied())).count();
    assert_eq!((count(&[]), count(&[("name", "login")])), (3, 2));
    assert_eq!((count(&[("name", "login"), ("group", "b")]), count(&[("nane", "login")])), (1, 0));
    assert_eq!(table.select("step", &Tags::default()).count(), 0);
}

#[test]
fn a_metric_has_one_meaning_in_a_run() {
    let mut registry = Registry::default();
    let new = |kind| Definition { name: "waits".to_owned(), kind, unit: MetricUnit::Time };
    let first = registry.define(new(MetricKind::Trend)).unwrap();
    assert!(Arc::ptr_eq(&first, &registry.define(new(MetricKind::Trend)).unwrap()));
    let error = registry.define(new(MetricKind::Counter)).unwrap_err();
    expect![[
        r#"the counter "waits" of time cannot be defined: the trend "waits" of time exists already"#
    ]]
    .assert_eq(&error.to_string());
    for name in ["", "a b", "a{b:c}", "p<5"] {
        let named = Definition { name: name.to_owned(), ..new(MetricKind::Rate) };
        assert!(registry.define(named).is_err(), "{name}");
    }
    assert_eq!(registry.metrics().count(), 1);
}

#[test]
fn the_last_value_of_a_key_is_its_tag() {
    let tags = Tags::new([("b", "1"), ("a", "2"), ("b", "3")]);
    assert_eq!(tags.to_string(), "{a:2,b:3}");
    assert_eq!((tags.get("b"), tags.get("c")), (Some("3"), None));
    assert_eq!(Tags::default().to_string(), "");
}

#[test]
fn secrets_in_tags_are_masked_and_words_are_kept() {
    for (key, value, shown) in [
        ("password", "s3cr3t-1234", "[redacted]"),
        ("session", "new", "new"),
        ("token", "", ""),
        ("url", "http://h/?token=s3cr3t&n=1", "http://h/?token=[redacted]&n=1"),
        ("check", "token: present", "token: present"),
        ("check", "password=s3cr3t1 works", "password=[redacted] works"),
        ("group", "::Basic k6 test", "::Basic k6 test"),
        ("group", "Basic OAuth2Client flow", "Basic OAuth2Client flow"),
        ("group", "Basic bWU6czNjcg==", "Basic [redacted]"),
        ("group", "Basic me:s3cr3t", "Basic [redacted]"),
        ("check", "Bearer of bad news", "Bearer of bad news"),
        ("check", "Bearer JWT v2", "Bearer JWT v2"),
        ("check", "sends Bearer 8f3aX9kQ2m7LpZ1c", "sends Bearer [redacted]"),
        ("check", "token: x", "token: x"),
        ("check", "password: 8 to 64 Characters", "password: 8 to 64 Characters"),
        ("check", "Authorization: header is set", "Authorization: header is set"),
        ("check", "cookie: JSESSIONID is set", "cookie: JSESSIONID is set"),
        ("check", "token: 8f3aX9kQ2m7LpZ1c", "token: [redacted]"),
        ("check", "Authorization: x 8f3aX9kQ2m7LpZ1c", "Authorization: [redacted]"),
        ("status", "200", "200"),
        ("name", "ghp_7abcdefghijklmnopqrstuvwxyz0123456789", "[redacted]"),
    ] {
        let tags = Tags::new([(key, value)]).without_secrets();
        assert_eq!(tags.get(key), Some(shown), "{key}: {value}");
    }
}

#[test]
fn a_hundred_tags_of_a_metric_in_sixteen_workers_stay_under_100_mb() {
    let waits = metric("waits", MetricKind::Trend);
    let fill = |table: &mut SeriesTable| {
        for tag in 0..100_u32 {
            let id = table.intern(&waits, &Tags::new([("name", tag.to_string())]));
            // A thousand buckets over eight octaves, every second.
            (0..1_000).for_each(|n| table.add(id, 1e6 * 1.005_56_f64.powi(n), 0));
        }
    };
    // A run holds a table and a spare for each worker, the second being joined, and the sum.
    let mut workers = vec![SeriesTable::default(); 16];
    let mut spares = vec![SeriesTable::default(); 16];
    let (mut second, mut whole) = (SeriesTable::default(), SeriesTable::default());
    for _ in 0..3 {
        workers.iter_mut().for_each(fill);
        second.clear();
        workers.iter().for_each(|worker| second.merge(worker));
        whole.merge(&second);
        let all = workers.iter().chain(&spares).chain([&second, &whole]);
        let bytes: usize = all.map(SeriesTable::heap_bytes).sum();
        assert!(bytes < 100_000_000, "{bytes}");
        for (worker, spare) in workers.iter_mut().zip(&mut spares) {
            spare.follow(worker);
            std::mem::swap(worker, spare);
            spare.clear();
        }
    }
    assert_eq!(whole.series().count(), 100);
    assert_eq!(whole.series().map(|(_, value)| value.samples()).sum::<u64>(), 3 * 16 * 100_000);
}
