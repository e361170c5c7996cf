//! When each arrival is due: arrival number in, due offset out, without a clock.
//!
//! The rate over time is a list of stages. Its integral Λ(t) is the number of arrivals asked for
//! up to t. Arrival n is due where Λ reaches its position: n on a perfect grid, the sum of n + 1
//! unit exponentials for a Poisson process (time rescaling: a Poisson process of rate λ(t) is a
//! unit-rate one seen through Λ⁻¹). Arrivals of a replay are due when they were recorded.

mod area;
mod arrival;
mod number_pattern;
mod poisson;
mod rate_change;
mod slice;
mod slice_arrivals;
mod stage;
mod trace;

use std::time::Duration;

use crate::clock::{Nanos, SECOND, nanos};
use area::Area;
pub use arrival::Arrival;
pub use number_pattern::NumberPattern;
pub use rate_change::RateChange;
pub use slice::Slice;
pub use slice_arrivals::SliceArrivals;
pub use stage::{Process, Stage};
pub use trace::{TRACE_ARRIVALS_MAX, Trace, TraceBuilder, TraceFull};

/// When each arrival of a run is due, as a pure value.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Always on a grid, so that its count is exact.
    warmup: Option<WarmUp>,
    due_times: DueTimes,
    /// The arrivals that belong to this schedule; all by default.
    pattern: Option<NumberPattern>,
    limit: u64,
    seed: u64,
}

/// The due instants after the warm-up.
#[derive(Debug, Clone, PartialEq)]
enum DueTimes {
    Rates(Process, Area),
    Trace(Trace),
}

/// The warm-up in front of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WarmUp {
    rate: f64,
    length: Nanos,
    total: u64,
}

impl Schedule {
    /// A schedule of `stages` with at most `limit` arrivals. Random arrivals depend only on `seed`.
    #[must_use]
    pub fn new(process: Process, stages: &[Stage], limit: Option<u64>, seed: u64) -> Self {
        Self {
            warmup: None,
            due_times: DueTimes::Rates(process, Area::new(stages)),
            pattern: None,
            limit: limit.unwrap_or(u64::MAX),
            seed,
        }
    }

    /// The schedule of a replay with at most `limit` arrivals.
    #[must_use]
    pub fn replay(trace: Trace, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        Self { warmup: None, due_times: DueTimes::Trace(trace), pattern: None, limit, seed: 0 }
    }

    /// Makes these rates a slice of a larger schedule: the arrivals that `pattern` selects from the
    /// whole, with their due times. Does not affect a warm-up or a recording.
    #[must_use]
    pub fn with_pattern(mut self, pattern: NumberPattern) -> Self {
        if let DueTimes::Rates(_, area) = &mut self.due_times {
            area.scale(1.0 / pattern.fraction());
            self.pattern = Some(pattern);
        }
        self
    }

    /// Prepends a warm-up of `length` at `rate` arrivals a second.
    #[must_use]
    pub fn after(mut self, rate: f64, length: Duration) -> Self {
        let total = Area::new(&[Stage::step(rate, length)]).count();
        let length = nanos(length);
        self.warmup = Some(WarmUp { rate, length, total });
        self
    }

    /// Replaces the warm-up with that of `other`, which may have none.
    #[must_use]
    pub fn with_warmup_of(mut self, other: &Self) -> Self {
        self.warmup = other.warmup;
        self
    }

    /// The number of arrivals: exact for a grid, expected for a Poisson process; [`u64::MAX`] if
    /// endless.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.warmup.map_or(0, |warmup| warmup.total).saturating_add(self.count().min(self.limit))
    }

    /// The end of the last stage; `None` if the limit ends the schedule.
    #[must_use]
    pub fn timed_end(&self) -> Option<Nanos> {
        if self.count() > self.limit {
            return None;
        }
        Some(self.warmup_length() + self.due_times.end()?)
    }

    /// The end of the schedule: of its stages, or when the first arrival beyond the limit would be
    /// due. `None` if endless.
    #[must_use]
    pub fn end(&self) -> Option<Nanos> {
        let limited = || {
            let limit = Some(self.limit).filter(|limit| *limit < u64::MAX)?;
            Some(self.warmup_length() + self.due_times.reaches(self.number(limit))?)
        };
        self.timed_end().or_else(limited)
    }

    /// The mean rate from the end of the warm-up to `until`, in arrivals a second.
    #[must_use]
    pub fn mean_rate(&self, until: Nanos) -> f64 {
        let seconds = until.saturating_sub(self.warmup_length()) as f64 / SECOND as f64;
        if seconds == 0.0 {
            return 0.0;
        }
        self.at(seconds).min(self.limit as f64) / seconds
    }

    /// Arrivals due in second `second`, counted from 0.
    #[must_use]
    pub fn asked_in_second(&self, second: u64) -> f64 {
        self.asked_before(second as f64 + 1.0) - self.asked_before(second as f64)
    }

    /// Arrivals due in the first `seconds`, warm-up included; 0 for negative values.
    #[must_use]
    pub fn asked_before(&self, seconds: f64) -> f64 {
        let length = self.warmup_length() as f64 / SECOND as f64;
        let seconds = seconds.max(0.0);
        match self.warmup {
            Some(warmup) if seconds < length => warmup.rate * seconds,
            Some(warmup) => warmup.total as f64 + self.at(seconds - length).min(self.limit as f64),
            None => self.at(seconds).min(self.limit as f64),
        }
    }

    /// The number of arrivals after the warm-up, without the limit.
    fn count(&self) -> u64 {
        let all = self.due_times.count();
        self.pattern.as_ref().map_or(all, |pattern| pattern.count(all))
    }

    /// Arrivals up to `t` seconds after the warm-up, without the limit.
    fn at(&self, t: f64) -> f64 {
        self.due_times.at(t) * self.pattern.as_ref().map_or(1.0, NumberPattern::fraction)
    }

    /// The number of arrival `own` in the larger schedule.
    fn number(&self, own: u64) -> u64 {
        self.pattern.as_ref().map_or(own, |pattern| pattern.number(own))
    }

    fn warmup_length(&self) -> Nanos {
        self.warmup.map_or(0, |warmup| warmup.length)
    }

    /// The arrivals of `slice`. Slices do not overlap, and sum to the whole.
    #[must_use]
    pub fn arrivals(&self, slice: Slice) -> SliceArrivals<'_> {
        SliceArrivals::new(self, slice)
    }

    /// When arrival `number` is due; `None` past the end.
    #[must_use]
    pub fn due(&self, number: u64) -> Option<Nanos> {
        self.arrivals(Slice::WHOLE).due(number)
    }
}

impl DueTimes {
    fn count(&self) -> u64 {
        match self {
            Self::Rates(_, area) => area.count(),
            Self::Trace(trace) => trace.arrivals(),
        }
    }

    fn end(&self) -> Option<Nanos> {
        match self {
            Self::Rates(_, area) => area.end(),
            Self::Trace(trace) => Some(trace.length()),
        }
    }

    /// Arrivals due in the first `t` seconds.
    fn at(&self, t: f64) -> f64 {
        match self {
            Self::Rates(_, area) => area.at(t),
            Self::Trace(trace) => trace.before((t * SECOND as f64).round() as Nanos) as f64,
        }
    }

    /// When the number of arrivals due reaches `count`.
    fn reaches(&self, count: u64) -> Option<Nanos> {
        match self {
            Self::Rates(_, area) => area.inverse(count as f64, &mut 0),
            Self::Trace(trace) => trace.due(count),
        }
    }
}

#[cfg(test)]
mod tests;
