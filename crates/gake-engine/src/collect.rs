//! Joins what the workers hand over: by the second, and as a whole.

use std::sync::Arc;

use gake_core::clock::{Nanos, SECOND, TENTH};
use gake_core::plan::Plan;
use gake_core::record::{
    Counts, RunEnd, FailedBodies, Generator, Interval, SeriesPoint, Provenance, Run, Series, Tally,
    WatchRecord,
};
use gake_core::work::Gauges;

use crate::audit;
use crate::scenario_figures::ScenarioFigures;
use crate::message::Message;
use crate::handover::{self, TENTHS};
use crate::interval_queue::{JoinedInterval, IntervalQueue};

/// One second of a run, over all workers.
#[derive(Debug, Default)]
pub struct JoinedSecond {
    /// The number of seconds since the epoch that it completes.
    pub second: u64,
    /// What was recorded in it, after the warm-up.
    pub tally: Tally,
    /// The same as a point of the series, computed once for all consumers.
    pub point: SeriesPoint,
    /// What each scenario recorded in it, when the run has several.
    pub scenarios: Vec<Tally>,
    /// Counts of the warm-up in it.
    pub warmup: Counts,
    /// Levels.
    pub gauges: Gauges,
    /// CPU time of the workers in it.
    pub cpu: Nanos,
    /// Its tenths, when the run is shown in tenths.
    pub tenths: Vec<SeriesPoint>,
}

impl JoinedSecond {
    /// Joins a piece of it, and gives the piece's emptied tally back.
    fn join(&mut self, mut piece: JoinedInterval) -> Tally {
        if self.scenarios.is_empty() {
            self.scenarios = piece.scenarios;
        } else {
            let pairs = self.scenarios.iter_mut().zip(&piece.scenarios);
            pairs.for_each(|(sum, tally)| sum.merge(tally));
        }
        self.warmup.merge(&piece.warmup);
        let peak = self.gauges.peak.max(piece.gauges.peak);
        self.gauges = Gauges { peak, ..piece.gauges };
        self.cpu += piece.cpu;
        self.tally.merge(&piece.tally);
        piece.tally.clear();
        piece.tally
    }
}

/// Joins the messages of all workers into seconds and into a [`Run`]. Its memory does not grow with
/// the run.
#[derive(Debug)]
pub struct Collector {
    plan: Arc<Plan>,
    pieces: IntervalQueue,
    /// The current second.
    second: JoinedSecond,
    /// An empty tally for the next one.
    spare: Option<Tally>,
    /// Whether the run is shown by its tenths too.
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
    /// Whether the arrivals of its schedules are all its own: not when its rates were changed, nor
    /// of a part of a run.
    is_whole: bool,
}

