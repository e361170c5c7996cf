//! The simulated seeds, and invariants of each.

use std::ops::Range;

use gake_core::clock::SECOND;
use gake_core::plan::ExpectedStatus;
use gake_core::record::Tally;
use gake_core::schedule::Slice;

use super::{MS, Sim, SimFaults, SimResult, arrivals};
use crate::OnLoss;
use crate::coordinator::join::tests::outcome;

/// Simulates a seed, and compares the result with one machine.
fn simulate(seed: u64, agents: usize, seconds: u64, faults: SimFaults) -> SimResult {
    let sim = Sim::new(seed, agents, seconds, faults);
    let whole = arrivals(&sim.plan, seed, Slice::WHOLE);
    let end = sim.run();
    let counts = end.run.tally.counts;
    assert_eq!(counts.sent, end.counted, "seed {seed}: each arrival counts once");
    assert!(counts.sent <= end.fired, "seed {seed}: {} sent, {} fired", counts.sent, end.fired);
    if !end.aborted {
        assert_eq!(counts.due(), whole.len() as u64, "seed {seed}: due = sent + dropped");
    }
    assert_eq!(counts.dropped, counts.lost, "seed {seed}");
    if end.lost == 0 {
        let mut tally = Tally::default();
        for arrival in &whole {
            let took = 1 + arrival.number % 1_000 * MS;
            tally.record(&outcome(arrival.due, took), &ExpectedStatus::default());
        }
        assert_eq!(end.run.tally, tally, "seed {seed}: the figures of one machine");
    }
    end
}

/// The seeds to simulate.
fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let first = number("GAKE_SIM_FIRST").unwrap_or(0);
    first..first + number("GAKE_SIM_SEEDS").unwrap_or(usual)
}

/// Statistics of several seeds.
#[derive(Default)]
struct SeedStats {
    /// Seeds that lost agents whose arrivals were completely taken over.
    replaced: u64,
    /// Seeds that lost no agents.
    whole: u64,
    count: u64,
}

impl SeedStats {
    fn of(seeds: impl Iterator<Item = u64>) -> Self {
        let mut ends = Self::default();
        seeds.for_each(|seed| ends.add(seed));
        ends
    }

    fn add(&mut self, seed: u64) {
        let faults = SimFaults {
            kills: !seed.is_multiple_of(3),
            outages: seed % 4 > 1,
            orphans: seed % 5 > 2,
            // Seeds 1 and 5 of six stay as they were when 217 and 5957 failed.
            drifts: seed % 6 == 2,
            returns: seed % 6 == 4,
        };
        let agents = 2 + (seed % 7) as usize;
        let end = simulate(seed, agents, 12, faults);
        self.count += 1;
        self.replaced += u64::from(end.lost > 0 && end.unreplaced == 0);
        self.whole += u64::from(end.lost == 0);
        // After the faults, everything is resent, and the last second has begun. No later entry
        // reveals the loss of the last journal entry: it is resent after 1.5 s, and may be lost
        // again (seed 5957).
        let has_journal = faults.orphans || !seed.is_multiple_of(4);
        let calm = end.faults_end / SECOND + if has_journal { 8 } else { 6 };
        let is_made_up = end.on_loss == OnLoss::Redistribute && end.unreplaced == 0;
        if is_made_up && !end.aborted {
            let late: u64 = end
                .run
                .series
                .points()
                .iter()
                .filter(|point| point.second >= calm)
                .map(|point| point.counts.dropped)
                .sum();
            assert_eq!(late, 0, "seed {seed}: dropped after others took over");
        }
    }
}

#[test]
fn each_arrival_counts_once_under_any_network_faults() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let ends: Vec<_> = std::thread::scope(|scope| {
        let part = |first| move || SeedStats::of(seeds(1_000).skip(first).step_by(threads));
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(part(first))).collect();
        parts
            .into_iter()
            .map(|part| part.join().expect("a seed failed; it is named above"))
            .collect()
    });
    let reached = |what: fn(&SeedStats) -> u64| ends.iter().map(what).sum::<u64>() > 0;
    let has_both = reached(|ends| ends.replaced) && reached(|ends| ends.whole);
    assert!(has_both || std::env::var_os("GAKE_SIM_FIRST").is_some(), "the seeds reach both");
}

#[test]
fn seeds_that_once_failed() {
    let ends = SeedStats::of([217, 5957].into_iter());
    assert_eq!(ends.count, 2);
}

#[test]
fn a_thousand_agents_are_one_run() {
    let (drifts, returns) = (false, false);
    for (seed, kills) in [(1, false), (2, true)] {
        simulate(
            seed,
            1_000,
            3,
            SimFaults { kills, outages: false, orphans: kills, drifts, returns },
        );
    }
    // NATS has an outage, too.
    let (kills, outages, orphans, drifts, returns) = (true, true, false, true, true);
    let faults = SimFaults { kills, outages, orphans, drifts, returns };
    let end = simulate(56, 1_000, 3, faults);
    assert!(end.on_loss == OnLoss::Continue && end.lost > 0, "{} lost", end.lost);
    assert_eq!(end.taken_over, 0);
    let end = simulate(32, 1_000, 10, faults);
    assert!(end.on_loss == OnLoss::Redistribute && end.lost > 0, "{} lost", end.lost);
    assert!(end.taken_over > 0);
}
