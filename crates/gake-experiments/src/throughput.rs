//! Where throughput stops growing with more users.

use gake_judge::{Rank, Summary};
use gake_text::units::{duration, plural, rate};

use crate::figures;

/// Throughput grows if it increases by more than this share.
const GROWS: f64 = 0.05;

/// A number of users and their throughput.
#[derive(Debug, Clone, Copy)]
pub struct CurveStep {
    users: u64,
    /// Responses per second.
    rate: f64,
    cause: Option<&'static str>,
    /// CPU time of the generator per request, in nanoseconds; 0 if unknown.
    cost: f64,
    /// Cores available to the generator.
    cores: usize,
}

impl CurveStep {
    pub fn new(summary: &Summary, users: u64) -> Self {
        let generator = &summary.run.generator;
        let mut findings = summary.verdict.findings.iter();
        Self {
            users,
            rate: figures::figure(summary, None, "response_rate").unwrap_or(0.0),
            cause: findings.find(|found| found.rank == Rank::Cause).map(|found| found.id),
            cost: generator.cpu as f64 / summary.run.tally.counts.sent.max(1) as f64,
            cores: generator.cores,
        }
    }
}

/// Where throughput stops growing, why, and how far the generator itself could go; `None` for fewer
/// than two steps.
pub fn end_of_throughput(curve: &[CurveStep]) -> Option<String> {
    let most = curve.iter().map(|one| one.rate).fold(0.0, f64::max);
    let (last, others) = curve.split_last()?;
    let first = curve.iter().find(|one| one.rate >= (1.0 - GROWS) * most)?;
    if others.is_empty() || most <= 0.0 {
        return None;
    }
    let users = |step: &CurveStep| plural(step.users, "user");
    let mut text = match first.users == last.users {
        true => format!("throughput still grows with {}: {}", users(last), rate(last.rate)),
        false => format!(
            "throughput peaks at {}, {}; {} get {}, and the excess queues",
            users(first),
            rate(first.rate),
            users(last),
            rate(last.rate)
        ),
    };
    if let Some(cause) = last.cause.or(first.cause) {
        text.push_str(&format!(". What limits it: {cause}"));
    }
    if last.cost > 0.0 {
        text.push_str(&format!(
            ". The generator takes {} of CPU time per request: {} of its own allow about {}",
            duration(last.cost),
            plural(last.cores as u64, "core"),
            rate(last.cores as f64 * 1e9 / last.cost)
        ));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn throughput_stops_where_more_users_add_none() {
        let of = |rates: &[(u64, f64)]| {
            let step = |(users, rate): &(u64, f64)| {
                let cause = (*users > 20).then_some("target_cpu");
                CurveStep { users: *users, rate: *rate, cause, cost: 4e3, cores: 2 }
            };
            end_of_throughput(&rates.iter().map(step).collect::<Vec<_>>())
        };
        let text = of(&[(20, 40e3), (200, 80e3), (1_000, 82e3)]).unwrap();
        expect!["throughput peaks at 200 users, 80,000/s; 1,000 users get 82,000/s, and the excess queues. What limits it: target_cpu. The generator takes 4.00 µs of CPU time per request: 2 cores of its own allow about 500,000/s"].assert_eq(&text);
        let text = of(&[(20, 40e3), (200, 80e3)]).unwrap();
        expect!["throughput still grows with 200 users: 80,000/s. What limits it: target_cpu. The generator takes 4.00 µs of CPU time per request: 2 cores of its own allow about 500,000/s"].assert_eq(&text);
        assert_eq!(of(&[(20, 40e3)]), None);
        assert_eq!(of(&[(20, 0.0), (200, 0.0)]), None);
        assert_eq!(of(&[]), None);
    }
}
