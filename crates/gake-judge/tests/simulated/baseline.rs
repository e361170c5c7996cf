//! The common method: double the rate until a step fails, then bisect, one noisy step at a time.

use std::time::Duration;

use gake_judge::search::{Purpose, Trial, TrialLoad};

use super::server::Server;
use super::servers::Case;
use super::trial::observe;

/// Seconds of a step, and of the last test.
const STEP: f64 = 10.0;
const LAST: f64 = 30.0;
/// The search ends when two loads are closer than this ratio.
const CLOSE: f64 = 0.01;
const DEADLINE: f64 = 300.0;

/// The capacity, the bracket around it, and the seconds spent, without drains.
pub struct Bisected {
    pub capacity: f64,
    pub low: f64,
    pub high: f64,
    pub spent: f64,
}

/// Nighthawk's exponential search, but on a percentile.
pub fn bisect(case: &Case, server: &mut Server, start: f64) -> Bisected {
    let clauses = case.clauses();
    let mut spent = 0.0;
    let mut passes = |rate: f64, length: f64| {
        let trial = Trial {
            number: 0,
            purpose: Purpose::Bracket,
            load: TrialLoad::Rate(rate),
            warmup: Duration::ZERO,
            duration: Duration::from_secs_f64(length),
            seed: 0,
            enough: Vec::new(),
        };
        let seen = observe(server, &trial, &clauses);
        server.now = server.drained();
        spent += length;
        let kept = |n: usize| match clauses[n].bound {
            gake_judge::ClauseBound::Share(allowed) => {
                seen.clauses[n].total.bad <= allowed * seen.clauses[n].total.of
            }
            gake_judge::ClauseBound::Level(_) => true,
        };
        ((0..clauses.len()).all(kept), spent)
    };
    let (mut rate, mut low, mut high) = (start, 0.0, None);
    loop {
        let (passed, spent) = passes(rate, STEP);
        let before = rate;
        if passed {
            low = rate;
        } else {
            high = Some(rate);
        }
        rate = match high {
            None => 2.0 * rate,
            Some(high) => f64::midpoint(low, high),
        };
        let close = high.is_some() && (rate / before - 1.0).abs() < CLOSE;
        if close || spent > DEADLINE || rate < 1.0 {
            let (_, spent) = passes(rate, LAST);
            return Bisected { capacity: rate, low, high: high.unwrap_or(rate), spent };
        }
    }
}
