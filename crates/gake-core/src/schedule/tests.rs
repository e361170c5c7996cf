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
    assert_eq!(schedule.arrivals(Slice::WHOLE).count(), 3);
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
fn a_pause_delays_arrivals() {
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
    assert_eq!(schedule.arrivals(Slice::WHOLE).count(), 7);
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
        let arrivals: Vec<_> = schedule.arrivals(Slice::WHOLE).collect();
        assert_eq!(arrivals.len(), 70);
        assert!(arrivals[19].due < 2 * SECOND && arrivals[20].due >= 2 * SECOND);
    }
}

#[test]
fn poisson_has_its_mean_and_variance() {
    let schedule = Schedule::new(Process::Poisson, &[step(1000.0, 100.0)], None, 7);
    let mut per_second = [0f64; 100];
    for arrival in schedule.arrivals(Slice::WHOLE) {
        per_second[(arrival.due / SECOND) as usize] += 1.0;
    }
    let mean = per_second.iter().sum::<f64>() / 100.0;
    let variance = per_second.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 99.0;
    // Mean 1000 ± 5 standard errors of √10; index of dispersion 1 ± 5·√(2/99).
    assert!((mean - 1000.0).abs() < 16.0, "{mean}");
    assert!((variance / mean - 1.0).abs() < 0.71, "{}", variance / mean);
}

fn trace(offsets: &[u64], speed: f64) -> Trace {
    let mut builder = TraceBuilder::new(speed);
    offsets.iter().for_each(|offset| builder.push(*offset).unwrap());
    builder.finish(None)
}

