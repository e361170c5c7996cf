//! The figures that are compared.

use gake_core::record::{Counts, Metric, Run};

use super::bootstrap::{PIECES_MIN, Spread, spread};
use super::normal::{critical, normal_quantile};
use super::pieces::{Piece, Pieces, Times};
use super::spread::{Contrast, Ranks, Side};
use super::{Change, ERRORS_TOLERANCE, POWER, Question, RunSample};
use crate::stats::{BEYOND_MIN, Rates, share, trusted};
use crate::units;

/// The quantiles that are compared.
pub(super) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// A number a second.
    Rate,
    /// A share of the requests, 0 to 1.
    Share,
    /// Nanoseconds.
    Time,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Up,
    /// Less is better.
    Down,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Rate(fn(&Counts) -> u64, fn(&Rates) -> f64),
    Errors,
    Mean(Clock),
    /// By its place in [`QUANTILES`].
    Quantile(Clock, usize),
}

#[derive(Debug, Clone, Copy)]
enum Clock {
    Response,
    Service,
}

/// A figure that can be measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) kind: FigureKind,
    pub(super) direction: Direction,
    source: Source,
}

/// The names of the figures, in the order in which they are told.
pub const NAMES: [&str; 16] = {
    let mut names = [""; 16];
    let mut i = 0;
    while i < names.len() {
        names[i] = FIGURES[i].name;
        i += 1;
    }
    names
};

const fn rate(name: &'static str, count: fn(&Counts) -> u64, whole: fn(&Rates) -> f64) -> Measured {
    let source = Source::Rate(count, whole);
    Measured { name, kind: FigureKind::Rate, direction: Direction::Up, source }
}

const fn time(name: &'static str, source: Source) -> Measured {
    Measured { name, kind: FigureKind::Time, direction: Direction::Down, source }
}

static FIGURES: [Measured; 16] = [
    rate("sent", |counts| counts.sent, |rates| rates.sent),
    rate("completed", Counts::completed, |rates| rates.completed),
    rate("goodput", |counts| counts.ok, |rates| rates.goodput),
    Measured {
        name: "errors",
        kind: FigureKind::Share,
        direction: Direction::Down,
        source: Source::Errors,
    },
    time("response.mean", Source::Mean(Clock::Response)),
    time("response.p50", Source::Quantile(Clock::Response, 0)),
    time("response.p90", Source::Quantile(Clock::Response, 1)),
    time("response.p95", Source::Quantile(Clock::Response, 2)),
    time("response.p99", Source::Quantile(Clock::Response, 3)),
    time("response.p99.9", Source::Quantile(Clock::Response, 4)),
    time("service.mean", Source::Mean(Clock::Service)),
    time("service.p50", Source::Quantile(Clock::Service, 0)),
    time("service.p90", Source::Quantile(Clock::Service, 1)),
    time("service.p95", Source::Quantile(Clock::Service, 2)),
    time("service.p99", Source::Quantile(Clock::Service, 3)),
    time("service.p99.9", Source::Quantile(Clock::Service, 4)),
];

/// The figures that a question asks for.
pub(super) fn chosen(question: &Question) -> impl Iterator<Item = &'static Measured> {
    let wanted =
        |m: &&Measured| question.figures.is_empty() || question.figures.iter().any(|f| f == m.name);
    FIGURES.iter().filter(wanted)
}

impl Clock {
    fn histogram(self, run: &Run) -> std::borrow::Cow<'_, gake_core::record::Histogram> {
        match self {
            Self::Response => run.tally.latency.response(),
            Self::Service => std::borrow::Cow::Borrowed(run.tally.latency.of(Metric::Service)),
        }
    }

    fn times(self, piece: &Piece) -> &Times {
        match self {
            Self::Response => &piece.response,
            Self::Service => &piece.service,
        }
    }
}

/// Arrivals that were due and did not end ok.
fn errors(counts: &Counts) -> u64 {
    counts.due().saturating_sub(counts.ok)
}

