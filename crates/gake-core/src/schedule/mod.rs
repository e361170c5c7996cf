//! When each arrival is due: arrival number in, offset out. No clock, no state of the run.
//!
//! The rate over time is a list of stages. Its integral Λ(t) is the number of arrivals asked for
//! up to t, and arrival number n is due where Λ reaches its position on the scale of counts:
//! n itself on a perfect grid, the sum of n + 1 unit exponentials for a Poisson process (time
//! rescaling: a Poisson process of rate λ(t) is a unit-rate one seen through Λ⁻¹). A replay has no
//! rate: its arrivals are due when they were recorded.

mod area;
mod arrival;
mod change;
mod poisson;
mod random;
mod rates;
mod share;
mod slice;
mod stripes;
mod trace;

use std::time::Duration;

use crate::clock::{Nanos, SECOND, nanos};
use area::Area;
pub use arrival::Arrival;
pub use change::RateChange;
pub use random::random_number;
pub use rates::{Process, Stage};
pub use share::SliceArrivals;
pub use slice::Slice;
pub use stripes::NumberPattern;
pub use trace::{TRACE_ARRIVALS_MAX, Trace, TraceBuilder, TraceFull};

/// When each arrival of a run is due, as a pure value.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The part before the figures: a grid, whatever the process, so that its count is exact.
    lead: Option<Lead>,
    course: Course,
    /// Which arrivals of the course this schedule has; all of them by default.
    stripes: Option<NumberPattern>,
    limit: u64,
    seed: u64,
}

/// What says when the arrivals after the warm-up are due.
#[derive(Debug, Clone, PartialEq)]
enum Course {
    Rates(Process, Area),
    Trace(Trace),
}

/// The warm-up in front of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lead {
    rate: f64,
    length: Nanos,
    total: u64,
}

impl Schedule {
    /// A schedule of `stages`, cut after `limit` arrivals when there is a limit. The same seed
    /// gives the same random arrivals.
    #[must_use]
    pub fn new(process: Process, stages: &[Stage], limit: Option<u64>, seed: u64) -> Self {
        Self {
            lead: None,
            course: Course::Rates(process, Area::new(stages)),
            stripes: None,
            limit: limit.unwrap_or(u64::MAX),
            seed,
        }
    }

    /// The schedule of a replay, cut after `limit` arrivals when there is a limit.
    #[must_use]
    pub fn replay(trace: Trace, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        Self { lead: None, course: Course::Trace(trace), stripes: None, limit, seed: 0 }
    }

    /// The same rates as part of a larger schedule: the arrivals are those that `stripes` selects
    /// from the whole, each due when it is there. A warm-up and a recording stay as they are.
    #[must_use]
    pub fn striped(mut self, stripes: NumberPattern) -> Self {
        if let Course::Rates(_, area) = &mut self.course {
            area.scale(1.0 / stripes.fraction());
            self.stripes = Some(stripes);
        }
        self
    }

    /// The same schedule after a warm-up of `length` at `rate` arrivals a second.
    #[must_use]
    pub fn after(mut self, rate: f64, length: Duration) -> Self {
        let total = Area::new(&[Stage::step(rate, length)]).count();
        let length = nanos(length);
        self.lead = Some(Lead { rate, length, total });
        self
    }

    /// The same schedule after the warm-up of `other`, and after none when that has none.
    #[must_use]
    pub fn with_lead_of(mut self, other: &Self) -> Self {
        self.lead = other.lead;
        self
    }

