//! Judges a comparison: which differences are real, which are noise, and which are inconclusive.
//!
//! With a second instance of the master, each field of each endpoint is a paired test: among the
//! exchanges in which exactly one of shadow and second instance differed from the master, is it the
//! shadow more often than by chance (McNemar's exact test, one-sided)? All tests of a comparison,
//! latency included, form one family with a bounded false discovery rate; see
//! [`super::significance`].

use std::collections::BTreeMap;

use serde::Serialize;

use super::histogram::Median;
use super::significance::{SignTest, q_values};
use super::value_shapes::INSTANT;
use super::{ComparisonRules, Endpoint, EndpointFigures, Example, ShadowComparison, suggest};

/// Minimum number of pairs of times for a latency verdict.
const PAIRS_MIN: u64 = 20;

/// Minimum shift of the median in nanoseconds: the proxy does not treat two backends equally to the
/// microsecond.
const SHIFT_MIN: f64 = 100_000.0;

/// What counts as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Terms {
    /// Maximum expected share of false discoveries among the real differences.
    pub false_discoveries: f64,
    /// The share of an endpoint's responses that may differ in a field.
    pub tolerance: f64,
    /// The relative change of an endpoint's latency that is tolerated.
    pub latency: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { false_discoveries: 0.05, tolerance: 0.0, latency: 0.05 }
    }
}

/// The verdict on the differences in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldVerdict {
    /// The shadow differs significantly more often than the master from itself.
    Real,
    /// There was no second instance to measure the noise.
    Untested,
    /// The master never differed from itself, but there are too few differences to exclude chance.
    Unproven,
    /// The master differs from itself about as often.
    Noise,
}

/// The differences in one field of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldDifference {
    /// The endpoint.
    pub endpoint: String,
    /// The path of the field.
    pub path: String,
    /// The kind of the difference: missing, added, type, value or order.
    pub kind: &'static str,
    /// The verdict.
    pub verdict: FieldVerdict,
    /// Exchanges in which the shadow differed from the master.
    pub shadow: u64,
    /// Exchanges of the endpoint.
    pub exchanges: u64,
    /// Exchanges in which the second instance differed from the master.
    pub secondary: u64,
    /// Exchanges with a second instance.
    pub paired: u64,
    /// The share of the responses that differ beyond noise.
    pub rate: f64,
    /// The q-value; absent without a second instance.
    pub q: Option<f64>,
    /// The shape of the values, if it is one that differs between any two responses.
    pub looks_like: Option<&'static str>,
    /// An example.
    pub example: Option<Example>,
}

/// The verdict on an endpoint's latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The shadow is slower by more than the tolerance.
    Slower,
    /// The shadow is faster by more than the tolerance.
    Faster,
    /// Neither is significant.
    Alike,
    /// There are too few samples.
    TooFew,
    /// There was no second instance. Master and shadow cannot be compared directly: only requests to
    /// the master are on the client's path.
    Untested,
}

/// The latency of one endpoint: times to the response's head, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyReport {
    /// The verdict.
    pub pace: Pace,
    /// The master's median.
    pub master_p50: f64,
    /// The master's 99th percentile.
    pub master_p99: f64,
    /// The shadow's median.
    pub shadow_p50: f64,
    /// The shadow's 99th percentile.
    pub shadow_p99: f64,
    /// Whether `ratio` is relative to the second instance, which gets copies as the shadow does;
    /// otherwise to the master.
    pub against_secondary: bool,
    /// The median ratio of the shadow's time to the other's, by request, with its 95 % confidence
    /// interval.
    pub ratio: Option<Median>,
    /// The smaller q-value of the tests for slower and faster.
    pub q: f64,
}

/// The summary of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointReport {
    /// Method and path.
    pub name: String,
    /// Exchanges.
    pub exchanges: u64,
    /// Exchanges with a second instance.
    pub paired: u64,
    /// Exchanges whose bodies were too long to be compared.
    pub bodies_cut: u64,
    /// The latency.
    pub latency: LatencyReport,
}

