//! Turns a recorded run into an observation.

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, LatencyMetric, Run, Tally};
use gake_text::units;

use super::trial::{ClauseCounts, Observation, TrialSecond};
use crate::finding;
use crate::lanes;
use crate::objective::{BadCount, Clause, ClauseBound};
use crate::stats::{CPU_BUSY, RunRates, mean_in_flight, share};
use crate::validity::{self, Validity};

/// Lateness counts from this share of a latency limit on.
const OWN_DELAY: f64 = 0.2;
/// The generator is the limit when late requests exceed this share of the bad requests allowed.
const OWN_PART: f64 = 0.5;
/// Share of requests that waited for a free connection, from which on the connections may be the
/// limit.
const BLOCKED_PART: f64 = 0.01;
/// Share of the requests that a target refuses or never responds to, from which on it is the limit.
const REFUSED: f64 = 0.05;
/// Maximum number of seconds recorded; trials are shorter.
const SECONDS_MAX: usize = 3_600;

/// Collects the seconds of one run, which its totals do not contain.
#[derive(Debug)]
pub struct Observer<'a> {
    clauses: &'a [Clause],
    labels: &'a [String],
    seen: Vec<ClauseCounts>,
    seconds: Vec<TrialSecond>,
}

impl<'a> Observer<'a> {
    /// An observer of a run with these labels.
    #[must_use]
    pub fn new(clauses: &'a [Clause], labels: &'a [String]) -> Self {
        Self {
            clauses,
            labels,
            seen: vec![ClauseCounts::default(); clauses.len()],
            seconds: Vec::new(),
        }
    }

    /// Adds the records of one second after the warm-up.
    pub fn second(&mut self, tally: &Tally) {
        if (tally.counts.due() == 0 && self.seconds.is_empty()) || self.seconds.len() >= SECONDS_MAX
        {
            return;
        }
        let mut good = tally.counts.ok as f64;
        for (clause, seen) in self.clauses.iter().zip(&mut self.seen) {
            match clause.bound {
                ClauseBound::Share(_) => {
                    let bad = clause.count(tally, self.labels);
                    seen.total.bad += bad.bad;
                    seen.total.of += bad.of;
                    seen.slices.push(bad);
                    good = good.min(tally.counts.due() as f64 - bad.bad);
                }
                ClauseBound::Level(_) => seen.levels.extend(clause.level(tally, self.labels)),
            }
        }
        self.seconds.push(point(tally, good.max(0.0)));
    }

    /// Adds a reading of the target's level in the same second.
    pub fn level(&mut self, name: &str, value: f64) {
        for (clause, seen) in self.clauses.iter().zip(&mut self.seen) {
            if clause.target_level() == Some(name) && seen.levels.len() < SECONDS_MAX {
                seen.levels.push(value);
            }
        }
    }

    /// Bad requests so far, by clause.
    #[must_use]
    pub fn bad(&self) -> Vec<f64> {
        self.seen.iter().map(|seen| seen.total.bad).collect()
    }

    /// The seconds so far.
    #[must_use]
    pub fn seconds(&self) -> &[TrialSecond] {
        &self.seconds
    }

    /// The observation of the finished run.
    #[must_use]
    pub fn finish(mut self, run: &Run) -> Observation {
        let counts = &run.tally.counts;
        let measured = run.measured as f64 / SECOND as f64;
        // Completions of the drain belong to the last measured second.
        let len = (measured.ceil() as usize).max(1);
        for seen in &mut self.seen {
            fold_tail(&mut seen.slices, len);
        }
        // Idle connections held during the load, and those that failed or were lost.
        let idle = run.plan.idle_connections as f64;
        let lost = [counts, &run.warmup].map(|c| c.idle_failed + c.idle_lost).iter().sum::<u64>();
        for (clause, seen) in self.clauses.iter().zip(&mut self.seen) {
            if idle > 0.0 && matches!(clause.bound, ClauseBound::Share(_)) {
                seen.total.bad += (lost as f64).min(idle);
                seen.total.of += idle;
            }
        }
        for (clause, seen) in self.clauses.iter().zip(&mut self.seen) {
            seen.percentile = clause.measured(&run.tally, self.labels);
        }
        let closed = matches!(run.plan.load.one(), Some(Load::Closed { .. }));
        let response = run.tally.latency.of(LatencyMetric::OkResponse);
        Observation {
            measured,
            took: run.elapsed as f64 / SECOND as f64,
            due: counts.due(),
            ok: counts.ok,
            errors: counts.due().saturating_sub(counts.ok),
            unfinished: counts.unfinished + counts.dropped,
            throughput: match closed {
                // In a steady state as many end in the interval as are due.
                true => counts.ok as f64 / measured.max(1e-3),
                false => RunRates::of(run).goodput,
            },
            response: response.mean() / SECOND as f64,
            in_flight: mean_in_flight(run),
            limited: limited(run, self.clauses),
            idle: finding::target_is_idle(run),
            clauses: self.seen,
            seconds: self.seconds,
        }
    }
}

