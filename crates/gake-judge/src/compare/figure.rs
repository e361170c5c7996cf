//! Values of figures and their confidence intervals.

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Histogram, Run};
use gake_text::units;

use super::bootstrap::{ErrorEstimate, OBSERVATIONS_MIN, spread};
use super::contrast::{Contrast, FigureEstimate, Ranks};
use super::kind::{FigureKind, FigureSource, MeasuredFigure, QUANTILES, RateBase, TimeKind};
use super::normal::{critical, normal_quantile};
use super::observations::{RunObservations, ScopeSums, SecondSums, TimeSums};
use super::scope::ScopeRecord;
use super::{ComparedRun, ERRORS_TOLERANCE, FigureChange, POWER};
use crate::stats::{BEYOND_MIN, per_second, share, trusted};

impl TimeKind {
    fn values<'a>(self, recorded: &'a ScopeRecord<'_>) -> &'a Histogram {
        match self {
            Self::Response => &recorded.response,
            Self::Service => &recorded.service,
        }
    }

    fn times(self, observation: &ScopeSums) -> &TimeSums {
        match self {
            Self::Response => &observation.response,
            Self::Service => &observation.service,
        }
    }
}

/// Arrivals due that did not end ok.
fn errors(counts: &Counts) -> u64 {
    counts.due().saturating_sub(counts.ok)
}

impl MeasuredFigure {
    /// The figure's value in a run; NaN if it has none.
    pub(super) fn value(&self, run: &Run) -> f64 {
        self.value_of(run, &self.scope.of_run(run))
    }

    fn value_of(&self, run: &Run, recorded: &ScopeRecord<'_>) -> f64 {
        let counts = &recorded.counts;
        match self.source {
            FigureSource::RateBase(count, flow) => {
                per_second(count(counts) as f64, self.time(run, flow))
            }
            FigureSource::Counter => per_second(recorded.sum, self.time(run, RateBase::Completing)),
            FigureSource::Errors if counts.due() == 0 => f64::NAN,
            FigureSource::Errors => share(errors(counts), counts.due()),
            FigureSource::Passed => recorded.sum / recorded.samples,
            FigureSource::Mean(clock) => {
                let values = clock.values(recorded);
                if values.is_empty() { f64::NAN } else { values.mean() }
            }
            FigureSource::Quantile(clock, i) => {
                let values = clock.values(recorded);
                if values.is_empty() { f64::NAN } else { values.quantile_number(QUANTILES[i]) }
            }
        }
    }

    /// The duration that a rate is divided by.
    fn time(&self, run: &Run, flow: RateBase) -> Nanos {
        let (sending, completing) = self.scope.times(run);
        match flow {
            RateBase::Sending => sending,
            RateBase::Completing => completing,
        }
    }

    fn ratio(&self, observation: &SecondSums, number: usize) -> (f64, f64) {
        let Some(scope) = observation.scopes.get(number) else { return (0.0, 0.0) };
        match self.source {
            FigureSource::RateBase(count, _) => (count(&scope.counts) as f64, observation.weight),
            FigureSource::Counter => (scope.sum, observation.weight),
            FigureSource::Errors => (errors(&scope.counts) as f64, scope.counts.due() as f64),
            FigureSource::Passed => (scope.sum, scope.samples),
            FigureSource::Mean(clock) => (clock.times(scope).sum, clock.times(scope).count),
            FigureSource::Quantile(clock, i) => {
                (clock.times(scope).beyond[i], clock.times(scope).count)
            }
        }
    }

