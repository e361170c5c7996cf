//! Targets that refuse or delay requests by design: rate limiters, full queues, time-outs of a wait
//! for a place.

use gake_core::clock::TENTH;
use gake_core::record::LatencyMetric;
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use crate::departures;
use crate::stats::{per_second, share};

const TOO_MANY: u16 = 429;
/// Share of the responses from which on the limiter is the limit of the run.
const REFUSED_MIN: f64 = 0.01;
const UNAVAILABLE: u16 = 503;
/// Failures needed to judge their times.
const FAILURES: u64 = 20;
/// Share of refusals from which on even ok responses show a limiter.
const LIMITED_MIN: f64 = 0.1;
/// A refusal does no work: nine of ten take less than this share of the fastest ok response.
const REFUSAL: f64 = 0.7;
/// A wait that gives up ends at one time: the ratio of the 90th percentile of the failures' times
/// to the 10th, ...
const ONE_TIME: f64 = 1.3;
/// ... which is longer than an ok response without a wait by this factor, and at least this long.
const OVER_FASTEST: f64 = 2.0;
const GIVES_UP_MIN: u64 = 20_000_000;

pub(super) fn rate_limit(facts: &RunFacts<'_>) -> Option<Finding> {
    let expect = &facts.run.plan.expect;
    let statuses = facts.run.tally.statuses().iter();
    let refused: u64 = statuses.filter(|one| one.0 == TOO_MANY).map(|one| one.1).sum();
    let part = share(refused, facts.responses());
    if part < REFUSED_MIN || expect.accepts(TOO_MANY) {
        return None;
    }
    let ok = per_second(facts.counts().ok as f64, facts.run.completing);
    let evidence = format!(
        "{} of the responses are 429 Too Many Requests: a rate limiter let {} of {} through",
        units::percent(part),
        units::rate(ok),
        units::rate(per_second(facts.counts().sent as f64, facts.run.sending)),
    );
    let advice = "raise the limit, or exempt this client, to measure the server behind it";
    let check = "curl -i the URL under the load: Retry-After and RateLimit headers";
    Some(Finding::new("rate_limit", evidence, advice, check))
}

/// Most frequent among the statuses from 500 on that are not expected, and its count.
fn most_failed(facts: &RunFacts<'_>) -> Option<(u16, u64)> {
    let expect = &facts.run.plan.expect;
    let statuses = facts.run.tally.statuses().iter();
    statuses.filter(|one| one.0 >= 500 && !expect.accepts(one.0)).max_by_key(|one| one.1).copied()
}

/// Refusals faster than any work: a full queue, a limit on requests at once, or a limiter.
pub(super) fn load_shed(facts: &RunFacts<'_>) -> Option<Finding> {
    let (status, refused) = most_failed(facts).filter(|one| one.0 == UNAVAILABLE)?;
    let (ok, other) =
        (facts.latency(LatencyMetric::OkResponse), facts.latency(LatencyMetric::OtherResponse));
    let part = share(refused, facts.responses());
    let is_fast = other.quantile(0.9) as f64 <= REFUSAL * ok.quantile(0.1) as f64;
    if part < REFUSED_MIN || refused < FAILURES || ok.count() < FAILURES {
        return None;
    }
    let end = (facts.run.measured + facts.warmup()) / TENTH;
    let tenths = facts.run.series.tenths();
    if !is_fast {
        // A pool with a time-out completes at even intervals, too.
        let is_limiter = part >= LIMITED_MIN
            && departures::oks_are_even(tenths, end)
            && wait_limit(facts).is_none();
        return is_limiter.then(|| limited(facts, status, part));
    }
    let through = per_second(facts.counts().ok as f64, facts.run.completing);
    let evidence = format!(
        "{} of the responses are {status} after {} (median), less than any ok response takes \
         ({}, the fastest): the target refuses what exceeds {}, {} of them at once",
        units::percent(part),
        units::duration(other.quantile(0.5) as f64),
        units::duration(ok.min() as f64),
        units::rate(through),
        units::number(through * ok.mean() / 1e9),
    );
    let advice = "look for limit_req, limit_conn, a bounded queue or a circuit breaker";
    let check = "curl -i the URL under the load: the body, Retry-After";
    Some(Finding::new("load_shed", evidence, advice, check))
}

/// Ok responses at even intervals, and a status that says that the rest is refused.
fn limited(facts: &RunFacts<'_>, status: u16, part: f64) -> Finding {
    let through = per_second(facts.counts().ok as f64, facts.run.completing);
    let evidence = format!(
        "{} of the responses are {status}, and ok ones come at an even {}: a rate limiter lets \
         these through and refuses the rest",
        units::percent(part),
        units::rate(through),
    );
    let advice = "raise the limit, or exempt this client, to measure the server behind it";
    let check = "curl -i the URL under the load: Retry-After and RateLimit headers";
    Finding::new("rate_limit", evidence, advice, check)
}

/// Failures that all come after the same time: something waits for a place and gives up.
pub(super) fn wait_limit(facts: &RunFacts<'_>) -> Option<Finding> {
    let (status, failed) = most_failed(facts)?;
    let (ok, other) =
        (facts.latency(LatencyMetric::OkResponse), facts.latency(LatencyMetric::OtherResponse));
    let part = share(failed, facts.responses());
    let (low, high) = (other.quantile(0.1) as f64, other.quantile(0.9) as f64);
    let fastest = ok.min() as f64;
    let is_edge = high <= ONE_TIME * low && low >= OVER_FASTEST * fastest;
    // An ok response waited no longer, and then took its service time.
    let is_limit = ok.quantile(0.9) as f64 <= high + 2.0 * fastest;
    let enough = part >= REFUSED_MIN && failed >= FAILURES && ok.count() >= FAILURES;
    if !enough || !is_edge || !is_limit || low < GIVES_UP_MIN as f64 {
        return None;
    }
    let through = per_second(facts.counts().ok as f64, facts.run.completing);
    let evidence = format!(
        "{} of the responses are {status} after {} each ({} to {}): requests wait that long for a \
         place and give up; about {} are served at once ({} ok × {})",
        units::percent(part),
        units::duration(other.quantile(0.5) as f64),
        units::duration(low),
        units::duration(high),
        units::number((through * fastest / 1e9).round()),
        units::rate(through),
        units::duration(fastest),
    );
    let advice = "find the pool with that time-out (connection-timeout), and enlarge it";
    let check = "--body-errors shows the error; the server's log names the pool";
    Some(Finding::new("wait_limit", evidence, advice, check))
}
