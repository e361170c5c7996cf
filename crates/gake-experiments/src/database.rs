//! A pool in front of a database with a connection limit: theory, and the rows that must exist.

use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_text::units::count;

use crate::expectations::expectation;

/// The lab database's times to connect and to execute a statement, in seconds.
const CONNECT: f64 = 0.6;
const STATEMENT: f64 = 0.05;

/// Terms of the sum that are evaluated: with more idle connections none is opened.
const IDLE_TERMS: f64 = 1_000.0;

/// The share of requests that find no idle connection, given the share `served`: the number of idle
/// connections goes up with each response and down with each request, between 0 and I. With r ups
/// per down it is 0 for 1 / (1 + r + ... + r^I) of the time.
pub fn opening(served: f64, idle: f64) -> f64 {
    1.0 / (0..=idle.min(IDLE_TERMS) as i32).map(|k| served.powi(k)).sum::<f64>()
}

/// Connections held on average: λ · (served · statement + opened · connect), where requests that
/// find none idle and are not refused open one.
pub fn held(rate: f64, served: f64, idle: f64) -> f64 {
    let opened = (opening(served, idle) - (1.0 - served)).max(0.0);
    rate * (served * STATEMENT + opened * CONNECT)
}

/// The share of requests served in the steady state, in which the connections held are those that
/// the database allows.
pub fn steady(rate: f64, idle: f64, bound: f64) -> f64 {
    if held(rate, 1.0, idle) <= bound {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if held(rate, middle, idle) > bound { high = middle } else { low = middle }
    }
    low
}

/// There is one row per ok response, including the warm-up. A failed or unfinished request may have
/// written one before its response was lost.
pub fn rows(summary: &Summary, before: u64, after: Result<u64, String>) -> Expectation {
    let (counts, early) = (&summary.run.tally.counts, &summary.run.warmup);
    let ok = counts.ok + early.ok;
    let others = [counts.failed, counts.unfinished, early.failed, early.unfinished];
    let most = ok + others.iter().sum::<u64>();
    let with_early = match early.ok {
        0 => String::new(),
        early => format!(", {} of them in the warm-up, which is in no other figure", count(early)),
    };
    let more = match most - ok {
        0 => String::new(),
        more => format!("; of {} that failed or did not finish each may have one", count(more)),
    };
    let theory = format!("{}: a row for each 200{with_early}{more}", count(ok));
    let added = after.map(|after| after.checked_sub(before));
    let met = matches!(added, Ok(Some(added)) if (ok..=most).contains(&added));
    let seen = match added {
        Ok(Some(added)) if met && added > ok => format!(
            "{}: explained, {} of requests that failed or did not finish",
            count(added),
            count(added - ok)
        ),
        Ok(Some(added)) => count(added),
        Ok(None) => "fewer rows than before".to_owned(),
        Err(why) => format!("cannot be counted: {why}"),
    };
    expectation("rows", theory, seen, met)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_requests_opens_a_connection_when_two_are_kept() {
        assert_eq!(steady(1_000.0, 2.0, 1_000.0), 1.0);
        assert!((opening(1.0, 2.0) - 1.0 / 3.0).abs() < 1e-9);
        assert!((held(1_000.0, 1.0, 2.0) - 1_000.0 * (0.05 + 0.2)).abs() < 1e-9);
    }

    #[test]
    fn what_is_served_holds_all_connections_that_there_are() {
        let served = steady(1_000.0, 2.0, 151.0);
        assert!((0.7..0.8).contains(&served), "{served}");
        assert!((held(1_000.0, served, 2.0) - 151.0).abs() < 1e-3);
        // At a fifth of the rate the limit exceeds the connections held.
        assert_eq!(steady(200.0, 2.0, 151.0), 1.0);
    }
}
