//! Objectives in the form that a search uses: a share of the requests that may be bad, or a level.
//!
//! `p99<50ms` allows 1 % of the requests to take longer than 50 ms, `errors<0.1%` allows 0.1 % to
//! not end ok. Unlike a percentile, a share is a count out of a count, so steps can be pooled and
//! their uncertainty computed. A failed request is bad for both.

use gake_core::clock::Nanos;
use gake_core::plan::{Plan, WorkKind};
use gake_core::record::{Histogram, LabelTally, LatencyMetric, Tally};

use super::level::BoundedLevel;
use super::quantity::{BadCount, ClauseBound, Measure, Quantity, Statistic};
use super::series::SeriesClaim;
use super::series_clause::SeriesClause;
use super::{BoundOperator, Claim, Objective, ObjectiveScope};

/// An objective as a bounded share or level.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// The objective, as the user writes it.
    pub text: String,
    /// The bound on the share or level.
    pub bound: ClauseBound,
    label: Option<String>,
    source: ClauseSource,
}

#[derive(Debug, Clone, PartialEq)]
enum ClauseSource {
    /// Requests slower than the limit, and those that failed.
    Slow(Measure, Nanos),
    /// Requests that did not end ok.
    Errors,
    /// The mean latency of each second.
    Mean(Measure),
    /// A level of the target, by name.
    Target(String),
    /// Samples of a metric of the run's own.
    Series(SeriesClause),
}