/// The report of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShadowReport {
    /// The format: `gake.shadow-report/1`.
    pub schema: &'static str,
    /// The master's name.
    pub master: String,
    /// The shadow's name.
    pub shadow: String,
    /// The second instance's name; absent when there was none.
    pub secondary: Option<String>,
    /// Whether there are real (or, without a second instance, untested) differences over the
    /// tolerance.
    pub differs: bool,
    /// The terms of the verdicts.
    pub terms: Terms,
    /// Requests compared.
    pub exchanges: u64,
    /// Of these, requests with a second instance.
    pub paired: u64,
    /// Requests not compared, because they were not sent to the shadow or the client disconnected.
    pub skipped: u64,
    /// Differences ignored by rules.
    pub ignored: u64,
    /// Differences in fields beyond the bound.
    pub fields_lost: u64,
    /// Exchanges by the statuses of master and shadow.
    pub statuses: Vec<(String, String, u64)>,
    /// Real ones first, then untested, unproven and noise.
    pub differences: Vec<FieldDifference>,
    /// The endpoints, by descending number of exchanges.
    pub endpoints: Vec<EndpointReport>,
    /// Suggested rules for noise, in TOML.
    pub suggestions: String,
}

impl ShadowReport {
    /// The differences with a verdict.
    pub fn of(&self, verdict: FieldVerdict) -> impl Iterator<Item = &FieldDifference> {
        self.differences.iter().filter(move |difference| difference.verdict == verdict)
    }

    /// The endpoints with a latency verdict.
    pub fn with_pace(&self, pace: Pace) -> impl Iterator<Item = &EndpointReport> {
        self.endpoints.iter().filter(move |endpoint| endpoint.latency.pace == pace)
    }
}

/// Judges a comparison.
#[must_use]
pub fn judge(comparison: &ShadowComparison, rules: &ComparisonRules, terms: Terms) -> ShadowReport {
    let mut tests = Vec::new();
    let mut ignored = 0;
    let mut differences = Vec::new();
    for (name, endpoint) in &comparison.endpoints {
        for (field, figures) in &endpoint.fields {
            if rules.ignores(name, &field.path) {
                ignored += figures.shadow;
                continue;
            }
            tests.push(SignTest::sign(
                figures.only_shadow,
                figures.only_shadow + figures.only_secondary,
            ));
            differences.push(FieldDifference {
                endpoint: name.clone(),
                path: field.path.clone(),
                kind: field.kind.name(),
                ..difference(endpoint, figures)
            });
        }
    }
    let fields = tests.len();
    for endpoint in comparison.endpoints.values() {
        tests.extend(pace_tests(endpoint, terms.latency));
    }
    let q = q_values(&tests, terms.false_discoveries);
    for (difference, q) in differences.iter_mut().zip(&q) {
        assign_verdict(difference, *q, terms);
    }
    differences.retain(|d| d.shadow > 0 || d.verdict == FieldVerdict::Noise);
    differences.sort_by(|a, b| a.verdict.cmp(&b.verdict).then(b.rate.total_cmp(&a.rate)));
    let mut endpoints: Vec<_> = (comparison.endpoints.iter().zip(q[fields..].chunks(2)))
        .map(|((name, endpoint), q)| EndpointReport {
            name: name.clone(),
            exchanges: endpoint.exchanges,
            paired: endpoint.paired,
            bodies_cut: endpoint.bodies_cut,
            latency: latency(endpoint, (q[0], q[1]), terms),
        })
        .collect();
    endpoints.sort_by_key(|endpoint| std::cmp::Reverse(endpoint.exchanges));
    let counted =
        |d: &FieldDifference| matches!(d.verdict, FieldVerdict::Real | FieldVerdict::Untested);
    let differs = differences.iter().any(|d| counted(d) && d.rate > terms.tolerance)
        || endpoints.iter().any(|endpoint| endpoint.latency.pace == Pace::Slower);
    ShadowReport {
        schema: "gake.shadow-report/1",
        master: comparison.master.clone(),
        shadow: comparison.shadow.clone(),
        secondary: comparison.secondary.clone(),
        differs,
        terms,
        exchanges: comparison.exchanges(),
        paired: comparison.endpoints.values().map(|endpoint| endpoint.paired).sum(),
        skipped: comparison.skipped,
        ignored,
        fields_lost: comparison.endpoints.values().map(|endpoint| endpoint.fields_lost).sum(),
        statuses: statuses(comparison),
        suggestions: suggest::rules(differences.iter().filter_map(noise)),
        differences,
        endpoints,
    }
}

