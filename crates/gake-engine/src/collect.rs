//! Joins the intervals of all workers into seconds and into a run.

use std::sync::Arc;

use gake_core::clock::{Nanos, SECOND, TENTH};
use gake_core::plan::Plan;
use gake_core::record::{
    Counts, FailedBodies, Generator, Interval, Provenance, Run, RunEnd, RunEvent, Series,
    SeriesPoint, Tally, WatchRecord,
};
use gake_core::work::Gauges;

use crate::audit;
use crate::handover::{self, TENTHS};
use crate::interval_queue::{IntervalQueue, JoinedInterval};
use crate::message::Message;
use crate::scenario_figures::ScenarioFigures;
use crate::watchdog::silence;

/// A second of a run, over all workers.
#[derive(Debug, Default)]
pub struct JoinedSecond {
    /// Its end, in seconds since the epoch.
    pub second: u64,
    /// The tally after the warm-up.
    pub tally: Tally,
    /// The tally as a point, computed once for all consumers.
    pub point: SeriesPoint,
    /// The tallies of scenarios, if there are several.
    pub scenarios: Vec<Tally>,
    /// Counts of the warm-up.
    pub warmup: Counts,
    /// Levels at its end.
    pub gauges: Gauges,
    /// CPU time of the workers.
    pub cpu: Nanos,
    /// Its tenths, if the run has tenths.
    pub tenths: Vec<SeriesPoint>,
}

impl JoinedSecond {
    /// Adds an interval, and returns its cleared tally for reuse.
    fn join(&mut self, mut interval: JoinedInterval) -> Tally {
        if self.scenarios.is_empty() {
            self.scenarios = interval.scenarios;
        } else {
            let pairs = self.scenarios.iter_mut().zip(&interval.scenarios);
            pairs.for_each(|(sum, tally)| sum.merge(tally));
        }
        self.warmup.merge(&interval.warmup);
        let peak = self.gauges.peak.max(interval.gauges.peak);
        self.gauges = Gauges { peak, ..interval.gauges };
        self.cpu += interval.cpu;
        self.tally.merge(&interval.tally);
        interval.tally.clear();
        interval.tally
    }
}

/// Joins the messages of all workers into seconds and into a [`Run`], in memory that does not grow
/// with the run.
#[derive(Debug)]
pub struct Collector {
    plan: Arc<Plan>,
    intervals: IntervalQueue,
    second: JoinedSecond,
    /// An empty tally for the next second.
    spare: Option<Tally>,
    /// Whether the run has tenths of a second.
    is_fine: bool,
    tally: Tally,
    warmup: Counts,
    bodies: FailedBodies,
    /// By scenario.
    scenarios: Vec<ScenarioFigures>,
    series: Series,
    peak: u64,
    cpu: Vec<Nanos>,
    run_delay: Nanos,
    log_lost: u64,
    /// Workers whose last figures are missing.
    abandoned: usize,
    blocked_calls: Vec<String>,
    /// Whether it must account for all arrivals of its schedules: not after a change of rates, nor
    /// for a slice of a run.
    is_whole: bool,
}

