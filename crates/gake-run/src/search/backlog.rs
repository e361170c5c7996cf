//! Ends a trial in which far fewer requests end than are sent: it would miss any objective, and its
//! backlog would only take longer to drain.

use gake_core::record::Counts;
use gake_engine::JoinedSecond;
use gake_judge::search::TrialLoad;

/// A second in which less than this share of the rate ends counts as a backlog ...
const ENDED_SHARE: f64 = 0.5;
/// ... two of them in a row end the trial, ...
const SECONDS: u32 = 2;
/// ... at rates high enough to exclude chance.
const RATE_MIN: f64 = 100.0;
/// Multiples of the response time without load after which responses come as fast as requests.
const RESPONSES: f64 = 2.0;

/// The backlog of a trial.
#[derive(Debug)]
pub(super) struct Backlog {
    rate: f64,
    /// Seconds before which a backlog is not detected.
    patience: f64,
    low: u32,
}

impl Backlog {
    /// For a trial whose requests may take `limit` seconds, and take `unloaded` without load.
    pub(super) fn new(load: TrialLoad, limit: f64, unloaded: f64) -> Self {
        let rate = match load {
            TrialLoad::Rate(rate) => rate,
            TrialLoad::Users(_) | TrialLoad::Connections(_) => 0.0,
        };
        Self { rate, patience: 1.0 + limit.max(RESPONSES * unloaded), low: 0 }
    }

    /// Adds a second. Returns true once the backlog will not shrink any more.
    pub(super) fn grows(&mut self, second: &JoinedSecond) -> bool {
        let ended = |counts: &Counts| (counts.ok + counts.failed) as f64;
        let ended = ended(&second.tally.counts) + ended(&second.warmup);
        let is_late = second.second as f64 > self.patience;
        let is_low = is_late && self.rate >= RATE_MIN && ended < ENDED_SHARE * self.rate;
        self.low = if is_low { self.low + 1 } else { 0 };
        self.low >= SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64, ok: u64) -> JoinedSecond {
        let mut second = JoinedSecond { second: number, ..JoinedSecond::default() };
        second.tally.counts.ok = ok;
        second
    }

    #[test]
    fn two_seconds_of_less_than_half_are_a_backlog_once_responses_can_come() {
        let mut backlog = Backlog::new(TrialLoad::Rate(1_000.0), 1.0, 0.1);
        let seen = [(1, 0), (2, 0), (3, 400), (4, 600), (5, 400), (6, 400)];
        let grown: Vec<bool> = seen.map(|(n, ok)| backlog.grows(&second(n, ok))).to_vec();
        assert_eq!(grown, [false, false, false, false, false, true]);
    }

    #[test]
    fn a_slow_target_and_a_low_rate_have_time() {
        let mut slow = Backlog::new(TrialLoad::Rate(1_000.0), 1.0, 5.0);
        assert!(!(1..=11).any(|n| slow.grows(&second(n, 0))));
        let mut low = Backlog::new(TrialLoad::Rate(50.0), 1.0, 0.1);
        assert!(!(1..=11).any(|n| low.grows(&second(n, 0))));
        let mut users = Backlog::new(TrialLoad::Users(500), 1.0, 0.1);
        assert!(!(1..=11).any(|n| users.grows(&second(n, 0))));
    }
}
