//! Properties of histograms: against an HDR histogram of three digits, and of merging.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Latencies over many octaves, often the same, zero among them.
fn latencies() -> impl Strategy<Value = Vec<Nanos>> {
    let one = prop_oneof![
        Just(0),
        0..3_000_u64,
        (0..47_u32, any::<u64>()).prop_map(|(octave, rest)| (rest % (1 << octave)) + (1 << octave)),
        Just(CEILING),
        1_000_000..1_100_000_u64,
    ];
    prop_oneof![vec(one.clone(), 0..20), vec(one, 0..600)]
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![
        Just(0.0),
        -1e3..1e3,
        (-100.0..100.0_f64).prop_map(f64::exp2),
        (-100.0..100.0_f64).prop_map(|n| -n.exp2()),
        (-5_000..5_000_i32).prop_map(f64::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()),
    ];
    prop_oneof![vec(one.clone(), 0..20), vec(one, 0..400)]
}

fn of(values: &[Nanos]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

fn of_numbers(values: &[f64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record_number(*value));
    histogram
}

fn merged(a: &Histogram, b: &Histogram) -> Histogram {
    let mut all = a.clone();
    all.merge(b);
    all
}

fn hdr(values: &[Nanos]) -> hdrhistogram::Histogram<u64> {
    let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
    values.iter().for_each(|value| histogram.record((*value).min(CEILING)).unwrap());
    histogram
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn it_agrees_with_an_hdr_histogram_of_three_digits(
        values in latencies(),
        quantiles in vec(0.0..=1.0_f64, 8),
        bounds in (0..CEILING, 0..CEILING),
    ) {
        let (ours, theirs) = (of(&values), hdr(&values));
        prop_assert_eq!(ours.count(), theirs.len());
        for quantile in quantiles.into_iter().chain([0.0, 0.5, 0.9, 0.99, 0.999, 1.0]) {
            let expected = theirs.value_at_quantile(quantile).clamp(ours.min(), ours.max());
            prop_assert_eq!(ours.quantile(quantile), expected, "at {}", quantile);
            prop_assert_eq!(ours.quantile_number(quantile.max(1e-9)) as u64, ours.quantile(quantile.max(1e-9)));
        }
        let (low, high) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1).min(ours.max()));
        if low <= high {
            prop_assert_eq!(ours.count_between(low, high), theirs.count_between(low, high));
            prop_assert_eq!(ours.count_up_to(high), theirs.count_between(0, high));
        }
        let buckets: Vec<_> = theirs.iter_recorded().map(|bucket| Bucket {
            low: theirs.lowest_equivalent(bucket.value_iterated_to()),
            high: theirs.highest_equivalent(bucket.value_iterated_to()),
            count: bucket.count_at_value(),
        }).collect();
        for bucket in &buckets {
            prop_assert_eq!(bucket.middle(), theirs.median_equivalent(bucket.low));
            prop_assert_eq!(Histogram::top_of_bucket(bucket.low), bucket.high);
        }
        prop_assert_eq!(ours.buckets().collect::<Vec<_>>(), buckets);
        prop_assert_eq!(ours.stddev(), theirs.stdev());
    }

    #[test]
    fn quantiles_of_numbers_are_within_a_thousandth(mut values in numbers(), quantile in 0.0..=1.0_f64) {
        let histogram = of_numbers(&values);
        let limited = |n: f64| n.clamp(-bucket::LIMIT, bucket::LIMIT);
        values.sort_unstable_by(f64::total_cmp);
        let Some(last) = values.last() else { return Ok(()) };
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.min_number(), limited(values[0]));
        prop_assert_eq!(histogram.max_number(), limited(*last));
        let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let exact = limited(values[rank - 1]);
        let read = histogram.quantile_number(quantile);
        prop_assert!((read - exact).abs() <= exact.abs() * 0.001 + 1e-19, "{} for {}", read, exact);
    }

    #[test]
    fn merging_is_recording_in_any_order(
        a in latencies(), b in latencies(), x in numbers(), y in numbers(), z in numbers(),
    ) {
        let all: Vec<_> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(merged(&of(&a), &of(&b)), of(&all));
        let (ta, tb, tc) = (of_numbers(&x), of_numbers(&y), of_numbers(&z));
        prop_assert_eq!(merged(&ta, &tb), merged(&tb, &ta));
        prop_assert_eq!(merged(&merged(&ta, &tb), &tc), merged(&ta, &merged(&tb, &tc)));
        let whole: Vec<_> = x.iter().chain(&y).copied().collect();
        prop_assert_eq!(merged(&ta, &tb), of_numbers(&whole));
    }

    #[test]
    fn a_cleared_histogram_is_a_new_one(a in numbers(), b in numbers()) {
        let mut histogram = of_numbers(&a);
        histogram.clear();
        prop_assert_eq!(&histogram, &Histogram::new());
        b.iter().for_each(|value| histogram.record_number(*value));
        prop_assert_eq!(histogram, of_numbers(&b));
    }

    #[test]
    fn a_histogram_can_be_rebuilt_from_its_buckets(values in latencies()) {
        let histogram = of(&values);
        let buckets = histogram.buckets().map(|bucket| (bucket.low, bucket.count));
        let again = Histogram::from_buckets(
            buckets, histogram.min(), histogram.max(), histogram.sum(),
        );
        prop_assert_eq!(again, histogram);
    }
}

