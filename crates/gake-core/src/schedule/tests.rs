//! Properties of schedules.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::SECOND;

fn uniform(stages: &[Stage]) -> Schedule {
    Schedule::new(Process::Uniform, stages, None, 0)
}

fn step(rate: f64, seconds: f64) -> Stage {
    Stage::step(rate, Duration::from_secs_f64(seconds))
}

#[test]
fn a_constant_rate_is_a_grid() {
    let schedule = uniform(&[step(1000.0, 10.0)]);
    assert_eq!(schedule.total(), 10_000);
    assert_eq!(schedule.due(0), Some(0));
    assert_eq!(schedule.due(1), Some(1_000_000));
    assert_eq!(schedule.due(9_999), Some(9_999_000_000));
    assert_eq!(schedule.due(10_000), None);
}

#[test]
fn a_fractional_rate_counts_what_starts_before_the_end() {
    // Due at 0, 3 and 6 s; the one at 9 s would be at the end.
    let schedule = uniform(&[step(1.0 / 3.0, 9.0)]);
    assert_eq!(schedule.total(), 3);
    assert_eq!(schedule.share(0, 1).count(), 3);
}

#[test]
fn a_ramp_has_the_area_of_a_triangle() {
    let ramp = Stage { from: 0.0, to: 100.0, duration: Duration::from_secs(10) };
    let schedule = uniform(&[ramp]);
    assert_eq!(schedule.total(), 500);
    // Λ(t) = 5t², so number 125 is due at 5 s.
    assert_eq!(schedule.due(125), Some(5 * SECOND));
}

#[test]
fn a_pause_holds_arrivals_back() {
    let schedule = uniform(&[step(10.0, 1.0), step(0.0, 5.0), step(10.0, 1.0)]);
    assert_eq!(schedule.total(), 20);
    assert_eq!(schedule.due(9), Some(900_000_000));
    assert_eq!(schedule.due(10), Some(6 * SECOND));
}

#[test]
fn a_limit_ends_an_endless_schedule() {
    let endless = Stage::step(50.0, Duration::MAX);
    let schedule = Schedule::new(Process::Uniform, &[endless], Some(7), 0);
    assert_eq!(schedule.total(), 7);
    assert_eq!(schedule.share(0, 1).count(), 7);
    assert_eq!(schedule.timed_end(), None);
    assert_eq!(schedule.end(), Some(140_000_000));
    assert!((schedule.mean_rate(140_000_000) - 50.0).abs() < 1e-9);
    assert_eq!(uniform(&[endless]).end(), None);
    assert_eq!(uniform(&[endless]).total(), u64::MAX);
}

#[test]
fn a_warm_up_comes_before_and_is_not_in_the_limit() {
    for process in [Process::Uniform, Process::Poisson] {
        let schedule = Schedule::new(process, &[step(100.0, 60.0)], Some(50), 1)
            .after(10.0, Duration::from_secs(2));
        let arrivals: Vec<_> = schedule.share(0, 1).collect();
        assert_eq!(arrivals.len(), 70);
        assert!(arrivals[19].due < 2 * SECOND && arrivals[20].due >= 2 * SECOND);
    }
}

#[test]
fn poisson_has_its_mean_and_variance() {
    let schedule = Schedule::new(Process::Poisson, &[step(1000.0, 100.0)], None, 7);
    let mut per_second = [0f64; 100];
    for arrival in schedule.share(0, 1) {
        per_second[(arrival.due / SECOND) as usize] += 1.0;
    }
    let mean = per_second.iter().sum::<f64>() / 100.0;
    let variance = per_second.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 99.0;
    // Mean 1000 ± 5 standard errors of √10; index of dispersion 1 ± 5·√(2/99).
    assert!((mean - 1000.0).abs() < 16.0, "{mean}");
    assert!((variance / mean - 1.0).abs() < 0.71, "{}", variance / mean);
}

fn stages() -> impl Strategy<Value = Vec<Stage>> {
    let stage = (0.0..500.0f64, 0.0..500.0f64, 0.0..4.0f64).prop_map(|(from, to, seconds)| Stage {
        from,
        to,
        duration: Duration::from_secs_f64(seconds),
    });
    proptest::collection::vec(stage, 1..5)
}

/// The area under the stages up to `t` seconds, summed by the trapezoid rule on a fine grid.
fn area_by_sum(stages: &[Stage], t: f64) -> f64 {
    let mut left = t;
    let mut area = 0.0;
    for stage in stages {
        let length = stage.duration.as_secs_f64();
        let inside = left.min(length);
        if length > 0.0 && inside > 0.0 {
            let at = stage.from + (stage.to - stage.from) * inside / length;
            area += (stage.from + at) / 2.0 * inside;
        }
        left -= inside;
    }
    area
}

proptest! {
    #[test]
    fn arrivals_up_to_any_instant_are_the_area_under_the_rate(stages in stages(), part in 0.0..1.0f64) {
        let schedule = uniform(&stages);
        let end = schedule.end().unwrap();
        let t = (end as f64 * part) as u64;
        let seen = schedule.share(0, 1).filter(|a| a.due < t).count() as f64;
        let area = area_by_sum(&stages, t as f64 / SECOND as f64);
        prop_assert!((seen - area).abs() <= 1.0 + 1e-6 * area, "{seen} against {area}");
        prop_assert_eq!(schedule.share(0, 1).count() as u64, schedule.total());
        let seconds = (0..=end / SECOND).map(|s| schedule.asked_in_second(s)).sum::<f64>();
        prop_assert!((seconds - area_by_sum(&stages, 1e9)).abs() < 1e-6 * (1.0 + seconds));
    }

    #[test]
    fn shares_are_the_whole(stages in stages(), workers in 1usize..6, poisson: bool, seed: u64) {
        let process = if poisson { Process::Poisson } else { Process::Uniform };
        let schedule = Schedule::new(process, &stages, Some(1000), seed);
        let whole: Vec<_> = schedule.share(0, 1).collect();
        let mut parts: Vec<_> = (0..workers).flat_map(|w| schedule.share(w, workers)).collect();
        parts.sort_by_key(|a| a.number);
        prop_assert_eq!(whole, parts);
    }

    #[test]
    fn due_never_goes_back_and_stays_within_the_end(stages in stages(), poisson: bool) {
        let process = if poisson { Process::Poisson } else { Process::Uniform };
        let schedule = Schedule::new(process, &stages, None, 3);
        let mut last = 0;
        for arrival in schedule.share(0, 1) {
            prop_assert!(arrival.due >= last && arrival.due <= schedule.end().unwrap());
            last = arrival.due;
        }
    }
}
