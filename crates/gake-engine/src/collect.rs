//! Joining what the workers hand over: by the second, and as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Ending, Generator, Interval, Point, Run, Series, Tally, Watched};
use gake_core::schedule::Schedule;
use gake_core::work::Gauges;

use crate::start::Event;

/// One second of a run, of all workers.
#[derive(Debug, Default)]
pub struct Second {
    /// How many seconds since the epoch are complete with it.
    pub second: u64,
    /// What was recorded in it, after the warm-up.
    pub tally: Tally,
    /// What the warm-up saw in it.
    pub warmup: Counts,
    /// Levels.
    pub gauges: Gauges,
    /// CPU time of the workers in it.
    pub cpu: Nanos,
    workers: usize,
}

/// Joins the events of all workers into seconds and into a [`Run`]. Its memory does not grow with
/// the run.
#[derive(Debug)]
pub struct Collector {
    plan: Arc<Plan>,
    schedule: Option<Schedule>,
    /// Seconds that not every worker has handed over yet.
    pending: BTreeMap<u64, Second>,
    /// Empty tallies to be used again.
    retired: Vec<Tally>,
    /// The last second each worker has handed over; `u64::MAX` when it has ended.
    watermarks: Vec<u64>,
    tally: Tally,
    warmup: Counts,
    series: Series,
    peak: u64,
    cpu: Vec<Nanos>,
    run_delay: Nanos,
    arrivals_end: Nanos,
    last_fired: Nanos,
    last_ended: Nanos,
    done: Nanos,
    log_lost: u64,
}

impl Collector {
    /// A collector for the `workers` workers of a run that follows `plan` with `seed`.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, seed: u64, workers: usize) -> Self {
        Self {
            plan: Arc::clone(plan),
            schedule: plan.schedule(seed),
            pending: BTreeMap::new(),
            retired: Vec::new(),
            watermarks: vec![0; workers],
            tally: Tally::new(plan.labels.len()),
            warmup: Counts::default(),
            series: Series::default(),
            peak: 0,
            cpu: vec![0; workers],
            run_delay: 0,
            arrivals_end: 0,
            last_fired: 0,
            last_ended: 0,
            done: 0,
            log_lost: 0,
        }
    }

    /// Whether every worker has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.watermarks.iter().all(|mark| *mark == u64::MAX)
    }

    /// What the run so far adds up to, after the warm-up.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Outcomes that the log could not take in time.
    #[must_use]
    pub fn log_lost(&self) -> u64 {
        self.log_lost
    }

    /// How many arrivals the plan has due in the second before `second` is complete.
    #[must_use]
    pub fn asked_in(&self, second: u64) -> Option<f64> {
        Some(self.schedule.as_ref()?.asked_in_second(second.saturating_sub(1)))
    }

    /// Takes an event in. A tally is given back through `spare`, emptied.
    pub fn take(&mut self, event: Event, mut spare: impl FnMut(usize, Tally)) {
        match event {
            Event::Interval(interval) => {
                let worker = interval.worker;
                if let Some(tally) = self.take_interval(*interval) {
                    spare(worker, tally);
                }
            }
            Event::Ended { worker, arrivals_end, last_fired, last_ended, done, log_lost } => {
                self.log_lost += log_lost;
                self.watermarks[worker] = u64::MAX;
                self.arrivals_end = self.arrivals_end.max(arrivals_end);
                self.last_fired = self.last_fired.max(last_fired);
                self.last_ended = self.last_ended.max(last_ended);
                self.done = self.done.max(done);
            }
            Event::Failed(_) => {}
        }
    }

    /// Returns an empty tally for the worker to go on with, when there is one.
    fn take_interval(&mut self, interval: Interval) -> Option<Tally> {
        let Interval { worker, second, mut tally, warmup, gauges, cpu, run_delay } = interval;
        self.watermarks[worker] = self.watermarks[worker].max(second);
        if second * SECOND > self.warmup_end() {
            self.cpu[worker] += cpu;
            self.run_delay += run_delay;
        }
        let spare = self.retired.pop();
        let pending = self.pending.entry(second).or_default();
        pending.second = second;
        let spare = if pending.workers == 0 {
            pending.tally = tally;
            spare
        } else {
            pending.tally.merge(&tally);
            tally.clear();
            self.retired.extend(spare);
            Some(tally)
        };
        pending.warmup.merge(&warmup);
        pending.gauges = pending.gauges.beside(gauges);
        pending.cpu += cpu;
        pending.workers += 1;
        spare
    }

    /// The next second that every worker has handed over, in order.
    pub fn next_second(&mut self) -> Option<Second> {
        let complete = self.watermarks.iter().copied().min().unwrap_or(u64::MAX);
        let first = self.pending.first_entry()?;
        if *first.key() > complete {
            return None;
        }
        let second = first.remove();
        self.tally.merge(&second.tally);
        self.warmup.merge(&second.warmup);
        self.peak = self.peak.max(second.gauges.peak);
        let mut point = Point::new(second.second - 1, &second.tally);
        point.asked = self.asked_in(second.second);
        point.open = second.gauges.open;
        point.cpu = second.cpu;
        self.series.push(point);
        Some(second)
    }

    /// Takes a second back, so that its room is used again: the memory it has is warm.
    pub fn retire(&mut self, second: Second) {
        if self.retired.len() < self.watermarks.len() {
            let mut tally = second.tally;
            tally.clear();
            self.retired.push(tally);
        }
    }

    fn warmup_end(&self) -> Nanos {
        u64::try_from(self.plan.warmup.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The whole run. Call it when it is over and every second was taken.
    #[must_use]
    pub fn finish(self, started_unix_ns: u64, ending: Ending, cores: usize) -> Run {
        let warmup_end = self.warmup_end();
        // A closed loop that only a count ends is over when its last answer is there.
        let timed = self.plan.length().is_some() || self.schedule.is_some();
        let arrivals_end =
            if timed || ending != Ending::Done { self.arrivals_end } else { self.done };
        let measured = arrivals_end.saturating_sub(warmup_end);
        let elapsed = self.done.max(arrivals_end.min(self.arrivals_end));
        let span = elapsed.saturating_sub(warmup_end).max(1);
        let busiest = self.cpu.iter().copied().max().unwrap_or(0);
        Run {
            asked_rate: self.schedule.as_ref().map(|schedule| {
                schedule.mean_rate(schedule.end().unwrap_or(Nanos::MAX).min(arrivals_end))
            }),
            started_unix_ns,
            measured,
            sending: measured.max(self.last_fired.saturating_sub(warmup_end)),
            completing: measured.max(self.last_ended.saturating_sub(warmup_end)),
            elapsed,
            ending,
            tally: self.tally,
            warmup: self.warmup,
            series: self.series,
            peak_connections: self.peak,
            generator: Generator {
                cpu: self.cpu.iter().sum(),
                busiest: busiest as f64 / span as f64,
                run_delay: self.run_delay,
                rss_bytes: crate::usage::process_rss(),
                threads: self.cpu.len(),
                cores,
            },
            events: Vec::new(),
            watched: Watched::default(),
            plan: (*self.plan).clone(),
        }
    }
}
