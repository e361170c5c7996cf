//! The definition of a figure: its source, its unit, its better direction.

use gake_core::record::Counts;

use super::part::Part;

/// The quantiles that are compared.
pub(super) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// Per second.
    Rate,
    /// A share of the requests or samples, 0 to 1.
    Share,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A unitless number.
    Number,
}

/// The better direction of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Up,
    /// Less is better.
    Down,
    /// Unknown: for a program's own metrics only a difference can be stated.
    Unknown,
}

/// The source of a figure.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// Arrivals a second.
    Flow(fn(&Counts) -> u64, Flow),
    Errors,
    Mean(Clock),
    /// By its index in [`QUANTILES`].
    Quantile(Clock, usize),
    /// A counter's sum a second.
    Counter,
    /// A rate's share of non-zero samples.
    Passed,
}

/// The duration that a rate is divided by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flow {
    Sending,
    Completing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    /// Response times, or the values of a trend.
    Response,
    Service,
}

/// A figure that can be measured.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) kind: FigureKind,
    pub(super) direction: Direction,
    pub(super) source: Source,
    pub(super) part: Part,
    /// The scope's index in [`ComparedFigures::parts`](super::ComparedFigures).
    pub(super) number: usize,
}
