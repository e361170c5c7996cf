//! Aggregated samples of a series.

use serde::{Deserialize, Serialize};

use super::definition::MetricKind;
use crate::clock::Nanos;
use crate::record::{Histogram, Sum};

/// The aggregated samples of a series. Merging is commutative and associative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesValue {
    /// Of a counter.
    Counter {
        /// The sum of the samples.
        sum: Sum,
        /// Number of samples.
        samples: u64,
    },
    /// Of a gauge.
    Gauge {
        /// The last value; of several at one instant, the largest.
        last: f64,
        /// When it was sampled.
        at: Nanos,
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
        /// Number of samples.
        samples: u64,
    },
    /// Of a rate.
    Rate {
        /// Samples that were not zero.
        passed: u64,
        /// All samples.
        samples: u64,
    },
    /// Of a trend.
    Trend(Box<Histogram>),
}

impl SeriesValue {
    /// The value of a metric of this kind without samples.
    #[must_use]
    pub fn new(kind: MetricKind) -> Self {
        match kind {
            MetricKind::Counter => Self::Counter { sum: Sum::default(), samples: 0 },
            MetricKind::Gauge => Self::Gauge {
                last: 0.0,
                at: 0,
                min: f64::INFINITY,
                max: f64::NEG_INFINITY,
                samples: 0,
            },
            MetricKind::Rate => Self::Rate { passed: 0, samples: 0 },
            MetricKind::Trend => Self::Trend(Box::default()),
        }
    }

    /// The kind of its metric.
    #[must_use]
    pub fn kind(&self) -> MetricKind {
        match self {
            Self::Counter { .. } => MetricKind::Counter,
            Self::Gauge { .. } => MetricKind::Gauge,
            Self::Rate { .. } => MetricKind::Rate,
            Self::Trend(_) => MetricKind::Trend,
        }
    }

    /// Adds a finite sample taken at `at`.
    #[inline]
    pub(super) fn add(&mut self, value: f64, at: Nanos) {
        match self {
            Self::Counter { sum, samples } => {
                sum.add(value);
                *samples += 1;
            }
            Self::Gauge { .. } => {
                self.merge(&Self::Gauge { last: value, at, min: value, max: value, samples: 1 });
            }
            Self::Rate { passed, samples } => {
                *passed += u64::from(value != 0.0);
                *samples += 1;
            }
            Self::Trend(histogram) => histogram.record_number(value),
        }
    }

    /// The number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        match self {
            Self::Counter { samples, .. }
            | Self::Gauge { samples, .. }
            | Self::Rate { samples, .. } => *samples,
            Self::Trend(histogram) => histogram.count(),
        }
    }

    /// Adds the samples of a value of the same kind; ignores other kinds.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Counter { sum, samples }, Self::Counter { sum: more, samples: n }) => {
                sum.merge(*more);
                *samples = samples.saturating_add(*n);
            }
            (
                Self::Gauge { last, at, min, max, samples },
                Self::Gauge { last: value, at: when, min: low, max: high, samples: n },
            ) => {
                if *samples == 0 || (*n > 0 && is_later((*when, *value), (*at, *last))) {
                    (*last, *at) = (*value, *when);
                }
                (*min, *max) = (min.min(*low), max.max(*high));
                *samples = samples.saturating_add(*n);
            }
            (Self::Rate { passed, samples }, Self::Rate { passed: more, samples: n }) => {
                *passed = passed.saturating_add(*more);
                *samples = samples.saturating_add(*n);
            }
            (Self::Trend(histogram), Self::Trend(other)) => histogram.merge(other),
            _ => {}
        }
    }

    /// Removes all samples. With `keep`, keeps memory as [`Histogram::clear`] does and returns its
    /// bytes.
    pub(super) fn clear(&mut self, keep: bool) -> usize {
        match self {
            Self::Trend(histogram) if keep => {
                histogram.clear();
                histogram.heap_bytes()
            }
            Self::Trend(histogram) => {
                **histogram = Histogram::new();
                0
            }
            other => {
                *other = Self::new(other.kind());
                0
            }
        }
    }

    /// Heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Trend(histogram) => size_of::<Histogram>() + histogram.heap_bytes(),
            _ => 0,
        }
    }
}

/// Whether `new` was sampled after `old`, or at the same instant and is larger.
fn is_later(new: (Nanos, f64), old: (Nanos, f64)) -> bool {
    new.0.cmp(&old.0).then(new.1.total_cmp(&old.1)).is_gt()
}
