//! The state of the full-screen view.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gake_core::plan::Plan;
use gake_core::record::{Counts, Histogram, Latency};
use gake_run::{ResolvedRun, SecondUpdate};
use gake_text::foreign;

/// Number of seconds on the charts.
pub(super) const SECONDS_MAX: usize = 600;

const BARS: usize = 12;

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// One second on the charts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChartPoint {
    /// The end of the second, in seconds since the start.
    pub(super) at: u64,
    pub(super) asked: Option<f64>,
    pub(super) sent: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    /// In nanoseconds.
    pub(super) p50: u64,
    pub(super) p99: u64,
}

/// An objective so far.
#[derive(Debug, Clone)]
pub(super) struct ObjectiveState {
    pub(super) text: String,
    pub(super) shown: String,
    /// `None` without a value so far.
    pub(super) is_met: Option<bool>,
}

/// Responses between two times.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistogramBar {
    /// Upper bound, in nanoseconds.
    pub(super) to: u64,
    pub(super) count: u64,
}

/// The run so far.
#[derive(Debug, Clone)]
pub(super) struct TuiState {
    pub(super) target: String,
    pub(super) plan: String,
    pub(super) has_colours: bool,
    /// How long arrivals last, if a time ends them.
    pub(super) length: Option<Duration>,
    begun: Instant,
    pub(super) is_stopping: bool,
    pub(super) seconds: VecDeque<ChartPoint>,
    pub(super) counts: Counts,
    pub(super) open: u64,
    pub(super) in_flight: f64,
    /// Names and nanoseconds: of all, and of the ok responses if they differ.
    pub(super) quantiles: Vec<(&'static str, u64, Option<u64>)>,
    pub(super) bars: Vec<HistogramBar>,
    /// Status, count, whether it is expected.
    pub(super) statuses: Vec<(u16, u64, bool)>,
    pub(super) faults: Vec<(String, u64)>,
    pub(super) objectives: Vec<ObjectiveState>,
}

impl TuiState {
    pub(super) fn new(plan: &Plan, has_colours: bool) -> Self {
        let text = plan.to_string();
        let rest = text.strip_prefix(&plan.target).and_then(|rest| rest.strip_prefix(": "));
        Self {
            target: foreign::line(&plan.target).into_owned(),
            plan: foreign::line(rest.unwrap_or(&text)).into_owned(),
            has_colours,
            length: plan.length(),
            begun: Instant::now(),
            is_stopping: false,
            seconds: VecDeque::new(),
            counts: Counts::default(),
            open: 0,
            in_flight: 0.0,
            quantiles: Vec::new(),
            bars: Vec::new(),
            statuses: Vec::new(),
            faults: Vec::new(),
            objectives: Vec::new(),
        }
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn take(&mut self, update: &SecondUpdate<'_>, prepared: &ResolvedRun) {
        let second = update.second;
        let mut counts = second.tally.counts;
        counts.merge(&second.warmup);
        self.add(ChartPoint {
            at: second.second,
            asked: update.asked,
            sent: counts.sent,
            ok: counts.ok,
            failed: counts.failed + counts.unsent + counts.dropped,
            p50: second.point.p50,
            p99: second.point.p99,
        });
        let tally = update.so_far.tally();
        (self.counts, self.open) = (tally.counts, second.gauges.open);
        self.in_flight = second.point.in_flight;
        self.measure(&tally.latency);
        let expect = &prepared.plan.expect;
        let statuses = tally.statuses().iter();
        self.statuses = statuses.map(|&(code, n)| (code, n, expect.accepts(code))).collect();
        self.faults = tally.faults().iter().map(|(fault, n)| (fault.in_words(), *n)).collect();
        self.faults.sort_by_key(|fault| std::cmp::Reverse(fault.1));
        let view = update.view(&prepared.plan);
        let objectives = prepared.objectives.iter().map(|objective| {
            let seen = objective.evaluate(&view);
            let is_met = seen.value.is_some().then_some(seen.met);
            let shown = foreign::line(&seen.shown()).into_owned();
            ObjectiveState { text: foreign::line(&seen.text).into_owned(), shown, is_met }
        });
        self.objectives = objectives.collect();
    }

    pub(super) fn add(&mut self, second: ChartPoint) {
        if self.seconds.len() == SECONDS_MAX {
            self.seconds.pop_front();
        }
        self.seconds.push_back(second);
    }

    /// Updates percentiles and bars from the histogram so far.
    pub(super) fn measure(&mut self, latency: &Latency) {
        let response = latency.response();
        if response.is_empty() {
            return;
        }
        let ok = latency.distinct_ok();
        let of = |(name, quantile)| {
            (name, response.quantile(quantile), ok.map(|ok| ok.quantile(quantile)))
        };
        self.quantiles = QUANTILES.into_iter().map(of).collect();
        self.quantiles.push(("max", response.max(), ok.map(Histogram::max)));
        self.bars = bars(&response);
    }
}

/// Histogram bars of equal ratio from the fastest to the slowest response.
fn bars(response: &Histogram) -> Vec<HistogramBar> {
    let (least, most) = (response.min().max(1), response.max().max(1));
    let ratio = (most as f64 / least as f64).powf(1.0 / BARS as f64);
    let mut bars = Vec::with_capacity(BARS);
    let mut below = 0;
    for number in 1..=BARS {
        let to = match number {
            BARS => most,
            _ => (least as f64 * ratio.powi(number as i32)) as u64,
        };
        let up_to = response.count_up_to(to);
        let is_same = bars.last().is_some_and(|bar: &HistogramBar| bar.to == to);
        if !is_same {
            bars.push(HistogramBar { to, count: up_to - below });
            below = up_to;
        }
    }
    bars
}

#[cfg(test)]
pub(super) mod tests {
    use gake_core::Load;
    use gake_core::plan::Plan;
    use gake_core::record::LatencyMetric;

