//! Properties of the slices of a plan.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::schedule::Process;

fn process() -> impl Strategy<Value = Process> {
    prop_oneof![
        Just(Process::Uniform),
        Just(Process::Poisson),
        (1u64..9, 0u64..1 << 28).prop_map(|(size, jitter)| Process::Bursts { size, jitter }),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let ms = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
    let stage = (0.0..300.0f64, 0.0..300.0f64, ms(100..2_000))
        .prop_map(|(from, to, duration)| Stage { from, to, duration });
    let limit = prop::option::of(1u64..400);
    (vec(stage, 1..4), process(), ms(0..500), limit, 1usize..40).prop_map(
        |(stages, process, warmup, requests, max_in_flight)| Plan {
            warmup,
            requests,
            max_in_flight,
            ..Plan::new("a test", Load::Open { stages, process })
        },
    )
}

/// The slices of a plan for the workers of several processes.
fn slices(plan: &Plan, processes: &[usize]) -> Vec<Slice> {
    let of = processes.len();
    let each = processes.iter().enumerate().flat_map(|(index, workers)| {
        let process = Slice::new(index, of);
        (0..*workers).filter_map(move |worker| plan.slice(process, Slice::new(worker, *workers)))
    });
    each.collect()
}

proptest! {
    #[test]
    fn the_arrivals_of_all_processes_are_the_schedule(
        plan in plan(), seed: u64, processes in vec(1usize..6, 1..7),
    ) {
        let Some(schedule) = plan.schedule(seed) else { return Ok(()) };
        let mut all: Vec<_> = slices(&plan, &processes)
            .into_iter()
            .flat_map(|slice| schedule.arrivals(slice).map(|arrival| (arrival.number, arrival.due)))
            .collect();
        all.sort_unstable();
        let mut whole: Vec<_> =
            schedule.arrivals(Slice::WHOLE).map(|arrival| (arrival.number, arrival.due)).collect();
        whole.sort_unstable();
        prop_assert_eq!(all, whole);
    }

    #[test]
    fn the_lanes_and_counts_of_all_processes_are_the_whole(
        plan in plan(), total: u64, processes in vec(1usize..6, 1..7),
    ) {
        let slices = slices(&plan, &processes);
        let lanes: Vec<_> = slices.iter().map(|slice| slice.count(plan.lanes())).collect();
        prop_assert_eq!(lanes.iter().sum::<usize>(), plan.lanes());
        prop_assert!(lanes.iter().all(|lanes| *lanes > 0), "a slice without a lane");
        prop_assert_eq!(slices.iter().map(|slice| slice.count_u64(total)).sum::<u64>(), total);
    }
}
