//! From a recorded run to an observation.

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, LatencyMetric, Run, Tally};
use gake_text::units;

use super::trial::{Observation, Seen, TrialSecond};
use crate::finding;
use crate::lanes;
use crate::objective::{Bad, Bound, Clause};
use crate::stats::{Rates, mean_in_flight, share};
use crate::validity::{self, Validity};

/// The generator's own delay counts against it from this part of a latency objective on.
const OWN_DELAY: f64 = 0.2;
/// It decides when this part of the bad requests allowed may be its doing.
const OWN_PART: f64 = 0.5;
/// Requests that waited for a free connection, from which on the bound on connections may decide.
const BLOCKED_PART: f64 = 0.01;
/// Seconds kept at most; trials are shorter.
const SECONDS_MAX: usize = 3_600;

/// Follows one run second by second, since the whole run no longer tells them apart.
#[derive(Debug)]
pub struct Observer<'a> {
    clauses: &'a [Clause],
    labels: &'a [String],
    seen: Vec<Seen>,
    seconds: Vec<TrialSecond>,
}

impl<'a> Observer<'a> {
    /// Of a run with these labels.
    #[must_use]
    pub fn new(clauses: &'a [Clause], labels: &'a [String]) -> Self {
        Self { clauses, labels, seen: vec![Seen::default(); clauses.len()], seconds: Vec::new() }
    }

    /// Takes in what was recorded in one second, the warm-up left out.
    pub fn second(&mut self, tally: &Tally) {
        if (tally.counts.due() == 0 && self.seconds.is_empty()) || self.seconds.len() >= SECONDS_MAX
        {
            return;
        }
        let mut good = tally.counts.ok as f64;
        for (clause, seen) in self.clauses.iter().zip(&mut self.seen) {
            match clause.bound {
                Bound::Share(_) => {
                    let bad = clause.count(tally, self.labels);
                    seen.total.bad += bad.bad;
                    seen.total.of += bad.of;
                    seen.slices.push(bad);
                    good = good.min(tally.counts.due() as f64 - bad.bad);
                }
                Bound::Level(_) => seen.levels.extend(clause.level(tally, self.labels)),
            }
        }
        self.seconds.push(point(tally, good.max(0.0)));
    }

    /// A level of the target, read in the same second.
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

