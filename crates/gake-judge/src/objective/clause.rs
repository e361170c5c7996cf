//! An objective as a search for the capacity sees it: a share of the requests that may be bad.
//!
//! `p99<50ms` allows 1 % of the requests to take longer than 50 ms, `errors<0.1%` allows 0.1 % to
//! not end ok. A share is a count out of a count, so steps can be pooled and their
//! uncertainty computed; a percentile alone cannot. A failed request was not answered in time
//! either, so it is bad for both.

use gake_core::clock::Nanos;
use gake_core::plan::{Plan, WorkKind};
use gake_core::record::{Histogram, LabelTally, LatencyMetric, Tally};

use super::gauge::Gauge;
use super::quantity::{Bad, Bound, Measure, Quantity, Statistic};
use super::series::SeriesClaim;
use super::series_clause::SeriesClause;
use super::{Claim, Objective, Operator, Scope};

/// An objective as a bounded share or level.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// The objective, as the user writes it.
    pub text: String,
    /// What is counted.
    pub bound: Bound,
    label: Option<String>,
    source: Source,
}

/// Where its numbers come from.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    /// Requests slower than the limit, and those that failed.
    Slow(Measure, Nanos),
    /// Requests that did not end ok.
    Errors,
    /// The mean of a second's latency.
    Mean(Measure),
    /// A level of the target, by its name.
    Target(String),
    /// Samples of a metric of the run's own.
    Series(SeriesClause),
}

impl Objective {
    /// What it says of a script's run, whose requests have tags instead of labels:
    /// `http_req_duration{name:login}:p95<1s` and `my_trend:p95<1s` are of metrics, and what is
    /// left, as `p95<2s`, is of whole iterations.
    ///
    /// # Errors
    /// When a script has nothing that it could be of, in one sentence.
    pub fn of_script(self) -> Result<Self, String> {
        let Claim::Builtin { scope, quantity } = &self.claim else { return Ok(self) };
        let is_service = matches!(
            quantity,
            Quantity::Latency { measure: Measure::Of(LatencyMetric::Service), .. }
        );
        if scope.label.is_none() && !is_service {
            return Ok(self);
        }
        let series = SeriesClaim::fallback(scope, *quantity);
        match series {
            Some(series) => Ok(Self { claim: Claim::Series(series), operator: self.operator }),
            None => Err(format!(
                "{self}: a script's requests have no labels; bound a metric by its tags, as \
                 http_req_duration{{name:login}}:p95<300ms"
            )),
        }
    }

    /// What it says of a run of `plan`: where only scripts are fired, as [`Objective::of_script`]
    /// has it if it can.
    #[must_use]
    pub fn of_plan(self, plan: &Plan) -> Self {
        match plan.scenarios().iter().all(|plan| plan.fires == WorkKind::Iterations) {
            true => self.clone().of_script().unwrap_or(self),
            false => self,
        }
    }

    /// The keys of the tags that select its samples, where it is about a metric of the run's own.
    #[must_use]
    pub fn tag_keys(&self) -> Vec<String> {
        let series = match &self.claim {
            Claim::Series(series) => Some(series.clone()),
            Claim::Builtin { scope, quantity } => SeriesClaim::fallback(scope, *quantity),
        };
        let pairs = series.iter().flat_map(|series| series.tags.pairs());
        pairs.map(|(key, _)| key.clone()).collect()
    }