impl Measured {
    /// Its value in a run; not a number when there is none.
    pub(super) fn value(&self, run: &Run) -> f64 {
        let counts = &run.tally.counts;
        match self.source {
            Source::Rate(_, whole) => whole(&Rates::of(run)),
            Source::Errors if counts.due() == 0 => f64::NAN,
            Source::Errors => share(errors(counts), counts.due()),
            Source::Mean(clock) => {
                let histogram = clock.histogram(run);
                if histogram.is_empty() { f64::NAN } else { histogram.mean() }
            }
            Source::Quantile(clock, i) => {
                let histogram = clock.histogram(run);
                if histogram.is_empty() {
                    f64::NAN
                } else {
                    histogram.quantile(QUANTILES[i]) as f64
                }
            }
        }
    }

    /// Numerator and denominator of a piece.
    fn ratio(&self, piece: &Piece) -> (f64, f64) {
        match self.source {
            Source::Rate(count, _) => (count(&piece.counts) as f64, piece.weight),
            Source::Errors => (errors(&piece.counts) as f64, piece.counts.due() as f64),
            Source::Mean(clock) => (clock.times(piece).sum, clock.times(piece).count),
            Source::Quantile(clock, i) => (clock.times(piece).beyond[i], clock.times(piece).count),
        }
    }

    /// Its interval in one run, or why there is none.
    pub(super) fn side(&self, sample: &RunSample) -> Result<Side, String> {
        let run = &sample.run;
        let ratios = sample.pieces.ratios(|piece| self.ratio(piece));
        if ratios.len() < PIECES_MIN {
            return Err(format!(
                "{} whole seconds were measured, and {PIECES_MIN} are needed",
                ratios.len()
            ));
        }
        let seen = spread(&ratios);
        let unknown = Spread { error: 0.0, freedom: (ratios.len() - 1) as f64 };
        match self.source {
            Source::Rate(count, whole) => {
                let count = count(&run.tally.counts) as f64;
                let spread = seen.unwrap_or(unknown);
                // One arrival more or less at the edge is chance, and none at all is some.
                let least = 0.5 / count.max(0.5);
                let spread = Spread { error: spread.error.max(least), ..spread };
                let each = whole(&Rates::of(run)) / count.max(1.0);
                if count == 0.0 {
                    return Ok(Side::Value { value: 1e-3_f64.ln(), spread });
                }
                Ok(Side::Value { value: (each * count).ln(), spread })
            }
            Source::Errors => self.errors_side(run, &ratios),
            Source::Mean(clock) => {
                let mean = clock.histogram(run).mean();
                let spread = seen.filter(|_| mean > 0.0).ok_or("nothing was timed")?;
                Ok(Side::Value { value: mean.ln(), spread })
            }
            Source::Quantile(clock, i) => {
                let histogram = clock.histogram(run);
                let quantile = QUANTILES[i];
                enough(quantile, histogram.count())?;
                // The share beyond has the variance that its pieces show, and no less than that
                // of independent samples: values that are all alike show none.
                let n = histogram.count() as f64;
                let beyond = sum_ratio(&ratios);
                let least = (quantile * (1.0 - quantile) / n).sqrt();
                let spread = seen.map_or(unknown, |s| Spread { error: s.error * beyond, ..s });
                let spread = Spread { error: spread.error.max(least), ..spread };
                Ok(Side::Ranked { quantile, ranks: Ranks::of(&histogram), spread })
            }
        }
    }

    /// The interval of the ratio of errors: that of independent arrivals, fewer by the factor by
    /// which the pieces show more variance than those.
    fn errors_side(&self, run: &Run, ratios: &[(f64, f64)]) -> Result<Side, String> {
        let due = run.tally.counts.due() as f64;
        if due == 0.0 {
            return Err("nothing was due".to_owned());
        }
        let ratio = errors(&run.tally.counts) as f64 / due;
        let (mut inflation, mut freedom): (f64, f64) = (1.0, (ratios.len() - 1) as f64);
        if let Some(seen) = spread(ratios) {
            let independent = ratio * (1.0 - ratio) / due;
            if independent > 0.0 {
                inflation = ((seen.error * sum_ratio(ratios)).powi(2) / independent).max(1.0);
            }
            freedom = seen.freedom;
        }
        Ok(Side::Share { share: ratio, effective: due / inflation, freedom })
    }

