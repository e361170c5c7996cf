//! The definition of a figure: its source, its unit, its better direction.

use gake_core::record::Counts;

use super::scope::FigureScope;

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

#[derive(Debug, Clone, Copy)]
pub(super) enum FigureSource {
    /// Arrivals a second.
    RateBase(fn(&Counts) -> u64, RateBase),
    Errors,
    Mean(TimeKind),
    /// By its index in [`QUANTILES`].
    Quantile(TimeKind, usize),
    /// A counter's sum a second.
    Counter,
    /// A rate's share of non-zero samples.
    Passed,
}

/// The duration that a rate is divided by.
#[derive(Debug, Clone, Copy)]
pub(super) enum RateBase {
    Sending,
    Completing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TimeKind {
    /// Response times, or the values of a trend.
    Response,
    Service,
}

#[derive(Debug, Clone)]
pub(super) struct MeasuredFigure {
    pub(super) name: String,
    pub(super) kind: FigureKind,
    pub(super) direction: Direction,
    pub(super) source: FigureSource,
    pub(super) scope: FigureScope,
    /// The scope's index in [`FigureSelection::scopes`](super::FigureSelection).
    pub(super) number: usize,
}