    /// The objective as a clause of a search.
    ///
    /// # Errors
    /// When it bounds nothing that grows with the load, in one sentence.
    pub fn clause(&self) -> Result<Clause, String> {
        let refuse = |why: &str| Err(format!("{self} cannot be searched for: {why}"));
        if !self.operator.is_bound() {
            return refuse("it asks for one value, not for a bound");
        }
        let is_upper = matches!(self.operator, Operator::Less | Operator::LessOrEqual);
        let (Scope { label, tags }, quantity) = match &self.claim {
            Claim::Builtin { scope, quantity } => (scope, quantity),
            Claim::Series(claim) => {
                return match SeriesClause::of(claim, is_upper) {
                    Ok((bound, series)) => Ok(Clause {
                        text: self.to_string(),
                        bound,
                        label: None,
                        source: Source::Series(series),
                    }),
                    Err(why) => refuse(why),
                };
            }
        };
        if !is_upper {
            return refuse("the capacity is the most load under upper bounds, as p99<50ms");
        }
        if !tags.is_empty() {
            return refuse("a search has one scenario; leave its tags out");
        }
        let (bound, source) = match *quantity {
            Quantity::Latency { measure, statistic, bound } => {
                let known =
                    [LatencyMetric::OkResponse, LatencyMetric::Service, LatencyMetric::FirstByte];
                if matches!(measure, Measure::Of(metric) if !known.contains(&metric)) {
                    return refuse("it wants a bound on the response, service or first_byte time");
                }
                match statistic {
                    Statistic::Percentile(percent) if percent < 100.0 => {
                        (Bound::Share(1.0 - percent / 100.0), Source::Slow(measure, bound))
                    }
                    Statistic::Mean => (Bound::Level(bound as f64), Source::Mean(measure)),
                    _ => return refuse("one request decides it; take a percentile like p99.9"),
                }
            }
            Quantity::ErrorPercent(percent) if percent > 0.0 && percent < 100.0 => {
                (Bound::Share(percent / 100.0), Source::Errors)
            }
            Quantity::ErrorPercent(_) | Quantity::ErrorCount(_) => {
                return refuse("it wants a share over none and under all, like errors<0.1%");
            }
            Quantity::Gauge { gauge, bound, .. } => {
                (Bound::Level(bound), Source::Target(gauge.name.to_owned()))
            }
            _ => return refuse("the load is what is searched"),
        };
        Ok(Clause {
            text: self.to_string(),
            bound,
            label: label.as_ref().map(|label| label.name.clone()),
            source,
        })
    }
}

impl Clause {
    /// A bound on a level of the target that a sampler reads once a second: `cpu<80%`,
    /// `rss<1GB`. `bound` is in the unit of the samples.
    #[must_use]
    pub fn target(text: String, level: String, bound: f64) -> Self {
        Self { text, bound: Bound::Level(bound), label: None, source: Source::Target(level) }
    }

    /// The latency bound, if it bounds a latency.
    #[must_use]
    pub fn limit(&self) -> Option<Nanos> {
        match (&self.source, self.bound) {
            (Source::Slow(_, limit), _) => Some(*limit),
            (Source::Mean(_), Bound::Level(bound)) => Some(bound as Nanos),
            (Source::Series(series), bound) => series.limit(bound),
            _ => None,
        }
    }

    /// The name of the level of the target that it bounds.
    #[must_use]
    pub fn target_level(&self) -> Option<&str> {
        if let Source::Target(name) = &self.source { Some(name) } else { None }
    }

    /// A value of the level of the target that it bounds, in the level's unit.
    #[must_use]
    pub fn shown_level(&self, value: f64) -> Option<String> {
        let (gauge, _) = Gauge::named(self.target_level()?)?;
        Some(gauge.value_shown(value))
    }

    /// The bad requests of a tally, for a bounded share.
    #[must_use]
    pub fn count(&self, tally: &Tally, labels: &[String]) -> Bad {
        if let Source::Series(series) = &self.source {
            return series.count(tally);
        }
        let label = self.label_of(tally, labels);
        let counts = label.map_or(&tally.counts, |label| &label.counts);
        let due = counts.due();
        let good = match &self.source {
            Source::Errors => counts.ok,
            Source::Slow(measure, limit) => match (label, measure) {
                // Of a label, failed answers are in the histogram of response times too.
                (Some(label), Measure::Response) => {
                    label.response.count_up_to(*limit).min(counts.ok)
                }
                (Some(label), Measure::Of(_)) => label.service.count_up_to(*limit).min(counts.ok),
                (None, measure) => histogram(*measure, tally).count_up_to(*limit).min(counts.ok),
            },
            Source::Mean(_) | Source::Target(_) | Source::Series(_) => due,
        };
        Bad { bad: due.saturating_sub(good) as f64, of: due as f64 }
    }

