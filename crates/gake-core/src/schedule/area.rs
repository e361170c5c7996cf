//! The area under the rate, Λ(t), and its inverse.

use super::Stage;
use crate::clock::{Nanos, SECOND};

/// Tolerance (relative, absolute below 1) within which counts are whole numbers: a rate times a
/// time is rarely exact in binary.
const SNAP: f64 = 1e-9;

/// A stage, with its start in seconds and in counts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    start: f64,
    length: f64,
    from: f64,
    to: f64,
    before: f64,
    area: f64,
}

/// Λ(t): the rate is linear in each segment, the area quadratic.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Area {
    segments: Vec<Segment>,
}

impl Area {
    pub(super) fn new(stages: &[Stage]) -> Self {
        let (mut start, mut before) = (0.0, 0.0);
        let segments = stages
            .iter()
            .map(|stage| {
                let length = if stage.duration == std::time::Duration::MAX {
                    f64::INFINITY
                } else {
                    stage.duration.as_secs_f64()
                };
                // ∞ × 0 is NaN; the area is 0.
                let mean = f64::midpoint(stage.from, stage.to);
                let area = if mean == 0.0 { 0.0 } else { mean * length };
                let segment =
                    Segment { start, length, from: stage.from, to: stage.to, before, area };
                start += length;
                before += area;
                segment
            })
            .collect();
        Self { segments }
    }

    /// Multiplies all rates by `factor`.
    pub(super) fn scale(&mut self, factor: f64) {
        for segment in &mut self.segments {
            for value in
                [&mut segment.from, &mut segment.to, &mut segment.before, &mut segment.area]
            {
                *value *= factor;
            }
        }
    }

    /// The whole numbers n with 0 ≤ n < Λ(end).
    pub(super) fn count(&self) -> u64 {
        let Some(last) = self.segments.last() else { return 0 };
        let total = last.before + last.area;
        if total.is_infinite() {
            return u64::MAX;
        }
        // A float-to-integer cast saturates.
        (total - SNAP * total.max(1.0)).ceil().max(0.0) as u64
    }

    /// The end of the last segment, unless it is endless.
    pub(super) fn end(&self) -> Option<Nanos> {
        let end = self.segments.last().map_or(0.0, |last| last.start + last.length);
        end.is_finite().then(|| to_nanos(end))
    }

    /// Λ at `t` seconds.
    pub(super) fn at(&self, t: f64) -> f64 {
        let within = self.segments.iter().take_while(|segment| segment.start < t);
        within.last().map_or(0.0, |segment| {
            segment.before + segment.area_to((t - segment.start).min(segment.length))
        })
    }

    /// The instant at which the area reaches `count`; `None` if it never does. The search starts at
    /// segment `hint`, which is set to the one found: walking forward takes O(1) a step.
    pub(super) fn inverse(&self, count: f64, hint: &mut usize) -> Option<Nanos> {
        while let Some(segment) = self.segments.get(*hint) {
            let into = count - segment.before;
            let last = *hint + 1 == self.segments.len();
            let limit = if last {
                segment.area - SNAP * segment.area.clamp(1.0, 1e15)
            } else {
                segment.area
            };
            if into < limit {
                return Some(to_nanos(segment.start + segment.time_to(into.max(0.0))));
            }
            *hint += 1;
        }
        None
    }
}

impl Segment {
    fn slope(&self) -> f64 {
        if self.length.is_finite() && self.length > 0.0 {
            (self.to - self.from) / self.length
        } else {
            0.0
        }
    }

    /// The area of the first `t` seconds of this segment.
    fn area_to(&self, t: f64) -> f64 {
        self.from * t + self.slope() * t * t / 2.0
    }

    /// The seconds after which the area is `area`: the positive root of
    /// `from·t + (to − from)·t²/(2·length) = area`, without cancellation.
    fn time_to(&self, area: f64) -> f64 {
        if area == 0.0 && self.from == 0.0 {
            return 0.0;
        }
        let root = (self.from * self.from + 2.0 * self.slope() * area).max(0.0).sqrt();
        (2.0 * area / (self.from + root)).min(self.length)
    }
}

fn to_nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}
