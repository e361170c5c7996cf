//! The arrivals of one slice of a schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::poisson::PoissonWalk;
use super::{Arrival, DueTimes, Process, Schedule, Slice};
use crate::clock::{Nanos, SECOND};
use crate::random::random_unit;

/// The due time of an arrival that a change has removed from the schedule; another change may bring
/// it back.
const NEVER: Nanos = Nanos::MAX;

/// Iterates over the arrivals of a slice in due order.
#[derive(Debug, Clone)]
pub struct SliceArrivals<'a> {
    schedule: std::borrow::Cow<'a, Schedule>,
    slice: Slice,
    /// Index in the slice of the next arrival.
    own: u64,
    walk: Option<Box<PoissonWalk>>,
    segment: usize,
    /// Jittered arrivals (due, number) that later ones may still precede.
    ahead: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// The due time without jitter of the last arrival in `ahead`: no further arrival is due
    /// earlier.
    settled: Nanos,
}

impl<'a> SliceArrivals<'a> {
    pub(super) fn new(schedule: &'a Schedule, slice: Slice) -> Self {
        Self {
            schedule: std::borrow::Cow::Borrowed(schedule),
            slice,
            own: 0,
            walk: match schedule.due_times {
                DueTimes::Rates(Process::Poisson, _) => {
                    Some(Box::new(PoissonWalk::new(schedule.seed)))
                }
                _ => None,
            },
            segment: 0,
            ahead: BinaryHeap::new(),
            settled: 0,
        }
    }

    /// Clones the schedule.
    #[must_use]
    pub fn into_owned(self) -> SliceArrivals<'static> {
        SliceArrivals {
            schedule: std::borrow::Cow::Owned(self.schedule.into_owned()),
            slice: self.slice,
            own: self.own,
            walk: self.walk,
            segment: self.segment,
            ahead: self.ahead,
            settled: self.settled,
        }
    }

    /// Switches to another schedule for the arrivals not yet returned.
    pub fn follow(&mut self, schedule: Schedule) {
        self.schedule = std::borrow::Cow::Owned(schedule);
        self.segment = 0;
        let ahead = std::mem::take(&mut self.ahead);
        let mut numbers: Vec<_> = ahead.into_iter().map(|Reverse((_, number))| number).collect();
        numbers.sort_unstable();
        for number in numbers {
            let due = self.due(number).unwrap_or(NEVER);
            self.ahead.push(Reverse((due, number)));
        }
        // Forces a look at the next arrival before one of these is returned.
        self.settled = 0;
    }

    /// Skips the arrivals due before `from` and returns their number. Takes O(log n) steps.
    pub fn skip_before(&mut self, from: Nanos) -> u64 {
        let jitter = self.jitter();
        // These are due before `from` with any jitter.
        let mut count = self.jump(from.saturating_sub(jitter));
        if jitter > 0 {
            while let Some(arrival) = self.next_jittered() {
                if arrival.due >= from {
                    self.ahead.push(Reverse((arrival.due, arrival.number)));
                    break;
                }
                count += 1;
            }
        }
        count
    }

    /// Skips the arrivals due before `from` without jitter and returns their number.
    fn jump(&mut self, from: Nanos) -> u64 {
        let first = self.own;
        // Probes a copy: walking backwards restarts from the beginning.
        let before = |share: &Self, own: Option<u64>| {
            let mut probe = share.clone();
            probe.own = own?;
            let number = probe.slice.number_u64(probe.own);
            let due = probe.due(number)?;
            (due - probe.delay(number) < from).then_some(probe)
        };
        let Some(last) = before(self, Some(first)) else { return 0 };
        *self = last;
        let ahead = |share: &Self, steps: u64| share.own.checked_add(steps);
        let mut steps = 1_u64;
        while let Some(further) = before(self, ahead(self, steps)) {
            *self = further;
            steps = steps.saturating_mul(2);
        }
        while steps > 1 {
            steps /= 2;
            if let Some(further) = before(self, ahead(self, steps)) {
                *self = further;
            }
        }
        self.own += 1;
        self.own - first
    }

    /// When arrival `number` is due.
    pub(super) fn due(&mut self, number: u64) -> Option<Nanos> {
        match self.schedule.warmup {
            Some(warmup) if number < warmup.total => {
                Some((number as f64 / warmup.rate * SECOND as f64).round() as Nanos)
            }
            Some(warmup) => Some(warmup.length + self.main_due(number - warmup.total)?),
            None => self.main_due(number),
        }
    }

    /// The next arrival by number.
    #[inline]
    fn next_number(&mut self) -> Option<Arrival> {
        let number = self.slice.number_u64(self.own);
        let due = self.due(number)?;
        self.own += 1;
        Some(Arrival { number, due })
    }

    /// The next jittered arrival in due order.
    fn next_jittered(&mut self) -> Option<Arrival> {
        while self.ahead.peek().is_none_or(|Reverse((due, _))| *due > self.settled) {
            let Some(arrival) = self.next_number() else { break };
            self.ahead.push(Reverse((arrival.due, arrival.number)));
            let delay = self.delay(arrival.number);
            self.settled = arrival.due - delay;
        }
        self.ahead.peek().filter(|Reverse((due, _))| *due < NEVER)?;
        let Reverse((due, number)) = self.ahead.pop()?;
        Some(Arrival { number, due })
    }

    fn jitter(&self) -> Nanos {
        match self.schedule.due_times {
            DueTimes::Rates(Process::Bursts { jitter, .. }, _) => jitter,
            _ => 0,
        }
    }

    /// The jitter of arrival `number`; none in the warm-up.
    fn delay(&self, number: u64) -> Nanos {
        let warmup = self.schedule.warmup.map_or(0, |warmup| warmup.total);
        match self.schedule.due_times {
            DueTimes::Rates(Process::Bursts { jitter, .. }, _) if number >= warmup => {
                (random_unit(self.schedule.seed, self.schedule.number(number - warmup))
                    * jitter as f64) as Nanos
            }
            _ => 0,
        }
    }

    /// When arrival `main` after the warm-up is due, counted from the end of the warm-up.
    fn main_due(&mut self, main: u64) -> Option<Nanos> {
        if main >= self.schedule.limit {
            return None;
        }
        let main = self.schedule.number(main);
        let (process, area) = match &self.schedule.due_times {
            DueTimes::Rates(process, area) => (process, area),
            DueTimes::Trace(trace) => return trace.due(main),
        };
        let count = match *process {
            Process::Uniform | Process::Bursts { .. } if main >= area.count() => return None,
            Process::Uniform => main as f64,
            Process::Bursts { size, jitter } => {
                let first = main - main % size.max(1);
                let delay = (random_unit(self.schedule.seed, main) * jitter as f64) as Nanos;
                return Some(area.inverse(first as f64, &mut self.segment)? + delay);
            }
            Process::Poisson => self.walk.as_mut()?.position(main),
        };
        area.inverse(count, &mut self.segment)
    }
}

impl Iterator for SliceArrivals<'_> {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        match self.schedule.due_times {
            DueTimes::Rates(Process::Bursts { jitter: 1.., .. }, _) => self.next_jittered(),
            _ => self.next_number(),
        }
    }
}