/// The endpoint, path and shape of a difference that is noise, or, untested, has the shape of it.
fn noise(difference: &FieldDifference) -> Option<(&str, &str, Option<&'static str>)> {
    let why = match difference.verdict {
        FieldVerdict::Noise => None,
        FieldVerdict::Untested if difference.looks_like.is_some() => difference.looks_like,
        _ => return None,
    };
    Some((&difference.endpoint, &difference.path, why))
}

/// The counts of a field, without name, final verdict and q.
fn difference(endpoint: &Endpoint, figures: &EndpointFigures) -> FieldDifference {
    let (differing, all) = if endpoint.paired > 0 {
        (figures.only_shadow.saturating_sub(figures.only_secondary), endpoint.paired)
    } else {
        (figures.shadow, endpoint.exchanges)
    };
    FieldDifference {
        endpoint: String::new(),
        path: String::new(),
        kind: "",
        verdict: if endpoint.paired > 0 { FieldVerdict::Unproven } else { FieldVerdict::Untested },
        shadow: figures.shadow,
        exchanges: endpoint.exchanges,
        secondary: figures.only_secondary + figures.both,
        paired: endpoint.paired,
        rate: differing as f64 / all.max(1) as f64,
        q: None,
        looks_like: figures.shapes.dominant(),
        example: figures.example.clone(),
    }
}

fn assign_verdict(difference: &mut FieldDifference, q: f64, terms: Terms) {
    if difference.paired == 0 {
        return;
    }
    difference.q = Some(q);
    // Whether two clock readings agree depends on their resolution and on latency: a slower
    // shadow's clock agrees less often without being wrong.
    let is_clock = difference.secondary > 0 && difference.looks_like == Some(INSTANT);
    if is_clock {
        difference.verdict = FieldVerdict::Noise;
    } else if q <= terms.false_discoveries {
        difference.verdict = FieldVerdict::Real;
    } else if difference.secondary > 0 {
        difference.verdict = FieldVerdict::Noise;
    }
}

/// Whether latency is judged against the second instance, and the ratios to show.
fn ratios(endpoint: &Endpoint) -> (bool, &super::histogram::RatioHistogram) {
    let latency = &endpoint.latency;
    let fair = latency.against_secondary.count() >= PAIRS_MIN;
    (fair, if fair { &latency.against_secondary } else { &latency.against_master })
}

/// Tests that the median ratio is above, and below, the tolerance.
fn pace_tests(endpoint: &Endpoint, tolerated: f64) -> [SignTest; 2] {
    // Only the second instance gets its requests in the same way.
    let ratios = &endpoint.latency.against_secondary;
    if ratios.count() < PAIRS_MIN {
        return [SignTest { p: 1.0, p_min: 1.0 }; 2];
    }
    let (above, not_above) = ratios.sides(1.0 + tolerated);
    let (not_below, below) = ratios.sides(1.0 / (1.0 + tolerated));
    [SignTest::sign(above, above + not_above), SignTest::sign(below, below + not_below)]
}

fn latency(endpoint: &Endpoint, (slower, faster): (f64, f64), terms: Terms) -> LatencyReport {
    let times = &endpoint.latency;
    let (against_secondary, ratios) = ratios(endpoint);
    let (master_p50, shadow_p50) = (times.master.quantile(0.5), times.shadow.quantile(0.5));
    let base = if against_secondary { times.secondary.quantile(0.5) } else { master_p50 };
    let shifted = (shadow_p50 - base).abs() >= SHIFT_MIN;
    let pace = match () {
        () if !against_secondary && times.secondary.count() == 0 => Pace::Untested,
        () if ratios.count() < PAIRS_MIN => Pace::TooFew,
        () if shifted && slower <= terms.false_discoveries => Pace::Slower,
        () if shifted && faster <= terms.false_discoveries => Pace::Faster,
        () => Pace::Alike,
    };
    LatencyReport {
        pace,
        master_p50,
        master_p99: times.master.quantile(0.99),
        shadow_p50,
        shadow_p99: times.shadow.quantile(0.99),
        against_secondary,
        ratio: ratios.median(),
        q: slower.min(faster),
    }
}

fn statuses(comparison: &ShadowComparison) -> Vec<(String, String, u64)> {
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (pair, count) in comparison.endpoints.values().flat_map(|endpoint| &endpoint.statuses) {
        let (master, shadow) = pair.split_once(' ').unwrap_or((pair, ""));
        *sums.entry((master, shadow)).or_default() += count;
    }
    sums.into_iter().map(|((a, b), count)| (a.to_owned(), b.to_owned(), count)).collect()
}