impl Collector {
    /// A collector for the `workers` workers of a run that follows `plan` with `seed`.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, seed: u64, workers: usize) -> Self {
        Self {
            pieces: IntervalQueue::new(workers),
            second: JoinedSecond::default(),
            spare: None,
            is_fine: handover::is_fine(plan),
            tally: Tally::new(plan.labels.len()),
            warmup: Counts::default(),
            bodies: FailedBodies::default(),
            scenarios: plan.scenarios().iter().map(|plan| ScenarioFigures::new(plan, seed)).collect(),
            series: Series::default(),
            peak: 0,
            cpu: vec![0; workers],
            run_delay: 0,
            log_lost: 0,
            is_whole: true,
            plan: Arc::clone(plan),
        }
    }

    /// The same for workers that have a part of the arrivals of the plan, as those of one agent.
    #[must_use]
    pub fn of_a_part(self) -> Self {
        Self { is_whole: false, ..self }
    }

    /// Whether every worker has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pieces.are_over()
    }

    /// The tally of the run so far, after the warm-up.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Each scenario's tally so far, and when its warm-up ends; empty when there is one scenario.
    pub fn scenarios(&self) -> impl Iterator<Item = (&Tally, Nanos)> {
        let several = self.scenarios.len() > 1;
        let told = self.scenarios.iter().filter(move |_| several);
        told.map(|figures| (&figures.tally, figures.warmup_end()))
    }

    /// Exchanges that the log could not take in time.
    #[must_use]
    pub fn log_lost(&self) -> u64 {
        self.log_lost
    }

    /// Goes on with a plan whose rates differ from an instant on that no second so far holds.
    pub fn follow(&mut self, plan: Plan) {
        for (figures, plan) in self.scenarios.iter_mut().zip(plan.scenarios()) {
            figures.follow(plan);
        }
        self.plan = Arc::new(plan);
        self.is_whole = false;
    }

    /// Whether the source of a worker had no more to send.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.scenarios.iter().any(|figures| figures.end.exhausted)
    }

    /// How many arrivals the plan has due from one tenth to another; `None` where every loop is
    /// closed.
    fn asked_in(&self, from: u64, to: u64) -> Option<f64> {
        let asked = self.scenarios.iter().filter_map(|figures| figures.asked_in(from, to));
        asked.reduce(|sum, asked| sum + asked)
    }

    /// Takes in a message. An emptied tally is given back through `spare`.
    pub fn take(&mut self, message: Message, mut spare: impl FnMut(usize, Tally)) {
        match message {
            Message::Interval(interval) => {
                let worker = interval.worker;
                self.take_interval(*interval, |tally| spare(worker, tally));
            }
            Message::Ended(ended) => {
                self.log_lost += ended.log_lost;
                self.pieces.end(ended.worker);
                for (scenario, end) in &ended.scenarios {
                    if let Some(figures) = self.scenarios.get_mut(*scenario) {
                        figures.end.merge(end);
                    }
                }
            }
        }
    }

    /// Gives back as many empty tallies as it takes in, for the worker to go on with, as soon as
    /// there are any.
    fn take_interval(&mut self, interval: Interval, spare: impl FnMut(Tally)) {
        if interval.tenth * TENTH > self.warmup_end() {
            self.cpu[interval.worker] += interval.cpu;
            self.run_delay += interval.run_delay;
        }
        let several = self.scenarios.len() > 1;
        for part in &interval.scenarios {
            self.bodies.merge(&part.bodies);
            if several {
                self.scenarios[part.scenario].warmup_counts.merge(&part.warmup);
            }
        }
        let scenarios = if several { self.scenarios.len() } else { 0 };
        self.pieces.add(interval, scenarios, spare);
    }

    /// The next second, in order, that every worker has handed over.
    pub fn next_second(&mut self) -> Option<JoinedSecond> {
        loop {
            let from = self.pieces.gone();
            let Some(tenth) = self.pieces.ready() else {
                // The last second of a run may be cut short.
                let is_last = self.is_over() && self.second.second > 0;
                return is_last.then(|| self.end_second());
            };
            let second = tenth.div_ceil(TENTHS);
            // A worker that woke late has no piece that ends with the second.
            if self.second.second > 0 && second > self.second.second {
                return Some(self.end_second());
            }
            let piece = self.pieces.take(tenth);
            if self.is_fine {
                let mut point = SeriesPoint::of_tenths(from, tenth - from, &piece.tally);
                point.asked = self.asked_in(from, tenth);
                point.open = piece.gauges.open;
                point.cpu = piece.cpu;
                self.series.push_tenth(point.clone());
                self.second.tenths.push(point);
            }
            self.second.second = second;
            self.pieces.retire(self.second.join(piece));
            if tenth.is_multiple_of(TENTHS) {
                return Some(self.end_second());
            }
        }
    }

    /// Takes what was joined as a whole second.
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

    /// Takes a second back to reuse its memory, which is warm.
    pub fn retire(&mut self, second: JoinedSecond) {
        let mut tally = second.tally;
        tally.clear();
        self.spare = Some(tally);
    }

    /// When the first warm-up of a scenario is over.
    fn warmup_end(&self) -> Nanos {
        self.scenarios.iter().map(ScenarioFigures::warmup_end).min().unwrap_or(0)
    }

    /// The whole run, without the memory of the processes that fired it. Call it after the end, when
    /// every second was taken.
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
            // They share the cores.
            busiest = busiest.max(self.cpu.iter().sum::<Nanos>() / cores.max(1) as u64);
        }
        let asked_rate = match self.scenarios.as_slice() {
            [only] => only.asked_rate(done),
            several => asked_by_all(several, measured, arrivals_end),
        };
        // What lost agents sent is not known.
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
                // Whoever has the workers knows it.
                rss_bytes: 0,
                threads: self.cpu.len(),
                cores,
                miscounted: 0,
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
        run
    }
}

/// What several open loops asked for over `measured`; `None` when one of them is closed.
fn asked_by_all(scenarios: &[ScenarioFigures], measured: Nanos, until: Nanos) -> Option<f64> {
    let asked = scenarios.iter().map(|figures| figures.asked_before(until));
    let asked = asked.collect::<Option<Vec<f64>>>()?;
    (measured > 0).then(|| asked.iter().sum::<f64>() * SECOND as f64 / measured as f64)
}

