//! What a figure of a comparison is: its source, its unit, which way is better.

use gake_core::record::Counts;

use super::part::Part;

/// The quantiles that are compared.
pub(super) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// A number a second.
    Rate,
    /// A share of the requests or samples, 0 to 1.
    Share,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A plain number.
    Number,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Up,
    /// Less is better.
    Down,
    /// Not known: of a program's own numbers only a difference can be stated.
    Unknown,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// Arrivals a second: of those sent, over the time of sending.
    Flow(fn(&Counts) -> u64, Flow),
    Errors,
    Mean(Clock),
    /// By its place in [`QUANTILES`].
    Quantile(Clock, usize),
    /// The sum of a counter, a second.
    Counter,
    /// The share of a rate.
    Passed,
}

/// Over which time a rate is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flow {
    Sending,
    Completing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    /// Response times; of a trend its values.
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
    /// The number of the part among those of all figures.
    pub(super) number: usize,
}