impl Collector {
    /// A collector for a run of `plan` with `seed` on `workers` workers.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, seed: u64, workers: usize) -> Self {
        Self {
            intervals: IntervalQueue::new(workers),
            second: JoinedSecond::default(),
            spare: None,
            is_fine: handover::is_fine(plan),
            tally: Tally::new(plan.labels.len()),
            warmup: Counts::default(),
            bodies: FailedBodies::default(),
            scenarios: plan
                .scenarios()
                .iter()
                .map(|plan| ScenarioFigures::new(plan, seed))
                .collect(),
            series: Series::default(),
            peak: 0,
            cpu: vec![0; workers],
            run_delay: 0,
            log_lost: 0,
            abandoned: 0,
            blocked_calls: Vec::new(),
            is_whole: true,
            plan: Arc::clone(plan),
        }
    }

    /// Makes it a collector for a slice of the plan, as of one agent.
    #[must_use]
    pub fn of_slice(self) -> Self {
        Self { is_whole: false, ..self }
    }

    /// Counts workers that were abandoned while they blocked their threads, in `calls` as far as
    /// they are known. Their figures since their last report are missing, which makes the run
    /// invalid.
    pub fn abandon(&mut self, workers: usize, calls: Vec<String>) {
        self.abandoned += workers;
        self.blocked_calls = calls;
        self.is_whole = false;
    }

    /// Whether every worker has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.intervals.are_over()
    }

    /// The tally of the run so far, after the warm-up.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Each scenario's tally so far, and the end of its warm-up; empty if there is only one
    /// scenario.
    pub fn scenarios(&self) -> impl Iterator<Item = (&Tally, Nanos)> {
        let several = self.scenarios.len() > 1;
        let scenarios = self.scenarios.iter().filter(move |_| several);
        scenarios.map(|figures| (&figures.tally, figures.warmup_end()))
    }

    /// Exchanges lost because the log was too slow.
    #[must_use]
    pub fn log_lost(&self) -> u64 {
        self.log_lost
    }

    /// Switches to a plan whose rates differ from an instant after all seconds so far.
    pub fn follow(&mut self, plan: Plan) {
        for (figures, plan) in self.scenarios.iter_mut().zip(plan.scenarios()) {
            figures.follow(plan);
        }
        self.plan = Arc::new(plan);
        self.is_whole = false;
    }

    /// Whether a source of requests was exhausted.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.scenarios.iter().any(|figures| figures.end.exhausted)
    }

    /// Arrivals due from one tenth to another; `None` if all loops are closed.
    fn asked_in(&self, from: u64, to: u64) -> Option<f64> {
        let asked = self.scenarios.iter().filter_map(|figures| figures.asked_in(from, to));
        asked.reduce(|sum, asked| sum + asked)
    }

    /// Processes a message. Returns cleared tallies through `spare` for reuse.
    pub fn take(&mut self, message: Message, mut spare: impl FnMut(usize, Tally)) {
        match message {
            Message::Interval(interval) => {
                let worker = interval.worker;
                self.take_interval(*interval, |tally| spare(worker, tally));
            }
            Message::Ended(ended) => {
                self.log_lost += ended.log_lost;
                self.intervals.end(ended.worker);
                for (scenario, end) in &ended.scenarios {
                    if let Some(figures) = self.scenarios.get_mut(*scenario) {
                        figures.end.merge(end);
                    }
                }
            }
        }
    }

    fn take_interval(&mut self, interval: Interval, spare: impl FnMut(Tally)) {
        if interval.tenth * TENTH > self.warmup_end() {
            self.cpu[interval.worker] += interval.cpu;
            self.run_delay += interval.run_delay;
        }
        let several = self.scenarios.len() > 1;
        for one in &interval.scenarios {
            self.bodies.merge(&one.bodies);
            if several {
                self.scenarios[one.scenario].warmup_counts.merge(&one.warmup);
            }
        }
        let scenarios = if several { self.scenarios.len() } else { 0 };
        self.intervals.add(interval, scenarios, spare);
    }

    /// The next second, in order, once all workers have reported it.
    pub fn next_second(&mut self) -> Option<JoinedSecond> {
        loop {
            let from = self.intervals.joined_until();
            let Some(tenth) = self.intervals.ready() else {
                // The last second of a run may be shorter.
                let is_last = self.is_over() && self.second.second > 0;
                return is_last.then(|| self.end_second());
            };
            let second = tenth.div_ceil(TENTHS);
            // After a late wake-up, no interval ends with the second.
            if self.second.second > 0 && second > self.second.second {
                return Some(self.end_second());
            }
            let interval = self.intervals.take(tenth);
            if self.is_fine {
                let mut point = SeriesPoint::of_tenths(from, tenth - from, &interval.tally);
                point.asked = self.asked_in(from, tenth);
                point.open = interval.gauges.open;
                point.cpu = interval.cpu;
                self.series.push_tenth(point.clone());
                self.second.tenths.push(point);
            }
            self.second.second = second;
            self.intervals.retire(self.second.join(interval));
            if tenth.is_multiple_of(TENTHS) {
                return Some(self.end_second());
            }
        }
    }

    /// Completes the current second.
    fn end_second(&mut self) -> JoinedSecond {
        let tally = self.spare.take().unwrap_or_default();
        let next = JoinedSecond { tally, ..JoinedSecond::default() };
        let mut second = std::mem::replace(&mut self.second, next);
        self.tally.merge(&second.tally);
        self.warmup.merge(&second.warmup);
        for (figures, tally) in self.scenarios.iter_mut().zip(&second.scenarios) {
            figures.tally.merge(tally);
        }
        self.peak = self.peak.max(second.gauges.peak);
        let mut point = SeriesPoint::new(second.second - 1, &second.tally);
        point.asked = self.asked_in((second.second - 1) * TENTHS, second.second * TENTHS);
        point.open = second.gauges.open;
        point.cpu = second.cpu;
        self.series.push(point.clone());
        second.point = point;
        second
    }

    /// Reuses the memory of a second.
    pub fn retire(&mut self, second: JoinedSecond) {
        let mut tally = second.tally;
        tally.clear();
        self.spare = Some(tally);
    }

    /// The end of the first warm-up of a scenario.
    fn warmup_end(&self) -> Nanos {
        self.scenarios.iter().map(ScenarioFigures::warmup_end).min().unwrap_or(0)
    }

    /// The run, with an unknown `rss_bytes`. Call it after all seconds were taken.
    #[must_use]
    pub fn finish(mut self, started_unix_ns: u64, ending: RunEnd, cores: usize) -> Run {
        let warmup_end = self.warmup_end();
        let since = |at: Nanos| at.saturating_sub(warmup_end);
        let latest = |of: &dyn Fn(&ScenarioFigures) -> Nanos| self.scenarios.iter().map(of).max();
        let done = ending == RunEnd::Done;
        let arrivals_end = latest(&|figures| figures.arrivals_over(done)).unwrap_or(0);
        self.series.end(arrivals_end);
        let measured = since(arrivals_end);
        let elapsed = latest(&ScenarioFigures::elapsed).unwrap_or(0);
        let sending = measured.max(since(latest(&|figures| figures.end.last_fired).unwrap_or(0)));
        let completing =
            measured.max(since(latest(&|figures| figures.end.last_ended).unwrap_or(0)));
        let span = since(elapsed).max(1);
        let mut busiest = self.cpu.iter().copied().max().unwrap_or(0);
        if self.cpu.len() > cores {
            // Workers share the cores.
            busiest = busiest.max(self.cpu.iter().sum::<Nanos>() / cores.max(1) as u64);
        }
        let asked_rate = match self.scenarios.as_slice() {
            [only] => only.asked_rate(done),
            several => asked_by_all(several, measured, arrivals_end),
        };
        // What lost agents sent is unknown.
        let is_whole = done && self.is_whole && self.tally.counts.lost == 0;
        let due = self.scenarios.iter().map(|figures| figures.due().filter(|_| is_whole));
        let due: Vec<_> = due.collect();
        let scenarios = if self.scenarios.len() > 1 {
            let plans = self.plan.scenarios().iter().cloned();
            plans.zip(self.scenarios).map(|(plan, figures)| figures.finish(plan, done)).collect()
        } else {
            Vec::new()
        };
        let mut run = Run {
            asked_rate,
            started_unix_ns,
            measured,
            sending,
            completing,
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
                // Known to the owner of the workers.
                rss_bytes: 0,
                threads: self.cpu.len(),
                cores,
                miscounted: 0,
                abandoned: self.abandoned as u64,
            },
            events: Vec::new(),
            agents: Vec::new(),
            watched: WatchRecord::default(),
            bodies: self.bodies,
            origin: Provenance::default(),
            plan: (*self.plan).clone(),
            scenarios,
        };
        audit::check(&mut run, &due);
        if self.abandoned > 0 {
            let what = match self.blocked_calls.as_slice() {
                [] => "code that they ran, such as a native function that a script called,".into(),
                calls => calls.join(", "),
            };
            let text = format!(
                "{} of {} workers blocked their threads and were abandoned {} s after the run had \
                 to be over: {what} did not return. What their users did since their last report is missing",
                self.abandoned,
                run.generator.threads,
                silence(&self.plan).as_secs()
            );
            run.events.push(RunEvent::new(run.elapsed, &text));
        }
        run
    }
}

/// The rate asked by several open loops over `measured`; `None` if one is closed.
fn asked_by_all(scenarios: &[ScenarioFigures], measured: Nanos, until: Nanos) -> Option<f64> {
    let asked = scenarios.iter().map(|figures| figures.asked_before(until));
    let asked = asked.collect::<Option<Vec<f64>>>()?;
    (measured > 0).then(|| asked.iter().sum::<f64>() * SECOND as f64 / measured as f64)
}

#[cfg(test)]
mod tests;