    /// The level of a tally, for a bound on a mean; `None` when nothing was measured.
    #[must_use]
    pub fn level(&self, tally: &Tally, labels: &[String]) -> Option<f64> {
        let measure = match &self.source {
            Source::Mean(measure) => measure,
            Source::Series(series) => return series.mean(tally),
            _ => return None,
        };
        let histogram = match (self.label_of(tally, labels), measure) {
            (Some(label), Measure::Response) => &label.response,
            (Some(label), Measure::Of(_)) => &label.service,
            (None, measure) => histogram(*measure, tally),
        };
        (!histogram.is_empty()).then(|| histogram.mean())
    }

    fn label_of<'a>(&self, tally: &'a Tally, labels: &[String]) -> Option<&'a LabelTally> {
        let number = labels.iter().position(|label| Some(label) == self.label.as_ref())?;
        // One label is not told apart: it is the whole.
        tally.labels().get(number)
    }
}

/// The histogram in which a good request is found; a failed one is bad whatever it took.
fn histogram(measure: Measure, tally: &Tally) -> &Histogram {
    match measure {
        Measure::Response => tally.latency.of(LatencyMetric::OkResponse),
        Measure::Of(metric) => tally.latency.of(metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunSample};
    use gake_core::record::Fault;

    fn clause(text: &str) -> Result<Clause, String> {
        text.parse::<Objective>().unwrap().clause()
    }

    #[test]
    fn a_percentile_is_a_share_that_may_be_slow() {
        let run =
            RunSample::of(900, 5 * MS).more(60, 80 * MS).status(503, 30).fault(Fault::Reset, 10);
        let tally = run.run().tally;
        let slow = clause("p99<50ms").unwrap();
        assert!(matches!(slow.bound, Bound::Share(share) if (share - 0.01).abs() < 1e-12));
        // A fast refusal is no answer in time.
        assert_eq!(slow.count(&tally, &[]), Bad { bad: 100.0, of: 1000.0 });
        assert_eq!(slow.limit(), Some(50 * MS));
        let errors = clause("errors<0.1%").unwrap();
        assert_eq!(errors.bound, Bound::Share(0.001));
        assert_eq!(errors.count(&tally, &[]), Bad { bad: 40.0, of: 1000.0 });
        assert_eq!(errors.limit(), None);
    }

    #[test]
    fn a_label_is_counted_alone() {
        let run = RunSample::of(100, 5 * MS).label("slow", 50, 80 * MS).run();
        let labels = run.plan.labels.clone();
        let count = |text| clause(text).unwrap().count(&run.tally, &labels);
        assert_eq!(count("slow:p95<50ms"), Bad { bad: 50.0, of: 50.0 });
        assert_eq!(count("first:p95<50ms"), Bad { bad: 0.0, of: 100.0 });
    }

    #[test]
    fn a_mean_is_a_level() {
        let run = RunSample::of(10, 5 * MS).more(10, 15 * MS).run();
        let mean = clause("mean<20ms").unwrap();
        assert_eq!(mean.bound, Bound::Level(20e6));
        assert_eq!(mean.level(&run.tally, &[]), Some(10e6));
    }

    #[test]
    fn what_does_not_grow_with_the_load_is_refused() {
        for text in ["rate>=990/s", "goodput<5/s", "p99>5ms", "max<1s", "errors<3", "errors<0%"] {
            assert!(clause(text).is_err(), "{text}");
        }
        assert!(clause("connect.p99<1ms").is_err());
        assert!(clause("service.p99<1ms").is_ok());
    }
}