    /// The observation, when the run is over.
    #[must_use]
    pub fn finish(mut self, run: &Run) -> Observation {
        let counts = &run.tally.counts;
        let measured = run.measured as f64 / SECOND as f64;
        // What a drain completes was due in the last second measured.
        let len = (measured.ceil() as usize).max(1);
        for seen in &mut self.seen {
            fold_tail(&mut seen.slices, len);
        }
        // Connections that are held beside the load, and those of them that were not to be had.
        let idle = run.plan.idle_connections as f64;
        let lost = [counts, &run.warmup].map(|c| c.idle_failed + c.idle_lost).iter().sum::<u64>();
        for (clause, seen) in self.clauses.iter().zip(&mut self.seen) {
            if idle > 0.0 && matches!(clause.bound, Bound::Share(_)) {
                seen.total.bad += (lost as f64).min(idle);
                seen.total.of += idle;
            }
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
                // Those due in the window, in a steady state, are as many as end in it.
                true => counts.ok as f64 / measured.max(1e-3),
                false => Rates::of(run).goodput,
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

/// Adds what lies beyond the first `len` slices to the last of them.
fn fold_tail(slices: &mut Vec<Bad>, len: usize) {
    while slices.len() > len {
        let Some(tail) = slices.pop() else { return };
        if let Some(last) = slices.last_mut() {
            last.bad += tail.bad;
            last.of += tail.of;
        }
    }
}

/// Why the generator may have decided the run: it was not what it asked for, or its own delay is
/// enough to miss an objective.
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
    if let Some(reason) = reasons.iter().find(|r| r.level == Validity::Invalid && own(r.rule)) {
        return Some(reason.text.clone());
    }
    let waited = share(run.tally.latency.of(LatencyMetric::Blocked).count(), counts.sent);
    let sent = Rates::of(run).sent;
    if let Some(asked) = run.asked_rate
        && sent < 0.95 * asked
        && waited < 0.01
        && counts.dropped == 0
    {
        return Some(format!("{} were sent of {}", units::rate(sent), units::rate(asked)));
    }
    if run.tally.faults_where(Fault::is_generators) * 1_000 > counts.due() {
        return Some("this machine ran out of ports, descriptors or memory".to_owned());
    }
    own_bound(run, clauses).or_else(|| clauses.iter().find_map(|clause| own_delay(run, clause)))
}

/// All connections were busy although the target answered within every latency objective: a higher
/// bound on them lets it answer more.
fn own_bound(run: &Run, clauses: &[Clause]) -> Option<String> {
    let (latency, counts) = (&run.tally.latency, &run.tally.counts);
    let service = latency.of(LatencyMetric::Service);
    let within = |clause: &Clause| match (clause.limit(), clause.bound) {
        (Some(limit), Bound::Share(allowed)) => {
            let slow = service.count() - service.count_up_to(limit);
            share(slow, service.count()) <= allowed
        }
        _ => true,
    };
    let waited = share(latency.of(LatencyMetric::Blocked).count(), counts.sent);
    let answered = service.count() > 0 && clauses.iter().all(within);
    (waited >= BLOCKED_PART && answered).then(|| {
        format!(
            "all {} were busy while the target answered in {} (p99): raise the bound with -c",
            units::plural(run.plan.connections as u64, lanes::noun(&run.plan)),
            units::duration(service.quantile(0.99) as f64)
        )
    })
}

/// Lateness is of an open loop: users have no due instant but their own.
fn closed_or_open(run: &Run, rule: &str) -> bool {
    rule != "lateness" || !matches!(run.plan.load.one(), Some(Load::Closed { .. }))
}

fn own_delay(run: &Run, clause: &Clause) -> Option<String> {
    let (limit, Bound::Share(allowed)) = (clause.limit()?, clause.bound) else { return None };
    let part = (OWN_DELAY * limit as f64) as Nanos;
    let lateness = run.tally.latency.of(LatencyMetric::Lateness);
    let late = lateness.count() - lateness.count_up_to(part);
    (late as f64 > OWN_PART * allowed * lateness.count() as f64).then(|| {
        format!(
            "{} of the requests left over {} late: the generator, or what else runs on this \
             machine",
            units::percent(share(late, lateness.count())),
            units::duration(part as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunSample, answered};

    fn clauses(texts: &[&str]) -> Vec<Clause> {
        let clause = |text: &&str| text.parse::<crate::Objective>().unwrap().clause().unwrap();
        texts.iter().map(clause).collect()
    }

    #[test]
    fn a_run_becomes_counts_of_bad_requests() {
        let clauses = clauses(&["p99<50ms", "errors<0.1%", "mean<1s"]);
        let run = RunSample::of(950, 5 * MS).more(30, 80 * MS).status(503, 20).run();
        let mut observer = Observer::new(&clauses, &run.plan.labels);
        observer.second(&run.tally);
        assert_eq!(observer.bad(), [50.0, 20.0, 0.0]);
        let seen = observer.finish(&run);
        assert_eq!((seen.due, seen.ok, seen.errors), (1_000, 980, 20));
        assert_eq!((seen.measured, seen.rate()), (10.0, 100.0));
        assert_eq!(seen.clauses[0].total, Bad { bad: 50.0, of: 1_000.0 });
        assert_eq!(seen.clauses[2].levels.len(), 1);
        assert_eq!(seen.seconds[0].good, 950.0);
        assert_eq!(seen.limited, None);
    }

    #[test]
    fn what_the_drain_ends_belongs_to_the_last_second() {
        let clauses = clauses(&["p99<50ms"]);
        let run = RunSample::of(100, 80 * MS).run();
        let mut observer = Observer::new(&clauses, &run.plan.labels);
        for _ in 0..13 {
            observer.second(&run.tally);
        }
        let seen = observer.finish(&run);
        assert_eq!(seen.clauses[0].slices.len(), 10);
        assert_eq!(seen.clauses[0].slices[9], Bad { bad: 400.0, of: 400.0 });
    }

    #[test]
    fn a_connection_that_cannot_be_held_is_a_bad_one() {
        let clauses = clauses(&["errors<1%"]);
        let mut run = RunSample::of(200, 5 * MS).run();
        run.plan.idle_connections = 800;
        (run.tally.counts.idle_lost, run.warmup.idle_failed) = (10, 20);
        let seen = Observer::new(&clauses, &[]).finish(&run);
        assert_eq!(seen.clauses[0].total, Bad { bad: 30.0, of: 800.0 });
    }

    #[test]
    fn a_generator_that_is_late_has_decided() {
        let clauses = clauses(&["p99<50ms"]);
        let seen = |run: Run| Observer::new(&clauses, &[]).finish(&run).limited;
        let late = |count| {
            RunSample::of(1_000 - count, 5 * MS)
                .add(count, answered(20 * MS, 22 * MS, 25 * MS, 200))
        };
        assert_eq!(seen(late(2).run()), None);
        assert!(seen(late(8).run()).unwrap().contains("late"));
        assert!(
            seen(RunSample::of(900, 5 * MS).asked(1_000.0).run()).unwrap().contains("were sent")
        );
        // A closed loop has no due instant.
        assert_eq!(seen(RunSample::of(900, 5 * MS).closed().run()), None);
    }
}