    use super::*;

    /// Ten seconds of a run with everything that can be shown.
    pub(in super::super) fn state() -> TuiState {
        let load = Load::Closed { users: 50, think: Duration::ZERO };
        let plan = Plan {
            duration: Some(Duration::from_secs(60)),
            ..Plan::new("http://localhost:8080/", load)
        };
        let mut state = TuiState::new(&plan, false);
        let mut latency = Latency::default();
        for at in 1..=10u64 {
            let (p50, p99) = (at * 1_000_000, at * 9_000_000);
            let asked = Some(1_000.0);
            state.add(ChartPoint { at, asked, sent: 990, ok: 900, failed: 90, p50, p99 });
            latency.of_mut(LatencyMetric::OkResponse).record(p99);
            latency.of_mut(LatencyMetric::OtherResponse).record(p50);
        }
        state.measure(&latency);
        state.counts =
            Counts { started: 9_900, sent: 9_900, ok: 9_000, failed: 900, ..Counts::default() };
        (state.open, state.in_flight) = (50, 49.5);
        state.statuses = vec![(200, 9_000, true), (503, 800, false)];
        state.faults = vec![("reset".to_owned(), 100)];
        let objective = |text: &str, shown: &str, is_met| ObjectiveState {
            text: text.to_owned(),
            shown: shown.to_owned(),
            is_met,
        };
        state.objectives = vec![
            objective("p99<50ms", "90.0 ms", Some(false)),
            objective("rate>900/s", "990/s", Some(true)),
            objective("cpu<80%", "", None),
        ];
        state
    }

    #[test]
    fn bars_hold_every_response_once() {
        let mut response = Histogram::default();
        (1..=1_000u64).for_each(|n| response.record(n * 10_000));
        let bars = bars(&response);
        assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), 1_000);
        assert!(bars.len() <= BARS && bars.windows(2).all(|pair| pair[0].to < pair[1].to));
        let mut one = Histogram::default();
        one.record(7);
        assert_eq!(super::bars(&one).iter().map(|bar| bar.count).sum::<u64>(), 1);
    }

    #[test]
    fn a_long_run_shows_its_last_seconds() {
        let mut state = state();
        for at in 0..2 * SECONDS_MAX as u64 {
            state.add(ChartPoint { at, ..ChartPoint::default() });
        }
        assert_eq!(state.seconds.len(), SECONDS_MAX);
        assert_eq!(state.seconds.back().map(|second| second.at), Some(1_199));
    }
}
