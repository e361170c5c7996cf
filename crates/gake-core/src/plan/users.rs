//! Stages of users.

use std::fmt;
use std::time::Duration;

use gake_text::duration::format_duration;
use serde::{Deserialize, Serialize};

use crate::seconds::AsSeconds;

/// A period in which the number of users is constant or changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserStage {
    /// Users at the start.
    pub from: usize,
    /// Users at the end.
    pub to: usize,
    /// Its length.
    #[serde(rename = "duration_s", with = "AsSeconds")]
    pub duration: Duration,
}

impl UserStage {
    /// A constant number of users.
    #[must_use]
    pub const fn step(users: usize, duration: Duration) -> Self {
        Self { from: users, to: users, duration }
    }
}

impl fmt::Display for UserStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from != self.to {
            write!(f, "{}..", self.from)?;
        }
        let s = if (self.from, self.to) == (1, 1) { "" } else { "s" };
        write!(f, "{} user{s} for {}", self.to, format_duration(self.duration))
    }
}

/// The spans in which user `user` (from 0) is active, counted from the start of the first stage.
/// While the number of users rises, a user joins where the line reaches a whole number; while it
/// falls, the user that joined last leaves there.
#[must_use]
pub fn presence(stages: &[UserStage], user: usize) -> Vec<(Duration, Duration)> {
    let mut spans: Vec<(Duration, Duration)> = Vec::new();
    let mut begun = Duration::ZERO;
    for stage in stages {
        let UserStage { from, to, duration } = *stage;
        let end = begun.saturating_add(duration);
        let at = |steps: usize| {
            let share = steps as f64 / from.abs_diff(to) as f64;
            begun.saturating_add(duration.mul_f64(share))
        };
        let span = match (from > user, to > user) {
            (true, true) => Some((begun, end)),
            (false, true) => Some((at(user + 1 - from), end)),
            (true, false) => Some((begun, at(from - user))),
            (false, false) => None,
        };
        if let Some((from, until)) = span.filter(|(from, until)| from < until) {
            match spans.last_mut() {
                Some(last) if last.1 == from => last.1 = until,
                _ => spans.push((from, until)),
            }
        }
        begun = end;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(from: usize, to: usize, seconds: u64) -> UserStage {
        UserStage { from, to, duration: Duration::from_secs(seconds) }
    }

    fn seconds(stages: &[UserStage], user: usize) -> Vec<(f64, f64)> {
        let spans = presence(stages, user);
        spans.iter().map(|(from, until)| (from.as_secs_f64(), until.as_secs_f64())).collect()
    }

    #[test]
    fn users_come_and_leave_where_the_line_meets_whole_numbers() {
        let stages = [stage(0, 10, 10), stage(10, 10, 5), stage(10, 0, 10)];
        assert_eq!(seconds(&stages, 0), [(1.0, 25.0)]);
        assert_eq!(seconds(&stages, 9), [(10.0, 16.0)]);
        assert_eq!(seconds(&stages, 10), []);
    }

    #[test]
    fn a_user_may_come_twice_and_a_step_is_immediate() {
        let stages = [stage(5, 5, 2), stage(1, 1, 2), stage(5, 5, 2)];
        assert_eq!(seconds(&stages, 0), [(0.0, 6.0)]);
        assert_eq!(seconds(&stages, 4), [(0.0, 2.0), (4.0, 6.0)]);
        assert_eq!(seconds(&[stage(0, 8, 0), stage(8, 8, 1)], 7), [(0.0, 1.0)]);
    }

    #[test]
    fn the_number_of_users_follows_the_line() {
        let stages = [stage(3, 17, 7), stage(17, 5, 4), stage(5, 20, 9)];
        for tenth in 0..200 {
            let at = Duration::from_millis(tenth * 100 + 50);
            let there = |user| {
                presence(&stages, user).iter().any(|(from, until)| (*from..*until).contains(&at))
            };
            let count = (0..30).filter(|user| there(*user)).count();
            let t = at.as_secs_f64();
            let wanted = match t {
                ..7.0 => (3.0 + 14.0 * t / 7.0).floor(),
                ..11.0 => (17.0 - 12.0 * (t - 7.0) / 4.0).ceil(),
                _ => (5.0 + 15.0 * (t - 11.0) / 9.0).floor(),
            };
            assert_eq!(count, wanted as usize, "at {t}");
        }
    }
}
