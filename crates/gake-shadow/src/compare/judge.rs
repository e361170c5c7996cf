//! From counts to a verdict: which differences are real, which are noise, and which are neither
//! proven nor excluded.
//!
//! Where the master's second instance was asked too, each field of each endpoint is a paired
//! test: of the exchanges in which only one of shadow and second instance differed from the
//! master, is the shadow the one more often than a fair coin would have it (McNemar's exact test,
//! one-sided)? All tests of a comparison, those of latency included, are one family whose false
//! discoveries are bounded; see [`super::significance`].

use std::collections::BTreeMap;

use serde::Serialize;

use super::histogram::Median;
use super::significance::{SignTest, q_values};
use super::value_shapes::INSTANT;
use super::{ComparisonRules, Endpoint, EndpointFigures, Example, ShadowComparison, suggest};

/// Pairs of times below which latency is not judged.
const PAIRS_MIN: u64 = 20;

/// A shift of the median that is smaller is no difference, in nanoseconds: the proxy's own
/// treatment of two backends is not equal to the microsecond.
const SHIFT_MIN: f64 = 100_000.0;

/// What counts as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Terms {
    /// The expected part of false ones among the differences called real, at most.
    pub false_discoveries: f64,
    /// The part of an endpoint's answers that may differ in a field, 0 to 1.
    pub tolerance: f64,
    /// How much slower or faster an endpoint may be, as a part of the time.
    pub latency: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { false_discoveries: 0.05, tolerance: 0.0, latency: 0.05 }
    }
}

/// What a difference is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldVerdict {
    /// The shadow differs more often than the master from itself.
    Real,
    /// There was no second instance to tell it from noise.
    Untested,
    /// The master never differed from itself there, but it was seen too rarely to exclude chance.
    Unproven,
    /// The master differs from itself as often.
    Noise,
}

/// One field of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldDifference {
    /// The endpoint.
    pub endpoint: String,
    /// The place.
    pub path: String,
    /// How it differs: missing, added, type, value or order.
    pub kind: &'static str,
    /// What it is taken for.
    pub verdict: FieldVerdict,
    /// Exchanges in which the shadow differed from the master.
    pub shadow: u64,
    /// Exchanges of the endpoint.
    pub exchanges: u64,
    /// Exchanges in which the second instance differed from the master.
    pub secondary: u64,
    /// Exchanges with a second instance.
    pub paired: u64,
    /// The part of the answers that differs beyond noise.
    pub rate: f64,
    /// The false discovery rate at which it is real; absent when there was nothing to test with.
    pub q: Option<f64>,
    /// What the values look like, when that is something that differs by itself.
    pub looks_like: Option<&'static str>,
    /// One of them.
    pub example: Option<Example>,
}

/// How an endpoint's speed compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The shadow is slower by more than is tolerated.
    Slower,
    /// The shadow is faster by more than is tolerated.
    Faster,
    /// Neither is shown.
    Alike,
    /// There are too few pairs of times.
    TooFew,
    /// There was no second instance: the master is asked on the client's path and the shadow is
    /// not, so that two equal backends have different times.
    Untested,
}

/// The latency of one endpoint: times to the answer's head, in nanoseconds.
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
    /// Whether `ratio` is against the second instance, which was asked in the same way as the
    /// shadow; else it is against the master.
    pub against_secondary: bool,
    /// The median of the shadow's time divided by the other's, request by request, with its 95 %
    /// confidence interval.
    pub ratio: Option<Median>,
    /// The false discovery rate at which the pace is not the same.
    pub q: f64,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointReport {
    /// Method and path.
    pub name: String,
    /// Exchanges.
    pub exchanges: u64,
    /// Those with a second instance.
    pub paired: u64,
    /// Those whose bodies were too long to be compared.
    pub bodies_cut: u64,
    /// Its latency.
    pub latency: LatencyReport,
}

/// A judged comparison.
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
    /// What counted as a difference.
    pub terms: Terms,
    /// Requests compared.
    pub exchanges: u64,
    /// Those with a second instance.
    pub paired: u64,
    /// Requests not compared: the shadow was not asked, or the client had left.
    pub skipped: u64,
    /// Differences that rules left out.
    pub ignored: u64,
    /// Differences in more fields than are told apart.
    pub fields_lost: u64,
    /// By the codes of master and shadow.
    pub statuses: Vec<(String, String, u64)>,
    /// What is real first, then what is untested, unproven, and noise.
    pub differences: Vec<FieldDifference>,
    /// By endpoint, the one with most exchanges first.
    pub endpoints: Vec<EndpointReport>,
    /// Rules for what is noise, or looks like it: TOML.
    pub suggestions: String,
}

