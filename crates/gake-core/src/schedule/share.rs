//! One worker's walk through a schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Course, Process, Schedule};
use crate::clock::{Nanos, SECOND};
use crate::work::Arrival;

/// Every n-th arrival of a schedule, in the order in which they are due. An iterator without
/// memory of what was done.
#[derive(Debug, Clone)]
pub struct Share<'a> {
    schedule: std::borrow::Cow<'a, Schedule>,
    stride: u64,
    /// The next arrival's number.
    number: u64,
    /// Main arrivals whose gaps `position` holds already.
    summed: u64,
    /// The sum of unit gaps up to and with number `summed − 1` (Poisson).
    position: f64,
    piece: usize,
    /// Jittered arrivals, due and number, that others may still come before: those of the time a
    /// jitter takes.
    ahead: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// When the last arrival put there would have been due without its jitter; nothing that
    /// follows is due before.
    settled: Nanos,
}

impl<'a> Share<'a> {
    pub(super) fn new(schedule: &'a Schedule, first: u64, stride: u64) -> Self {
        Self {
            schedule: std::borrow::Cow::Borrowed(schedule),
            stride,
            number: first,
            summed: 0,
            position: 0.0,
            piece: 0,
            ahead: BinaryHeap::new(),
            settled: 0,
        }
    }

    /// The same walk with its own copy of the schedule.
    #[must_use]
    pub fn into_owned(self) -> Share<'static> {
        Share {
            schedule: std::borrow::Cow::Owned(self.schedule.into_owned()),
            stride: self.stride,
            number: self.number,
            summed: self.summed,
            position: self.position,
            piece: self.piece,
            ahead: self.ahead,
            settled: self.settled,
        }
    }

    /// When arrival `number` is due.
    pub(super) fn due(&mut self, number: u64) -> Option<Nanos> {
        match self.schedule.lead {
            Some(lead) if number < lead.total => {
                Some((number as f64 / lead.rate * SECOND as f64).round() as Nanos)
            }
            Some(lead) => Some(lead.length + self.main_due(number - lead.total)?),
            None => self.main_due(number),
        }
    }

    /// The next arrival of the walk, which goes by number.
    #[inline]
    fn walk(&mut self) -> Option<Arrival> {
        let number = self.number;
        let due = self.due(number)?;
        self.number += self.stride;
        Some(Arrival { number, due })
    }

    /// The next of jittered arrivals in the order in which they are due.
    fn next_jittered(&mut self) -> Option<Arrival> {
        while self.ahead.peek().is_none_or(|Reverse((due, _))| *due > self.settled) {
            let Some(arrival) = self.walk() else { break };
            self.ahead.push(Reverse((arrival.due, arrival.number)));
            let delay = self.delay(arrival.number);
            self.settled = arrival.due - delay;
        }
        let Reverse((due, number)) = self.ahead.pop()?;
        Some(Arrival { number, due })
    }

    /// The jitter of arrival `number`; none in the warm-up.
    fn delay(&self, number: u64) -> Nanos {
        let lead = self.schedule.lead.map_or(0, |lead| lead.total);
        match self.schedule.course {
            Course::Rates(Process::Bursts { jitter, .. }, _) if number >= lead => {
                (unit(self.schedule.seed, number - lead) * jitter as f64) as Nanos
            }
            _ => 0,
        }
    }

    /// The instant of arrival `main` after the warm-up, on the warm-up's end as zero.
    fn main_due(&mut self, main: u64) -> Option<Nanos> {
        if main >= self.schedule.limit {
            return None;
        }
        let (process, area) = match &self.schedule.course {
            Course::Rates(process, area) => (process, area),
            Course::Trace(trace) => return trace.due(main),
        };
        let count = match *process {
            Process::Uniform | Process::Bursts { .. } if main >= area.count() => return None,
            Process::Uniform => main as f64,
            Process::Bursts { size, jitter } => {
                let first = main - main % size.max(1);
                let delay = (unit(self.schedule.seed, main) * jitter as f64) as Nanos;
                return Some(area.inverse(first as f64, &mut self.piece)? + delay);
            }
            Process::Poisson => {
                while self.summed <= main {
                    self.position += unit_gap(self.schedule.seed, self.summed);
                    self.summed += 1;
                }
                self.position
            }
        };
        area.inverse(count, &mut self.piece)
    }
}

impl Iterator for Share<'_> {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        match self.schedule.course {
            Course::Rates(Process::Bursts { jitter: 1.., .. }, _) => self.next_jittered(),
            _ => self.walk(),
        }
    }
}

/// The exponential gap of mean 1 before arrival `number`.
fn unit_gap(seed: u64, number: u64) -> f64 {
    // In (0, 1]: ln never sees zero.
    -(unit(seed, number) + 1.0 / (1u64 << 53) as f64).ln()
}

/// A random number in [0, 1) for arrival `number`: a pure function of seed and number, so that
/// every worker computes the same process alone. SplitMix64 as a counter-based generator (Steele,
/// Lea, Flood 2014).
fn unit(seed: u64, number: u64) -> f64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}