    /// The number of arrivals: exact for a grid, expected for a Poisson process;
    /// [`u64::MAX`] when nothing ends it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lead.map_or(0, |lead| lead.total).saturating_add(self.count().min(self.limit))
    }

    /// When the last stage ends; `None` when only a count ends the schedule.
    #[must_use]
    pub fn timed_end(&self) -> Option<Nanos> {
        if self.count() > self.limit {
            return None;
        }
        Some(self.lead_length() + self.course.end()?)
    }

    /// When the whole schedule ends: when its stages end, or when the first arrival past
    /// its limit would be due. `None` when nothing ends it.
    #[must_use]
    pub fn end(&self) -> Option<Nanos> {
        let limited = || {
            let limit = Some(self.limit).filter(|limit| *limit < u64::MAX)?;
            Some(self.lead_length() + self.course.reaches(self.number(limit))?)
        };
        self.timed_end().or_else(limited)
    }

    /// The mean rate over the part after the warm-up up to `until`, in arrivals a second.
    #[must_use]
    pub fn mean_rate(&self, until: Nanos) -> f64 {
        let seconds = until.saturating_sub(self.lead_length()) as f64 / SECOND as f64;
        if seconds == 0.0 {
            return 0.0;
        }
        self.at(seconds).min(self.limit as f64) / seconds
    }

    /// Arrivals that are due in the second that starts `second` seconds after the epoch.
    #[must_use]
    pub fn asked_in_second(&self, second: u64) -> f64 {
        self.asked_before(second as f64 + 1.0) - self.asked_before(second as f64)
    }

    /// Arrivals that are due in the first `seconds`, those of the warm-up included; 0 before the
    /// start.
    #[must_use]
    pub fn asked_before(&self, seconds: f64) -> f64 {
        let lead = self.lead_length() as f64 / SECOND as f64;
        let seconds = seconds.max(0.0);
        match self.lead {
            Some(lead_in) if seconds < lead => lead_in.rate * seconds,
            Some(lead_in) => lead_in.total as f64 + self.at(seconds - lead).min(self.limit as f64),
            None => self.at(seconds).min(self.limit as f64),
        }
    }

    /// The number of arrivals after the warm-up, without the limit.
    fn count(&self) -> u64 {
        let all = self.course.count();
        self.stripes.as_ref().map_or(all, |stripes| stripes.count(all))
    }

    /// Arrivals up to `t` seconds after the warm-up, without the limit.
    fn at(&self, t: f64) -> f64 {
        self.course.at(t) * self.stripes.as_ref().map_or(1.0, NumberPattern::fraction)
    }

    /// The number of arrival `own` in the course.
    fn number(&self, own: u64) -> u64 {
        self.stripes.as_ref().map_or(own, |stripes| stripes.number(own))
    }

    fn lead_length(&self) -> Nanos {
        self.lead.map_or(0, |lead| lead.length)
    }

    /// The arrivals of `slice`. The shares of all slices are the whole, without overlap.
    #[must_use]
    pub fn share(&self, slice: Slice) -> SliceArrivals<'_> {
        SliceArrivals::new(self, slice)
    }

    /// When arrival `number` is due, or `None` past the end. A [`SliceArrivals`] walks the same
    /// values.
    #[must_use]
    pub fn due(&self, number: u64) -> Option<Nanos> {
        self.share(Slice::WHOLE).due(number)
    }
}

impl Course {
    /// How many arrivals there are.
    fn count(&self) -> u64 {
        match self {
            Self::Rates(_, area) => area.count(),
            Self::Trace(trace) => trace.arrivals(),
        }
    }

    /// When it is over, unless it is endless.
    fn end(&self) -> Option<Nanos> {
        match self {
            Self::Rates(_, area) => area.end(),
            Self::Trace(trace) => Some(trace.length()),
        }
    }

    /// Arrivals asked for up to `t` seconds.
    fn at(&self, t: f64) -> f64 {
        match self {
            Self::Rates(_, area) => area.at(t),
            Self::Trace(trace) => trace.before((t * SECOND as f64).round() as Nanos) as f64,
        }
    }

    /// When `count` arrivals were asked for.
    fn reaches(&self, count: u64) -> Option<Nanos> {
        match self {
            Self::Rates(_, area) => area.inverse(count as f64, &mut 0),
            Self::Trace(trace) => trace.due(count),
        }
    }
}

#[cfg(test)]
mod tests;