impl ShadowReport {
    /// The differences of a verdict.
    pub fn of(&self, verdict: FieldVerdict) -> impl Iterator<Item = &FieldDifference> {
        self.differences.iter().filter(move |difference| difference.verdict == verdict)
    }

    /// The endpoints that are slower, or faster.
    pub fn paced(&self, pace: Pace) -> impl Iterator<Item = &EndpointReport> {
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
        for (field, seen) in &endpoint.fields {
            if rules.ignores(name, &field.path) {
                ignored += seen.shadow;
                continue;
            }
            tests.push(SignTest::sign(seen.only_shadow, seen.only_shadow + seen.only_secondary));
            differences.push(FieldDifference {
                endpoint: name.clone(),
                path: field.path.clone(),
                kind: field.kind.name(),
                ..difference(endpoint, seen)
            });
        }
    }
    let fields = tests.len();
    for endpoint in comparison.endpoints.values() {
        tests.extend(pace_tests(endpoint, terms.latency));
    }
    let q = q_values(&tests, terms.false_discoveries);
    for (difference, q) in differences.iter_mut().zip(&q) {
        settle(difference, *q, terms);
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

/// A difference that is noise, or, where nothing could be tested, looks like it.
fn noise(difference: &FieldDifference) -> Option<(&str, &str, Option<&'static str>)> {
    let why = match difference.verdict {
        FieldVerdict::Noise => None,
        FieldVerdict::Untested if difference.looks_like.is_some() => difference.looks_like,
        _ => return None,
    };
    Some((&difference.endpoint, &difference.path, why))
}

/// What was counted of a field; name, verdict and q are still to come.
fn difference(endpoint: &Endpoint, seen: &EndpointFigures) -> FieldDifference {
    let (part, whole) = if endpoint.paired > 0 {
        (seen.only_shadow.saturating_sub(seen.only_secondary), endpoint.paired)
    } else {
        (seen.shadow, endpoint.exchanges)
    };
    FieldDifference {
        endpoint: String::new(),
        path: String::new(),
        kind: "",
        verdict: if endpoint.paired > 0 { FieldVerdict::Unproven } else { FieldVerdict::Untested },
        shadow: seen.shadow,
        exchanges: endpoint.exchanges,
        secondary: seen.only_secondary + seen.both,
        paired: endpoint.paired,
        rate: part as f64 / whole.max(1) as f64,
        q: None,
        looks_like: seen.looks.like(),
        example: seen.example.clone(),
    }
}

fn settle(difference: &mut FieldDifference, q: f64, terms: Terms) {
    if difference.paired == 0 {
        return;
    }
    difference.q = Some(q);
    // Two clocks that are read at the same instant agree or not by their resolution and by how
    // long the answers took: the slower shadow's agrees less often, and is no other value.
    let is_clock = difference.secondary > 0 && difference.looks_like == Some(INSTANT);
    if is_clock {
        difference.verdict = FieldVerdict::Noise;
    } else if q <= terms.false_discoveries {
        difference.verdict = FieldVerdict::Real;
    } else if difference.secondary > 0 {
        difference.verdict = FieldVerdict::Noise;
    }
}

/// Whether the latency is judged against the second instance, and the ratios to show.
fn ratios(endpoint: &Endpoint) -> (bool, &super::histogram::RatioHistogram) {
    let latency = &endpoint.latency;
    let fair = latency.against_secondary.count() >= PAIRS_MIN;
    (fair, if fair { &latency.against_secondary } else { &latency.against_master })
}

/// The tests that more than half of the ratios are above, and below, what is tolerated.
fn pace_tests(endpoint: &Endpoint, tolerated: f64) -> [SignTest; 2] {
    // Only who is asked in the same way is compared with like.
    let ratios = &endpoint.latency.against_secondary;
    if ratios.count() < PAIRS_MIN {
        return [SignTest { p: 1.0, least: 1.0 }; 2];
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
