//! Rate limiters, which reject requests over a certain rate.

use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use crate::stats::{per_second, share};

const TOO_MANY: u16 = 429;
/// Share of the responses from which on the limiter is the limit of the run.
const REFUSED_MIN: f64 = 0.01;

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
    let advice = "exempt this client from the limit, or raise it, to measure the server behind \
                  it; fast rejections make the percentiles look good";
    let check = "curl -i the URL under the load: Retry-After and RateLimit headers";
    Some(Finding::new("rate_limit", evidence, advice, check))
}