#[test]
fn a_replay_has_the_recorded_instants_at_its_speed() {
    let offsets = [0, 0, 500_000_000, 1_500_000_001, 4 * SECOND];
    let schedule = Schedule::replay(trace(&offsets, 1.0), None);
    assert_eq!(schedule.arrivals(Slice::WHOLE).map(|a| a.due).collect::<Vec<_>>(), offsets);
    assert_eq!(schedule.total(), 5);
    // One mean gap after the last.
    assert_eq!(schedule.timed_end(), Some(5 * SECOND));
    assert!((schedule.mean_rate(5 * SECOND) - 1.0).abs() < 1e-9);
    let asked: Vec<_> = (0..6).map(|second| schedule.asked_in_second(second)).collect();
    assert_eq!(asked, [3.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    let fast = trace(&offsets, 4.0);
    let due: Vec<_> = (0..6).map(|n| fast.due(n)).collect();
    assert_eq!(due[2..], [Some(125_000_000), Some(375_000_000), Some(SECOND), None]);
    assert_eq!(fast.peak(), 4);
    let cut = Schedule::replay(fast, Some(3));
    assert_eq!((cut.total(), cut.timed_end(), cut.end()), (3, None, Some(375_000_000)));
    assert_eq!(cut.arrivals(Slice::WHOLE).count(), 3);
}

#[test]
fn an_empty_replay_and_one_of_one_instant_end() {
    assert_eq!(Schedule::replay(trace(&[], 1.0), None).arrivals(Slice::WHOLE).count(), 0);
    let burst = Schedule::replay(trace(&[0; 100], 1.0), None);
    assert_eq!((burst.total(), burst.end()), (100, Some(1)));
    assert_eq!(trace(&[0], 1.0).length(), SECOND);
    // Known lengths are kept when they hold every arrival.
    let of = |length| {
        let mut builder = TraceBuilder::new(1.0);
        builder.push(10).unwrap();
        builder.push(5).unwrap();
        builder.finish(Some(length)).length()
    };
    assert_eq!((of(11), of(10)), (11, 20));
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
        let seen = schedule.arrivals(Slice::WHOLE).filter(|a| a.due < t).count() as f64;
        let area = area_by_sum(&stages, t as f64 / SECOND as f64);
        prop_assert!((seen - area).abs() <= 1.0 + 1e-6 * area, "{seen} against {area}");
        prop_assert_eq!(schedule.arrivals(Slice::WHOLE).count() as u64, schedule.total());
        let seconds = (0..=end / SECOND).map(|s| schedule.asked_in_second(s)).sum::<f64>();
        prop_assert!((seconds - area_by_sum(&stages, 1e9)).abs() < 1e-6 * (1.0 + seconds));
    }

    #[test]
    fn shares_are_the_whole(stages in stages(), workers in 1usize..6, poisson: bool, seed: u64) {
        let process = if poisson { Process::Poisson } else { Process::Uniform };
        let schedule = Schedule::new(process, &stages, Some(1000), seed);
        let whole: Vec<_> = schedule.arrivals(Slice::WHOLE).collect();
        let mut parts: Vec<_> = Slice::WHOLE.split(workers).flat_map(|s| schedule.arrivals(s)).collect();
        parts.sort_by_key(|a| a.number);
        prop_assert_eq!(whole, parts);
    }

    #[test]
    fn a_jump_skips_arrivals_due_before_it(
        stages in stages(), kind in 0..3, seed: u64, index in 0usize..4, warmup in 0u64..2,
        jumps in proptest::collection::vec(0..4 * SECOND, 1..5),
    ) {
        let process = match kind {
            0 => Process::Uniform,
            1 => Process::Poisson,
            _ => Process::Bursts { size: 7, jitter: SECOND / 2 },
        };
        let schedule = Schedule::new(process, &stages, Some(3_000), seed);
        let schedule = schedule.after(40.0, Duration::from_secs(warmup));
        let slice = Slice::new(index, 4);
        let mut left: std::collections::VecDeque<_> = schedule.arrivals(slice).collect();
        let (mut share, mut from) = (schedule.arrivals(slice), 0);
        for jump in jumps {
            from += jump;
            let before = left.iter().take_while(|arrival| arrival.due < from).count();
            left.drain(..before);
            prop_assert_eq!(share.skip_before(from), before as u64);
            prop_assert_eq!(share.next(), left.pop_front());
        }
        prop_assert_eq!(share.collect::<Vec<_>>(), Vec::from(left));
    }

    #[test]
    fn due_never_goes_back_and_stays_within_the_end(stages in stages(), poisson: bool) {
        let process = if poisson { Process::Poisson } else { Process::Uniform };
        let schedule = Schedule::new(process, &stages, None, 3);
        let mut last = 0;
        for arrival in schedule.arrivals(Slice::WHOLE) {
            prop_assert!(arrival.due >= last && arrival.due <= schedule.end().unwrap());
            last = arrival.due;
        }
    }

    #[test]
    fn a_trace_keeps_order_counts_and_instants(
        gaps in proptest::collection::vec(prop_oneof![0..1_000u64, 0..SECOND, 0..600 * SECOND], 1..400),
        workers in 1usize..4,
    ) {
        let offsets: Vec<u64> = gaps
            .iter()
            .scan(0, |at, gap| { *at += gap; Some(*at) })
            .collect();
        let trace = trace(&offsets, 1.0);
        for (number, block) in offsets.chunks(64).enumerate() {
            let grain = (block[block.len() - 1] - block[0]) >> 31;
            for (within, offset) in block.iter().enumerate() {
                let due = trace.due((number * 64 + within) as u64).unwrap();
                prop_assert!(due <= *offset && offset - due <= grain, "{due} for {offset}");
            }
        }
        let held: Vec<u64> = (0..trace.arrivals()).map(|n| trace.due(n).unwrap()).collect();
        prop_assert!(held.is_sorted());
        for instant in held.iter().flat_map(|due| [*due, due + 1]) {
            let expected = held.iter().filter(|due| **due < instant).count() as u64;
            prop_assert_eq!(trace.before(instant), expected);
        }
        let schedule = Schedule::replay(trace, None);
        let mut parts: Vec<_> = Slice::WHOLE.split(workers).flat_map(|s| schedule.arrivals(s)).collect();
        parts.sort_by_key(|a| a.number);
        prop_assert_eq!(parts.iter().map(|a| a.due).collect::<Vec<_>>(), held);
    }
}

#[test]
fn bursts_come_when_their_first_is_due() {
    let process = Process::Bursts { size: 4, jitter: 0 };
    let schedule = Schedule::new(process, &[step(10.0, 1.0)], None, 0);
    let due: Vec<_> =
        schedule.arrivals(Slice::WHOLE).map(|arrival| arrival.due / 1_000_000).collect();
    assert_eq!(due, [0, 0, 0, 0, 400, 400, 400, 400, 800, 800]);
    // Two workers share each burst.
    let half: Vec<_> = schedule.arrivals(Slice::new(1, 2)).map(|arrival| arrival.number).collect();
    assert_eq!(half, [1, 3, 5, 7, 9]);
}

proptest! {
    #[test]
    fn jitter_delays_each_arrival_and_keeps_their_order(
        size in 1u64..20, jitter in 1u64..500_000_000, seed in any::<u64>(), workers in 1usize..4,
    ) {
        let stages = [step(200.0, 2.0)];
        let bursts = |jitter| Schedule::new(Process::Bursts { size, jitter }, &stages, None, seed);
        let (plain, jittered) = (bursts(0), bursts(jitter));
        let mut numbers = Vec::new();
        for worker in 0..workers {
            let arrivals: Vec<_> = jittered.arrivals(Slice::new(worker, workers)).collect();
            prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.due));
            for arrival in &arrivals {
                let due = plain.due(arrival.number).unwrap();
                prop_assert!((due..due + jitter).contains(&arrival.due));
                prop_assert_eq!(jittered.due(arrival.number), Some(arrival.due));
            }
            numbers.extend(arrivals.iter().map(|arrival| arrival.number));
        }
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..400).collect::<Vec<_>>());
    }
}
