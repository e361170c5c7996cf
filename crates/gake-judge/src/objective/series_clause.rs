//! Clauses on a metric of the run's own: `checks>99%`, `http_req_duration{name:login}:p95<300ms`.
//!
//! Each sample is good or bad. A dropped iteration has no sample and counts as a bad one.

use gake_core::clock::Nanos;
use gake_core::metric::{SeriesValue, Tags};
use gake_core::record::Tally;

use super::quantity::Statistic;
use super::series::{SeriesBound, SeriesClaim, SeriesStatistic};
use super::{BadCount, ClauseBound};

/// The samples, and the criterion of bad ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeriesClause {
    metric: String,
    tags: Tags,
    bad: BadSample,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BadSample {
    /// In a trend of times: over the limit.
    Over(Nanos),
    /// In a rate: not zero, as in `http_req_failed`.
    Passed,
    /// In a rate: zero, as in `checks`.
    NotPassed,
    /// None: the mean is bounded.
    Mean,
}

impl SeriesClause {
    /// The clause of a claim, and its bound.
    ///
    /// # Errors
    /// Why it cannot be searched for.
    pub(super) fn of(
        claim: &SeriesClaim,
        is_upper: bool,
    ) -> Result<(ClauseBound, Self), &'static str> {
        let share = match claim.bound {
            SeriesBound::Percent(percent) => Some(percent / 100.0),
            SeriesBound::Number(number) => Some(number),
            _ => None,
        };
        let (bound, bad) = match (claim.statistic, claim.bound, is_upper) {
            (
                Some(SeriesStatistic::Of(Statistic::Percentile(percent))),
                SeriesBound::Time(limit),
                true,
            ) if percent < 100.0 => {
                (ClauseBound::Share(1.0 - percent / 100.0), BadSample::Over(limit))
            }
            (Some(SeriesStatistic::Of(Statistic::Mean)), SeriesBound::Time(limit), true) => {
                (ClauseBound::Level(limit as f64), BadSample::Mean)
            }
            (None | Some(SeriesStatistic::Rate), _, _) => match (share, is_upper) {
                (Some(share), true) if 0.0 < share && share < 1.0 => {
                    (ClauseBound::Share(share), BadSample::Passed)
                }
                (Some(share), false) if 0.0 < share && share < 1.0 => {
                    (ClauseBound::Share(1.0 - share), BadSample::NotPassed)
                }
                _ => return Err("write a share between 0 and 100 %, as in checks>99%"),
            },
            _ => {
                return Err("write a share or a percentile of times, as in checks>99% or \
                            http_req_duration:p95<300ms");
            }
        };
        let (metric, tags) = (claim.metric.clone(), claim.tags.clone());
        Ok((bound, Self { metric, tags, bad }))
    }

    /// The bound in nanoseconds, if it bounds a time.
    pub(super) fn limit(&self, bound: ClauseBound) -> Option<Nanos> {
        match (self.bad, bound) {
            (BadSample::Over(limit), _) => Some(limit),
            (BadSample::Mean, ClauseBound::Level(mean)) => Some(mean as Nanos),
            _ => None,
        }
    }

    /// The bad samples of a tally, and all of them.
    pub(super) fn count(&self, tally: &Tally) -> BadCount {
        let (mut bad, mut of) = (tally.counts.dropped, tally.counts.dropped);
        for (_, value) in tally.series.select(&self.metric, &self.tags) {
            let samples = value.samples();
            of += samples;
            bad += match (self.bad, value) {
                (BadSample::Over(limit), SeriesValue::Trend(trend)) => {
                    samples.saturating_sub(trend.count_up_to(limit))
                }
                (BadSample::Passed, SeriesValue::Rate { passed, .. }) => *passed,
                (BadSample::NotPassed, SeriesValue::Rate { passed, .. }) => samples - passed,
                _ => 0,
            };
        }
        BadCount { bad: bad as f64, of: of as f64 }
    }

    /// The mean of the samples, if it is bounded and there are some.
    pub(super) fn mean(&self, tally: &Tally) -> Option<f64> {
        if self.bad != BadSample::Mean {
            return None;
        }
        let (mut sum, mut samples) = (0.0, 0_u64);
        for (_, value) in tally.series.select(&self.metric, &self.tags) {
            if let SeriesValue::Trend(trend) = value {
                sum += trend.mean() * trend.count() as f64;
                samples += trend.count();
            }
        }
        (samples > 0).then(|| sum / samples as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gake_core::metric::{Definition, MetricKind, MetricUnit};

    use super::*;
    use crate::objective::{Clause, Objective};
    use crate::testing::MS;

    fn clause(text: &str) -> Result<Clause, String> {
        text.parse::<Objective>().unwrap().of_script()?.clause()
    }

    fn metric(name: &str, kind: MetricKind, unit: MetricUnit) -> Arc<Definition> {
        Arc::new(Definition { name: name.to_owned(), kind, unit })
    }

    fn tally() -> Tally {
        let checks = metric("checks", MetricKind::Rate, MetricUnit::Number);
        let trend = metric("http_req_duration", MetricKind::Trend, MetricUnit::Time);
        let mut tally = Tally::default();
        let series = tally.series.intern(&checks, &Tags::default());
        (0..100).for_each(|n| tally.series.add(series, f64::from(u8::from(n >= 3)), n));
        for (name, time, samples) in [("login", 400 * MS, 10), ("home", 5 * MS, 90)] {
            let series = tally.series.intern(&trend, &Tags::new([("name", name)]));
            (0..samples).for_each(|n| tally.series.add(series, time as f64, n));
        }
        tally
    }

    #[test]
    fn samples_are_good_or_bad() {
        let tally = tally();
        for (text, share, bad, of) in [
            ("checks>99%", 0.01, 3.0, 100.0),
            ("checks:rate>0.99", 0.01, 3.0, 100.0),
            ("http_req_failed<1%", 0.01, 0.0, 0.0),
            ("http_req_duration:p95<300ms", 0.05, 10.0, 100.0),
            ("http_req_duration{name:home}:p95<300ms", 0.05, 0.0, 90.0),
        ] {
            let clause = clause(text).unwrap();
            let ClauseBound::Share(allowed) = clause.bound else { panic!("{text}: {clause:?}") };
            assert!((allowed - share).abs() < 1e-12, "{text}: {allowed}");
            assert_eq!(clause.count(&tally, &[]), BadCount { bad, of }, "{text}");
        }
        assert_eq!(clause("http_req_duration:p95<300ms").unwrap().limit(), Some(300 * MS));
    }

    #[test]
    fn a_dropped_iteration_is_a_bad_sample() {
        let mut tally = tally();
        tally.counts.dropped = 7;
        let counted = clause("checks>99%").unwrap().count(&tally, &[]);
        assert_eq!(counted, BadCount { bad: 10.0, of: 107.0 });
    }

    #[test]
    fn a_mean_is_over_all_series() {
        let mean = clause("http_req_duration:avg<100ms").unwrap();
        assert_eq!(mean.bound, ClauseBound::Level(100e6));
        let level = mean.level(&tally(), &[]).unwrap();
        assert!((level - 44.5e6).abs() < 0.005 * 44.5e6, "{level}");
    }

    #[test]
    fn labels_are_metrics_and_tags() {
        for (text, of) in [
            ("http_req_duration{name:login}:p95<300ms", 10.0),
            ("http_req_duration:p95<300ms", 100.0),
            ("nothing_here:p95<300ms", 0.0),
        ] {
            assert_eq!(clause(text).unwrap().count(&tally(), &[]).of, of, "{text}");
        }
        assert!(clause("login:errors<1%").unwrap_err().contains("no labels"));
        assert!(clause("p95<2s").is_ok());
    }

    #[test]
    fn bounds_that_one_sample_decides_are_refused() {
        for text in ["my_counter:count<10", "http_req_duration:max<1s", "checks>100%"] {
            assert!(clause(text).is_err(), "{text}");
        }
    }
}