    /// The contrast of sides that took turns, or why there is none.
    pub(super) fn paired(
        &self,
        wholes: [&Run; 2],
        pairs: &[(Run, Run)],
    ) -> Result<Contrast, String> {
        if pairs.len() < PIECES_MIN {
            return Err(format!("{} pairs of slices, and {PIECES_MIN} are needed", pairs.len()));
        }
        if let Source::Errors = self.source {
            let side = |whole, slices: Vec<&Run>| {
                let pieces = Pieces::of_slices(whole, slices.into_iter());
                self.errors_side(whole, &pieces.ratios(|piece| self.ratio(piece)))
            };
            let a = side(wholes[0], pairs.iter().map(|pair| &pair.0).collect())?;
            let b = side(wholes[1], pairs.iter().map(|pair| &pair.1).collect())?;
            return Ok(Contrast::Apart(a, b));
        }
        let logs = pairs.iter().map(|(a, b)| {
            let (a, b) = (self.value(a), self.value(b));
            (a > 0.0 && b > 0.0).then(|| b.ln() - a.ln())
        });
        let logs: Option<Vec<f64>> = logs.collect();
        let logs = logs.ok_or("a slice has nothing to measure")?;
        let n = logs.len() as f64;
        if let Source::Quantile(clock, i) = self.source {
            for whole in wholes {
                enough(QUANTILES[i], clock.histogram(whole).count())?;
            }
        }
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // One arrival more or less at the edge of a slice, and the histograms' precision.
        let least = match self.source {
            Source::Rate(count, _) => {
                let counts = wholes.map(|whole| count(&whole.tally.counts) as f64);
                n.sqrt() / counts[0].min(counts[1]).max(1.0)
            }
            _ => 0.0005 / n.sqrt(),
        };
        let error = (variance / n).sqrt().max(least);
        Ok(Contrast::Paired { difference: mean, spread: Spread { error, freedom: n - 1.0 } })
    }

    /// How B differs, with the interval at `alpha`.
    pub(super) fn change(&self, contrast: &Contrast, alpha: f64, p: f64) -> Change {
        let plain = |x: f64| if self.kind == FigureKind::Share { x } else { x.exp_m1() };
        let estimate = contrast.estimate();
        let (low, high) = contrast.interval(alpha);
        // The arm of the interval is t standard errors; a change of t + z of them is found with
        // the chance of z.
        let t = critical(alpha, contrast.freedom());
        let needed = (estimate - low).max(high - estimate) * (t + normal_quantile(POWER)) / t;
        let detectable = plain(needed);
        Change {
            estimate: plain(estimate),
            low: plain(low),
            high: plain(high),
            alpha,
            p,
            detectable: detectable.is_finite().then_some(detectable),
        }
    }

    /// The change that does not matter yet, when A is `a`.
    pub(super) fn tolerance(&self, tolerance: f64, a: f64) -> f64 {
        match self.kind {
            FigureKind::Share => ERRORS_TOLERANCE.max(tolerance * a),
            FigureKind::Rate | FigureKind::Time => tolerance,
        }
    }
}

/// Whether enough samples lie beyond a quantile.
fn enough(quantile: f64, count: u64) -> Result<(), String> {
    if trusted(quantile, count) {
        return Ok(());
    }
    let needed = units::count((BEYOND_MIN / (1.0 - quantile)).round() as u64);
    Err(format!("{} samples are too few for it, which needs {needed}", units::count(count)))
}

/// Σa/Σb; 0 of nothing.
fn sum_ratio(ratios: &[(f64, f64)]) -> f64 {
    let (top, bottom) = ratios.iter().fold((0.0, 0.0), |sum, r| (sum.0 + r.0, sum.1 + r.1));
    if bottom > 0.0 { top / bottom } else { 0.0 }
}