fn point(tally: &Tally, good: f64) -> TrialSecond {
    let counts = &tally.counts;
    let mean = |metric| tally.latency.of(metric).mean() / SECOND as f64;
    let (other, fault) = (mean(LatencyMetric::OtherResponse), mean(LatencyMetric::FaultResponse));
    let of = |metric| tally.latency.of(metric).count() as f64;
    let (others, faults) = (of(LatencyMetric::OtherResponse), of(LatencyMetric::FaultResponse));
    TrialSecond {
        due: counts.due() as f64,
        ok: counts.ok as f64,
        failed: counts.due().saturating_sub(counts.ok) as f64,
        good,
        response: mean(LatencyMetric::OkResponse),
        in_flight: tally.in_flight_ns as f64 / SECOND as f64,
        failure: (other * others + fault * faults) / (others + faults).max(1.0),
    }
}

/// Adds the counts after the first `len` to the last of them.
fn fold_tail(slices: &mut Vec<BadCount>, len: usize) {
    while slices.len() > len {
        let Some(tail) = slices.pop() else { return };
        if let Some(last) = slices.last_mut() {
            last.bad += tail.bad;
            last.of += tail.of;
        }
    }
}

/// Why the generator may have limited the run: it sent less than asked, or its own delay is enough
/// to miss an objective.
fn limited(run: &Run, clauses: &[Clause]) -> Option<String> {
    const RULES: [&str; 3] = ["lateness", "generator_cpu", "generator_faults"];
    let counts = &run.tally.counts;
    if counts.due() == 0 {
        return Some("nothing was sent".to_owned());
    }
    if counts.lost > 0 {
        return Some("an agent was lost".to_owned());
    }
    let (_, reasons) = validity::check(run);
    let own = |rule: &str| RULES.contains(&rule) && closed_or_open(run, rule);
    // A target that refuses users, or never responds to them, is the limit.
    let refused = run.tally.faults_where(|fault| !fault.is_generators()) + counts.unfinished;
    if share(refused, counts.due()) >= REFUSED
        && run.tally.faults_where(Fault::is_generators) == 0
        && run.generator.busiest <= CPU_BUSY
    {
        return None;
    }
    if let Some(reason) = reasons.iter().find(|r| r.level == Validity::Invalid && own(r.rule)) {
        return Some(reason.text.clone());
    }
    let waited = share(run.tally.latency.of(LatencyMetric::Blocked).count(), counts.sent);
    let sent = RunRates::of(run).sent;
    if let Some(asked) = run.asked_rate
        && sent < 0.95 * asked
        && !is_chance(counts.sent as f64, counts.sent as f64 * asked / sent)
        && waited < 0.01
        && counts.dropped == 0
    {
        return Some(format!("only {} of {} were sent", units::rate(sent), units::rate(asked)));
    }
    if run.tally.faults_where(Fault::is_generators) * 1_000 > counts.due() {
        return Some("this machine ran out of ports, descriptors or memory".to_owned());
    }
    own_limit(run, clauses).or_else(|| clauses.iter().find_map(|clause| own_delay(run, clause)))
}

/// Whether arrivals of a Poisson process are so few by chance: within three standard deviations.
fn is_chance(seen: f64, expected: f64) -> bool {
    expected - seen <= 3.0 * expected.sqrt()
}

/// All connections were busy although the target met every latency objective: more connections
/// would allow more load.
fn own_limit(run: &Run, clauses: &[Clause]) -> Option<String> {
    let (latency, counts) = (&run.tally.latency, &run.tally.counts);
    let service = latency.of(LatencyMetric::Service);
    let within = |clause: &Clause| match (clause.limit(), clause.bound) {
        (Some(limit), ClauseBound::Share(allowed)) => {
            let slow = service.count() - service.count_up_to(limit);
            share(slow, service.count()) <= allowed
        }
        _ => true,
    };
    let waited = share(latency.of(LatencyMetric::Blocked).count(), counts.sent);
    let in_time = service.count() > 0 && clauses.iter().all(within);
    (waited >= BLOCKED_PART && in_time).then(|| {
        format!(
            "all {} were busy while the target responded in {} (p99): raise the limit with -c",
            units::plural(run.plan.connections as u64, lanes::noun(&run.plan)),
            units::duration(service.quantile(0.99) as f64)
        )
    })
}