#[cfg(test)]
mod tests {
    use gake_core::Load;
    use gake_core::record::{ScenarioInterval, WorkerEnd};

    use super::*;

    fn of_two_workers() -> Collector {
        let load = Load::Closed { users: 2, think: std::time::Duration::ZERO };
        Collector::new(&Arc::new(Plan::new("", load)), 1, 2)
    }

    /// What a worker hands over at the end of a second in which `ok` requests succeeded.
    fn interval(worker: usize, second: u64, ok: u64) -> Message {
        let mut tally = Tally::default();
        tally.counts = Counts { started: ok, sent: ok, ok, ..Counts::default() };
        let part = ScenarioInterval {
            scenario: 0,
            tally,
            warmup: Counts::default(),
            gauges: Gauges::default(),
            bodies: FailedBodies::default(),
        };
        let (tenth, parts) = (second * TENTHS, vec![part]);
        Message::Interval(Box::new(Interval { worker, tenth, parts, cpu: 0, run_delay: 0 }))
    }

    /// The same with connections, and no requests.
    fn holding(worker: usize, second: u64, open: u64) -> Message {
        let mut message = interval(worker, second, 0);
        if let Message::Interval(interval) = &mut message {
            interval.scenarios[0].gauges = Gauges { open, peak: open };
        }
        message
    }

    #[test]
    fn a_worker_that_wakes_late_has_its_connections_meanwhile() {
        let mut collector = of_two_workers();
        let mut open = Vec::new();
        let ended = |worker| WorkerEnd { worker, scenarios: Vec::new(), log_lost: 0 };
        let messages = [
            holding(0, 1, 10),
            holding(1, 1, 5),
            holding(0, 2, 20),
            holding(0, 3, 30),
            // It slept in the second and third second.
            holding(1, 4, 7),
            holding(0, 4, 30),
            Message::Ended(ended(1)),
            holding(0, 5, 40),
            Message::Ended(ended(0)),
        ];
        for message in messages {
            collector.take(message, |_, _| {});
            while let Some(second) = collector.next_second() {
                open.push(second.gauges.open);
            }
        }
        assert_eq!(open, [15, 25, 35, 37, 40]);
        assert_eq!(collector.finish(0, RunEnd::Done, 1).peak_connections, 40);
    }

    /// A minute and some: seconds that may wait for a worker.
    const WAIT: u64 = 64;

    #[test]
    fn seconds_go_on_without_a_worker_that_is_silent_and_keep_what_comes_late() {
        let mut collector = of_two_workers();
        let mut seconds = Vec::new();
        let mut take = |collector: &mut Collector, message| {
            collector.take(message, |_, _| {});
            while let Some(second) = collector.next_second() {
                seconds.push((second.second, second.tally.counts.ok));
            }
            seconds.len() as u64
        };
        for second in 1..=100 {
            let over = take(&mut collector, interval(0, second, 1));
            assert_eq!(over, second.saturating_sub(WAIT), "after {second} seconds");
            assert!(collector.pieces.waiting() as u64 <= WAIT);
        }
        // The silent worker wakes: what it did in its first second counts with the next to go on.
        let over = take(&mut collector, interval(1, 1, 1_000));
        assert_eq!(over, 100 - WAIT);
        for second in 2..=100 {
            take(&mut collector, interval(1, second, 10));
        }
        for worker in 0..2 {
            let ended = WorkerEnd { worker, scenarios: Vec::new(), log_lost: 0 };
            take(&mut collector, Message::Ended(ended));
        }
        assert!(collector.is_over());
        assert_eq!(collector.pieces.waiting(), 0);
        let told: Vec<u64> = seconds.iter().map(|second| second.0).collect();
        assert_eq!(told, (1..=100).collect::<Vec<_>>(), "each second once, in order");
        assert_eq!(seconds[35].1, 1);
        // The 1,000 of its first second, and those of the 35 that had gone on since.
        assert_eq!(seconds[36].1, 1 + 1_000 + 36 * 10);
        assert_eq!(seconds[99].1, 1 + 10);
        let run = collector.finish(0, RunEnd::Done, 1);
        assert_eq!(run.tally.counts.ok, 100 + 1_000 + 99 * 10);
    }
}