    /// The estimate from one run, or why there is none.
    pub(super) fn side(&self, sample: &ComparedRun) -> Result<FigureEstimate, String> {
        let run = &sample.run;
        let recorded = self.scope.of_run(run);
        let ratios = sample.observations.ratios(|observation| self.ratio(observation, self.number));
        if ratios.len() < OBSERVATIONS_MIN {
            return Err(format!(
                "only {} whole seconds were measured; {OBSERVATIONS_MIN} are needed",
                ratios.len()
            ));
        }
        let estimated = spread(&ratios);
        let unknown = ErrorEstimate { error: 0.0, freedom: (ratios.len() - 1) as f64 };
        match self.source {
            FigureSource::RateBase(..) | FigureSource::Counter => {
                let value = self.value_of(run, &recorded);
                let count = self.counted(&recorded);
                let spread = estimated.unwrap_or(unknown);
                // At least the error of half an arrival at the edges.
                let least = 0.5 / count.max(0.5);
                let spread = ErrorEstimate { error: spread.error.max(least), ..spread };
                if count == 0.0 {
                    return Ok(FigureEstimate::Value { value: 1e-3_f64.ln(), spread });
                }
                let value = positive(value)?.ln();
                Ok(FigureEstimate::Value { value, spread })
            }
            FigureSource::Errors => {
                let due = recorded.counts.due() as f64;
                share_side(errors(&recorded.counts) as f64, due, &ratios)
            }
            FigureSource::Passed => share_side(recorded.sum, recorded.samples, &ratios),
            FigureSource::Mean(clock) => {
                let values = clock.values(&recorded);
                self.has_ratios(values)?;
                let spread = estimated.filter(|_| values.mean() > 0.0).ok_or(
                    "no time was \
                                                                              recorded",
                )?;
                Ok(FigureEstimate::Value { value: values.mean().ln(), spread })
            }
            FigureSource::Quantile(clock, i) => {
                let values = clock.values(&recorded);
                let quantile = QUANTILES[i];
                enough(quantile, values.count())?;
                self.has_ratios(values)?;
                // The share beyond has the variance of its observations, and no less than that of
                // independent samples: identical values would show none.
                let n = values.count() as f64;
                let beyond = sum_ratio(&ratios);
                let least = (quantile * (1.0 - quantile) / n).sqrt();
                let spread =
                    estimated.map_or(unknown, |s| ErrorEstimate { error: s.error * beyond, ..s });
                let spread = ErrorEstimate { error: spread.error.max(least), ..spread };
                Ok(FigureEstimate::Ranked { quantile, ranks: Ranks::of(values), spread })
            }
        }
    }

    /// Checks that a relative change of these values exists. A time of zero is one below the
    /// clock's resolution.
    fn has_ratios(&self, values: &Histogram) -> Result<(), String> {
        let is_time = self.kind == FigureKind::Time;
        let fits = values.min_number() > 0.0 || is_time && values.min_number() == 0.0;
        let problem =
            || "it has values of zero or below, so there is no relative change".to_owned();
        fits.then_some(()).ok_or_else(problem)
    }

    fn counted(&self, recorded: &ScopeRecord<'_>) -> f64 {
        match self.source {
            FigureSource::RateBase(count, _) => count(&recorded.counts) as f64,
            _ => recorded.samples,
        }
    }