impl Objective {
    /// The objective for a run of scripts, whose requests have tags instead of labels:
    /// `http_req_duration{name:login}:p95<1s` and `my_trend:p95<1s` are about metrics; others, such
    /// as `p95<2s`, are about whole iterations.
    ///
    /// # Errors
    /// One sentence, when a script cannot have what it bounds.
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
                "{self}: a script's requests have no labels; select a metric by its tags, as in \
                 http_req_duration{{name:login}}:p95<300ms"
            )),
        }
    }

    /// The objective for a run of `plan`: [`Objective::of_script`], where possible, if all
    /// scenarios run scripts. Beside plain requests, only what is written in k6's terms is about
    /// scripts: `http_req_duration`, and metrics that are no label of the plan.
    #[must_use]
    pub fn of_plan(self, plan: &Plan) -> Self {
        let is_script = |plan: &Plan| plan.fires == WorkKind::Iterations;
        let is_of_script = plan.fires_iterations()
            && (plan.scenarios().iter().all(is_script) || self.is_in_k6_terms(plan));
        match is_of_script {
            true => self.clone().of_script().unwrap_or(self),
            false => self,
        }
    }

    fn is_in_k6_terms(&self, plan: &Plan) -> bool {
        let Claim::Builtin { scope, .. } = &self.claim else { return true };
        let is_known = |name: &String| plan.labels.contains(name);
        scope.is_k6 || scope.label.as_ref().is_some_and(|label| !is_known(&label.name))
    }

    /// The keys of the tags that select the samples of a metric of the run's own.
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
    /// One sentence, when it bounds nothing that grows with the load.
    pub fn clause(&self) -> Result<Clause, String> {
        let refuse = |why: &str| Err(format!("{self} cannot be searched for: {why}"));
        if !self.operator.is_bound() {
            return refuse("it asks for one value, not for a bound");
        }
        let is_upper = matches!(self.operator, BoundOperator::Less | BoundOperator::LessOrEqual);
        let (ObjectiveScope { label, tags, .. }, quantity) = match &self.claim {
            Claim::Builtin { scope, quantity } => (scope, quantity),
            Claim::Series(claim) => {
                return match SeriesClause::of(claim, is_upper) {
                    Ok((bound, series)) => Ok(Clause {
                        text: self.to_string(),
                        bound,
                        label: None,
                        source: ClauseSource::Series(series),
                    }),
                    Err(why) => refuse(why),
                };
            }
        };
        if !is_upper {
            return refuse("a search needs upper bounds, like p99<50ms");
        }
        if !tags.is_empty() {
            return refuse("a search has only one scenario; leave out its tags");
        }
        let (bound, source) = match *quantity {
            Quantity::Latency { measure, statistic, bound } => {
                let known =
                    [LatencyMetric::OkResponse, LatencyMetric::Service, LatencyMetric::FirstByte];
                if matches!(measure, Measure::Of(metric) if !known.contains(&metric)) {
                    return refuse("it needs a bound on the response, service or first_byte time");
                }
                match statistic {
                    Statistic::Percentile(percent) if percent < 100.0 => (
                        ClauseBound::Share(1.0 - percent / 100.0),
                        ClauseSource::Slow(measure, bound),
                    ),
                    Statistic::Mean => {
                        (ClauseBound::Level(bound as f64), ClauseSource::Mean(measure))
                    }
                    _ => return refuse("a single request decides it; use a percentile like p99.9"),
                }
            }
            Quantity::ErrorPercent(percent) if percent > 0.0 && percent < 100.0 => {
                (ClauseBound::Share(percent / 100.0), ClauseSource::Errors)
            }
            Quantity::ErrorPercent(_) | Quantity::ErrorCount(_) => {
                return refuse("it needs a share above 0 % and below 100 %, like errors<0.1%");
            }
            Quantity::Gauge { gauge, bound, .. } => {
                (ClauseBound::Level(bound), ClauseSource::Target(gauge.name.to_owned()))
            }
            _ => return refuse("the search varies the load itself"),
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
        Self {
            text,
            bound: ClauseBound::Level(bound),
            label: None,
            source: ClauseSource::Target(level),
        }
    }

    /// The bound in nanoseconds, if it bounds a latency.
    #[must_use]
    pub fn limit(&self) -> Option<Nanos> {
        match (&self.source, self.bound) {
            (ClauseSource::Slow(_, limit), _) => Some(*limit),
            (ClauseSource::Mean(_), ClauseBound::Level(bound)) => Some(bound as Nanos),
            (ClauseSource::Series(series), bound) => series.limit(bound),
            _ => None,
        }
    }

    /// The name of the target's level, if it bounds one.
    #[must_use]
    pub fn target_level(&self) -> Option<&str> {
        if let ClauseSource::Target(name) = &self.source { Some(name) } else { None }
    }

    /// `value` as text, in the unit of the target's level that it bounds.
    #[must_use]
    pub fn shown_level(&self, value: f64) -> Option<String> {
        let (gauge, _) = BoundedLevel::named(self.target_level()?)?;
        Some(gauge.value_shown(value))
    }

    /// What it measures, if a percentile of a latency: `p99`, `checkout:service.p95`.
    #[must_use]
    pub fn percentile(&self) -> Option<&str> {
        let is_one =
            matches!((&self.source, self.bound), (ClauseSource::Slow(..), ClauseBound::Share(_)));
        self.text.split(['<', '=']).next().filter(|_| is_one)
    }

    /// The percentile that it bounds, over all requests due: `None` where so many failed that no
    /// response has its rank.
    #[must_use]
    pub fn measured(&self, tally: &Tally, labels: &[String]) -> Option<Nanos> {
        let (ClauseSource::Slow(measure, _), ClauseBound::Share(allowed)) =
            (&self.source, self.bound)
        else {
            return None;
        };
        let label = self.label_of(tally, labels);
        let due = label.map_or(&tally.counts, |label| &label.counts).due();
        let times = match (label, measure) {
            (Some(label), Measure::Response) => &label.response,
            (Some(label), Measure::Of(_)) => &label.service,
            (None, measure) => histogram(*measure, tally),
        };
        let rank = (1.0 - allowed) * due as f64 / times.count() as f64;
        (rank <= 1.0).then(|| times.quantile(rank))
    }

    /// The bad requests of a tally; none unless it bounds a share.
    #[must_use]
    pub fn count(&self, tally: &Tally, labels: &[String]) -> BadCount {
        if let ClauseSource::Series(series) = &self.source {
            return series.count(tally);
        }
        let label = self.label_of(tally, labels);
        let counts = label.map_or(&tally.counts, |label| &label.counts);
        let due = counts.due();
        let good = match &self.source {
            ClauseSource::Errors => counts.ok,
            ClauseSource::Slow(measure, limit) => match (label, measure) {
                // A label's histogram includes failed responses.
                (Some(label), Measure::Response) => {
                    label.response.count_up_to(*limit).min(counts.ok)
                }
                (Some(label), Measure::Of(_)) => label.service.count_up_to(*limit).min(counts.ok),
                (None, measure) => histogram(*measure, tally).count_up_to(*limit).min(counts.ok),
            },
            ClauseSource::Mean(_) | ClauseSource::Target(_) | ClauseSource::Series(_) => due,
        };
        BadCount { bad: due.saturating_sub(good) as f64, of: due as f64 }
    }

    /// The mean of a tally, if it bounds a mean and there are samples.
    #[must_use]
    pub fn level(&self, tally: &Tally, labels: &[String]) -> Option<f64> {
        let measure = match &self.source {
            ClauseSource::Mean(measure) => measure,
            ClauseSource::Series(series) => return series.mean(tally),
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
        // A single label has no tally of its own: it is the whole.
        tally.labels().get(number)
    }
}

/// The histogram of good requests; a failed one is bad whatever its time.
fn histogram(measure: Measure, tally: &Tally) -> &Histogram {
    match measure {
        Measure::Response => tally.latency.of(LatencyMetric::OkResponse),
        Measure::Of(metric) => tally.latency.of(metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunBuilder};
    use gake_core::record::Fault;

    #[test]
    fn a_percentile_counts_failed_requests_as_slow() {
        let clause = "p90<50ms".parse::<Objective>().unwrap().clause().unwrap();
        assert_eq!(clause.percentile(), Some("p90"));
        let run = |failed| match failed {
            0 => RunBuilder::of(100, 5 * MS).run(),
            failed => RunBuilder::of(100, 5 * MS).fault(Fault::Reset, failed).run(),
        };
        let of = |failed| clause.measured(&run(failed).tally, &[]);
        let near = |ns: u64| ns.abs_diff(5 * MS) < MS / 10;
        assert!(of(0).is_some_and(near) && of(10).is_some_and(near));
        assert_eq!(of(20), None, "17 % of 120 have no response time");
        let errors = "errors<1%".parse::<Objective>().unwrap().clause().unwrap();
        assert_eq!((errors.percentile(), errors.measured(&run(0).tally, &[])), (None, None));
    }

    fn clause(text: &str) -> Result<Clause, String> {
        text.parse::<Objective>().unwrap().clause()
    }

    #[test]
    fn a_percentile_is_a_share_that_may_be_slow() {
        let run =
            RunBuilder::of(900, 5 * MS).more(60, 80 * MS).status(503, 30).fault(Fault::Reset, 10);
        let tally = run.run().tally;
        let slow = clause("p99<50ms").unwrap();
        assert!(matches!(slow.bound, ClauseBound::Share(share) if (share - 0.01).abs() < 1e-12));
        // A fast rejection is not a good response.
        assert_eq!(slow.count(&tally, &[]), BadCount { bad: 100.0, of: 1000.0 });
        assert_eq!(slow.limit(), Some(50 * MS));
        let errors = clause("errors<0.1%").unwrap();
        assert_eq!(errors.bound, ClauseBound::Share(0.001));
        assert_eq!(errors.count(&tally, &[]), BadCount { bad: 40.0, of: 1000.0 });
        assert_eq!(errors.limit(), None);
    }

    #[test]
    fn a_label_is_counted_separately() {
        let run = RunBuilder::of(100, 5 * MS).label("slow", 50, 80 * MS).run();
        let labels = run.plan.labels.clone();
        let count = |text| clause(text).unwrap().count(&run.tally, &labels);
        assert_eq!(count("slow:p95<50ms"), BadCount { bad: 50.0, of: 50.0 });
        assert_eq!(count("first:p95<50ms"), BadCount { bad: 0.0, of: 100.0 });
    }

    #[test]
    fn a_mean_is_a_level() {
        let run = RunBuilder::of(10, 5 * MS).more(10, 15 * MS).run();
        let mean = clause("mean<20ms").unwrap();
        assert_eq!(mean.bound, ClauseBound::Level(20e6));
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
