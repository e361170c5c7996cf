//! One worker's walk through a schedule.

use super::{Course, Process, Schedule};
use crate::clock::{Nanos, SECOND};
use crate::work::Arrival;

/// Every n-th arrival of a schedule, in order. An iterator without memory of what was done.
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
        }
    }

    pub(super) fn skip_to(&mut self, number: u64) {
        self.number = number;
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
        let count = match process {
            Process::Uniform => {
                if main >= area.count() {
                    return None;
                }
                main as f64
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
        let number = self.number;
        let due = match self.schedule.lead {
            Some(lead) if number < lead.total => {
                (number as f64 / lead.rate * SECOND as f64).round() as Nanos
            }
            Some(lead) => lead.length + self.main_due(number - lead.total)?,
            None => self.main_due(number)?,
        };
        self.number += self.stride;
        Some(Arrival { number, due })
    }
}

/// The exponential gap of mean 1 before arrival `number`: a pure function of seed and number, so
/// that every worker computes the same process alone. SplitMix64 as a counter-based generator
/// (Steele, Lea, Flood 2014).
fn unit_gap(seed: u64, number: u64) -> f64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // 53 random bits in (0, 1]: ln never sees zero.
    let uniform = ((z >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}