    /// The contrast of alternating sides, or why it cannot be computed.
    pub(super) fn paired(
        &self,
        wholes: [&Run; 2],
        pairs: &[(Run, Run)],
    ) -> Result<Contrast, String> {
        if pairs.len() < OBSERVATIONS_MIN {
            return Err(format!(
                "only {} pairs of slices; {OBSERVATIONS_MIN} are needed",
                pairs.len()
            ));
        }
        if let FigureSource::Errors | FigureSource::Passed = self.source {
            let side = |whole: &Run, slices: Vec<&Run>| {
                let observations =
                    RunObservations::of_slices(whole, &self.scope, slices.into_iter());
                let ratios = observations.ratios(|observation| self.ratio(observation, 0));
                let recorded = self.scope.of_run(whole);
                let (top, bottom) = match self.source {
                    FigureSource::Passed => (recorded.sum, recorded.samples),
                    _ => (errors(&recorded.counts) as f64, recorded.counts.due() as f64),
                };
                share_side(top, bottom, &ratios)
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
        let logs = logs.ok_or("a slice has no samples")?;
        let n = logs.len() as f64;
        let recorded = wholes.map(|whole| self.scope.of_run(whole));
        if let FigureSource::Quantile(clock, i) = self.source {
            for recorded in &recorded {
                enough(QUANTILES[i], clock.values(recorded).count())?;
            }
        }
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // One arrival more or less at the edge of a slice, and the histograms' precision.
        let least = match self.source {
            FigureSource::RateBase(..) | FigureSource::Counter => {
                let counts = recorded.each_ref().map(|recorded| self.counted(recorded));
                n.sqrt() / counts[0].min(counts[1]).max(1.0)
            }
            _ => 0.0005 / n.sqrt(),
        };
        let error = (variance / n).sqrt().max(least);
        Ok(Contrast::Paired { difference: mean, spread: ErrorEstimate { error, freedom: n - 1.0 } })
    }

    /// The difference of B with its confidence interval at level `alpha`.
    pub(super) fn change(&self, contrast: &Contrast, alpha: f64, p: f64) -> FigureChange {
        let plain = |x: f64| if self.kind == FigureKind::Share { x } else { x.exp_m1() };
        let estimate = contrast.estimate();
        let (low, high) = contrast.interval(alpha);
        // Half the interval is t standard errors; a change of t + z of them is detected with the
        // probability of z.
        let t = critical(alpha, contrast.freedom());
        let needed = (estimate - low).max(high - estimate) * (t + normal_quantile(POWER)) / t;
        let detectable = plain(needed);
        FigureChange {
            estimate: plain(estimate),
            low: plain(low),
            high: plain(high),
            alpha,
            p,
            detectable: detectable.is_finite().then_some(detectable),
        }
    }

    /// The largest change that does not matter, where A is `a`.
    pub(super) fn tolerance(&self, tolerance: f64, a: f64) -> f64 {
        match self.kind {
            FigureKind::Share => ERRORS_TOLERANCE.max(tolerance * a),
            _ => tolerance,
        }
    }
}

/// The estimate of a share, with the effective number of independent samples: fewer by the factor
/// by which the observations vary more than those.
fn share_side(top: f64, bottom: f64, ratios: &[(f64, f64)]) -> Result<FigureEstimate, String> {
    if bottom == 0.0 {
        return Err("there are no samples".to_owned());
    }
    let ratio = top / bottom;
    let (mut inflation, mut freedom): (f64, f64) = (1.0, (ratios.len() - 1) as f64);
    if let Some(estimated) = spread(ratios) {
        let independent = ratio * (1.0 - ratio) / bottom;
        if independent > 0.0 {
            inflation = ((estimated.error * sum_ratio(ratios)).powi(2) / independent).max(1.0);
        }
        freedom = estimated.freedom;
    }
    Ok(FigureEstimate::Share { share: ratio, effective: bottom / inflation, freedom })
}

fn positive(value: f64) -> Result<f64, String> {
    let problem = || "it is zero or negative, so there is no relative change".to_owned();
    if value > 0.0 { Ok(value) } else { Err(problem()) }
}

/// Checks that enough samples lie beyond a quantile.
fn enough(quantile: f64, count: u64) -> Result<(), String> {
    if trusted(quantile, count) {
        return Ok(());
    }
    let needed = units::count((BEYOND_MIN / (1.0 - quantile)).round() as u64);
    Err(format!("{} samples are too few; it needs {needed}", units::count(count)))
}

/// Σa/Σb, or 0 when b is empty.
fn sum_ratio(ratios: &[(f64, f64)]) -> f64 {
    let (top, bottom) = ratios.iter().fold((0.0, 0.0), |sum, r| (sum.0 + r.0, sum.1 + r.1));
    if bottom > 0.0 { top / bottom } else { 0.0 }
}