#[test]
fn counts_over_32_bits_are_kept() {
    const BIG: u64 = u32::MAX as u64;
    let mut histogram = Histogram::new();
    for value in 0..200 {
        histogram.record(value * 1_000);
    }
    for value in [7_000, 0, 9_000_000] {
        histogram.record_n(value, BIG);
        histogram.record_n(value, 3 * BIG);
    }
    let twice = merged(&histogram, &histogram);
    let counts = |histogram: &Histogram, value| histogram.count_between(value, value);
    assert_eq!(counts(&histogram, 7_000), 4 * BIG + 1);
    assert_eq!(counts(&twice, 7_000), 8 * BIG + 2);
    assert_eq!(counts(&twice, 0), 8 * BIG + 2);
    assert_eq!(counts(&twice, 9_000_000), 8 * BIG);
    assert_eq!(twice.count(), 24 * BIG + 400);
    assert_eq!(twice.buckets().map(|bucket| bucket.count).sum::<u64>(), twice.count());
    assert_eq!(twice.quantile(0.5), Histogram::top_of_bucket(7_000));
    assert_eq!(twice.quantile(0.9), 9_000_000);
    // A 32-bit sum that wraps only in the merge.
    let mut half = Histogram::new();
    (0..200).for_each(|value| half.record(value * 1_000));
    half.record_n(5_000, BIG - 5);
    assert_eq!(counts(&merged(&half, &half), 5_000), 2 * (BIG - 4));
    let mut cleared = twice;
    cleared.clear();
    assert_eq!(cleared, Histogram::new());
}

#[test]
fn eight_octaves_take_32_kilobytes() {
    let mut histogram = Histogram::new();
    let fill = |histogram: &mut Histogram| {
        (0..100_000_u64).for_each(|n| histogram.record((1 << 20) + n * 2_671 % (255 << 20)));
    };
    fill(&mut histogram);
    let bytes = histogram.heap_bytes();
    assert!((32_768..34_000).contains(&bytes), "{bytes}");
    // Neither refilling nor merging takes more.
    for _ in 0..10 {
        histogram.clear();
        fill(&mut histogram);
    }
    assert_eq!(histogram.heap_bytes(), bytes);
    let mut sum = Histogram::new();
    (0..10).for_each(|_| sum.merge(&histogram));
    assert!(sum.heap_bytes() <= bytes);
}

#[test]
fn few_values_take_little_memory_and_outliers_free_theirs() {
    let mut histogram = Histogram::new();
    (0..60).for_each(|n| histogram.record(1 << (n % 40)));
    assert!(histogram.heap_bytes() <= 1_024, "{}", histogram.heap_bytes());
    // An octave seen once keeps its page until the second after.
    let second = |histogram: &mut Histogram, outlier: bool| {
        histogram.clear();
        (0..1_000).for_each(|n| histogram.record(1_100_000 + n * 100));
        if outlier {
            histogram.record(1 << 40);
        }
        histogram.heap_bytes()
    };
    second(&mut histogram, false);
    let usual = second(&mut histogram, false);
    assert!(second(&mut histogram, true) > usual + 4_096);
    second(&mut histogram, false);
    assert!(second(&mut histogram, false) < usual + 4_096);
    // Nearly idle, it is a short list again.
    histogram.clear();
    histogram.record(5);
    histogram.clear();
    histogram.record(5);
    assert!(histogram.heap_bytes() <= 1_024);
}

#[test]
fn an_empty_histogram_has_no_figures() {
    let empty = Histogram::new();
    assert_eq!((empty.count(), empty.min(), empty.max(), empty.sum()), (0, 0, 0, 0));
    assert_eq!((empty.quantile(0.5), empty.quantile_number(0.5)), (0, 0.0));
    assert_eq!((empty.mean(), empty.stddev(), empty.heap_bytes()), (0.0, 0.0, 0));
    let mut refused = Histogram::new();
    [f64::NAN, f64::INFINITY].into_iter().for_each(|value| refused.record_number(value));
    assert_eq!(refused, empty);
}

#[test]
fn small_integers_are_exact() {
    let histogram = of_numbers(&[1.0, 2.0, 3.0, 3.0, -4.0]);
    assert_eq!(histogram.quantile_number(0.5), 2.0);
    assert_eq!(histogram.quantile_number(0.0), -4.0);
    assert_eq!((histogram.sum_number(), histogram.mean()), (5.0, 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn interpolation_agrees_with_a_sorted_list(
        values in vec(0..100_000_000_u64, 1..300), quantile in 0.0..=1.0_f64
    ) {
        let histogram = of(&values);
        let mut sorted = values;
        sorted.sort_unstable();
        let index = quantile * (sorted.len() - 1) as f64;
        let (low, high) = (sorted[index.floor() as usize], sorted[index.ceil() as usize]);
        let exact = low as f64 + (high - low) as f64 * index.fract();
        let read = histogram.interpolated(quantile);
        prop_assert!((read - exact).abs() <= exact / 1_000.0, "{} for {}", read, exact);
    }
}

#[test]
fn interpolated_ends_are_exact() {
    let histogram = of(&[1_000_000_007, 3_000_000_019]);
    assert_eq!(histogram.interpolated(0.0), 1_000_000_007.0);
    assert_eq!(histogram.interpolated(1.0), 3_000_000_019.0);
    assert_eq!(histogram.interpolated(0.5), 2_000_000_013.0);
    assert_eq!(Histogram::new().interpolated(0.5), 0.0);
}

#[test]
fn mapped_memory_is_reused_and_holds_no_value() {
    let mut histogram = Histogram::new();
    histogram.make_room(12..29);
    assert_eq!(histogram, Histogram::new());
    let bytes = histogram.heap_bytes();
    assert!(bytes >= 17 * 4_096, "{bytes}");
    (0..10_000u64).for_each(|n| histogram.record(4_096 + n * n));
    assert_eq!((histogram.count(), histogram.heap_bytes()), (10_000, bytes));
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
}