/// Lateness exists only in an open loop.
fn closed_or_open(run: &Run, rule: &str) -> bool {
    rule != "lateness" || !matches!(run.plan.load.one(), Some(Load::Closed { .. }))
}

fn own_delay(run: &Run, clause: &Clause) -> Option<String> {
    let (limit, ClauseBound::Share(allowed)) = (clause.limit()?, clause.bound) else { return None };
    let bound = (OWN_DELAY * limit as f64) as Nanos;
    let lateness = run.tally.latency.of(LatencyMetric::Lateness);
    let late = lateness.count() - lateness.count_up_to(bound);
    (late as f64 > OWN_PART * allowed * lateness.count() as f64).then(|| {
        format!(
            "{} of the requests left over {} late: the generator or this machine was too slow",
            units::percent(share(late, lateness.count())),
            units::duration(bound as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunBuilder, answered};

    fn clauses(texts: &[&str]) -> Vec<Clause> {
        let clause = |text: &&str| text.parse::<crate::Objective>().unwrap().clause().unwrap();
        texts.iter().map(clause).collect()
    }

    #[test]
    fn a_run_becomes_counts_of_bad_requests() {
        let clauses = clauses(&["p99<50ms", "errors<0.1%", "mean<1s"]);
        let run = RunBuilder::of(950, 5 * MS).more(30, 80 * MS).status(503, 20).run();
        let mut observer = Observer::new(&clauses, &run.plan.labels);
        observer.second(&run.tally);
        assert_eq!(observer.bad(), [50.0, 20.0, 0.0]);
        let seen = observer.finish(&run);
        assert_eq!((seen.due, seen.ok, seen.errors), (1_000, 980, 20));
        assert_eq!((seen.measured, seen.rate()), (10.0, 100.0));
        assert_eq!(seen.clauses[0].total, BadCount { bad: 50.0, of: 1_000.0 });
        assert_eq!(seen.clauses[2].levels.len(), 1);
        assert_eq!(seen.seconds[0].good, 950.0);
        assert_eq!(seen.limited, None);
    }

    #[test]
    fn completions_of_the_drain_belong_to_the_last_second() {
        let clauses = clauses(&["p99<50ms"]);
        let run = RunBuilder::of(100, 80 * MS).run();
        let mut observer = Observer::new(&clauses, &run.plan.labels);
        for _ in 0..13 {
            observer.second(&run.tally);
        }
        let seen = observer.finish(&run);
        assert_eq!(seen.clauses[0].slices.len(), 10);
        assert_eq!(seen.clauses[0].slices[9], BadCount { bad: 400.0, of: 400.0 });
    }

    #[test]
    fn a_lost_idle_connection_is_bad() {
        let clauses = clauses(&["errors<1%"]);
        let mut run = RunBuilder::of(200, 5 * MS).run();
        run.plan.idle_connections = 800;
        (run.tally.counts.idle_lost, run.warmup.idle_failed) = (10, 20);
        let seen = Observer::new(&clauses, &[]).finish(&run);
        assert_eq!(seen.clauses[0].total, BadCount { bad: 30.0, of: 800.0 });
    }

    #[test]
    fn a_late_generator_is_the_limit() {
        let clauses = clauses(&["p99<50ms"]);
        let seen = |run: Run| Observer::new(&clauses, &[]).finish(&run).limited;
        let late = |count| {
            RunBuilder::of(1_000 - count, 5 * MS)
                .add(count, answered(20 * MS, 22 * MS, 25 * MS, 200))
        };
        assert_eq!(seen(late(2).run()), None);
        assert!(seen(late(8).run()).unwrap().contains("late"));
        assert!(
            seen(RunBuilder::of(900, 5 * MS).asked(1_000.0).run()).unwrap().contains("were sent")
        );
        // Five of 6.7 arrivals are as many as chance has.
        assert_eq!(seen(RunBuilder::of(5, 5 * MS).asked(6.7).run()), None);
        // A closed loop has no due instant.
        assert_eq!(seen(RunBuilder::of(900, 5 * MS).closed().run()), None);
    }
}
