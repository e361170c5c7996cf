//! Stages of rates or users: `100@30s,100..1000@2m,0@5s`. A ramp is `A..B@T`, a step is `A@T`.

use gake_text::duration::parse_duration;
use gake_text::rate::parse_per_second;

use super::users::UserStage;
use crate::schedule::Stage;

/// Why a text is not a list of stages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// One item is not a stage.
    #[error("{0:?} is not a stage; write RATE@TIME or RATE..RATE@TIME, for example 100..1000@2m")]
    Item(String),
    /// No stage sends anything.
    #[error("the stages {0:?} send nothing: every rate is 0 or every time is 0")]
    Nothing(String),
}

/// Reads a comma-separated list of stages.
///
/// # Errors
/// When an item is not a stage, or no stage sends anything.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, StageError> {
    let stages =
        text.split(',').map(|item| parse_stage(item.trim())).collect::<Result<Vec<_>, _>>()?;
    let sends = |s: &Stage| (s.from > 0.0 || s.to > 0.0) && !s.duration.is_zero();
    if stages.iter().any(sends) { Ok(stages) } else { Err(StageError::Nothing(text.to_owned())) }
}

fn parse_stage(item: &str) -> Result<Stage, StageError> {
    let error = || StageError::Item(item.to_owned());
    let (rates, time) = item.split_once('@').ok_or_else(error)?;
    let duration = parse_duration(time).map_err(|_| error())?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    let from = parse_per_second(from.trim()).ok_or_else(error)?;
    let to = parse_per_second(to.trim()).ok_or_else(error)?;
    Ok(Stage { from, to, duration })
}

/// Why a text is not a list of stages of users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserStageError {
    /// One item is not a stage.
    #[error(
        "{0:?} is not a stage of users; write USERS@TIME or USERS..USERS@TIME, for example 50..200@30s"
    )]
    Item(String),
    /// No stage has users.
    #[error("the stages {0:?} have no users: every number is 0 or every time is 0")]
    Nothing(String),
}

/// Reads a comma-separated list of stages: `50..200@30s,200@1m`.
///
/// # Errors
/// When an item is not a stage, or no stage has users.
pub fn parse_user_stages(text: &str) -> Result<Vec<UserStage>, UserStageError> {
    let stages =
        text.split(',').map(|item| parse_user_stage(item.trim())).collect::<Result<Vec<_>, _>>()?;
    let has_users = |s: &UserStage| (s.from > 0 || s.to > 0) && !s.duration.is_zero();
    match stages.iter().any(has_users) {
        true => Ok(stages),
        false => Err(UserStageError::Nothing(text.to_owned())),
    }
}

fn parse_user_stage(item: &str) -> Result<UserStage, UserStageError> {
    let error = || UserStageError::Item(item.to_owned());
    let (users, time) = item.split_once('@').ok_or_else(error)?;
    let duration = parse_duration(time).map_err(|_| error())?;
    let (from, to) = users.split_once("..").unwrap_or((users, users));
    let number = |text: &str| text.trim().parse().map_err(|_| error());
    Ok(UserStage { from: number(from)?, to: number(to)?, duration })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn reads_steps_and_ramps() {
        let stages = parse_stages("100@30s, 100..1000@2m,0@5s").unwrap();
        assert_eq!(
            stages,
            [
                Stage::step(100.0, Duration::from_secs(30)),
                Stage { from: 100.0, to: 1000.0, duration: Duration::from_secs(120) },
                Stage::step(0.0, Duration::from_secs(5)),
            ]
        );
        assert_eq!(stages[1].to_string(), "100..1000/s for 2m");
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "100", "100@", "@5s", "a..b@5s", "1..2..3@5s", "100@5s,", "-1@5s"] {
            assert!(matches!(parse_stages(text), Err(StageError::Item(_))), "{text}");
        }
        assert!(matches!(parse_stages("0@5s"), Err(StageError::Nothing(_))));
        assert!(matches!(parse_stages("100@0s"), Err(StageError::Nothing(_))));
    }

    #[test]
    fn reads_steps_and_ramps_of_users() {
        let stages = parse_user_stages("50..200@30s, 200@1m,0@5s").unwrap();
        let seconds = Duration::from_secs;
        let expected = [
            UserStage { from: 50, to: 200, duration: seconds(30) },
            UserStage::step(200, seconds(60)),
            UserStage::step(0, seconds(5)),
        ];
        assert_eq!(stages, expected);
        let texts: Vec<_> = stages.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["50..200 users for 30s", "200 users for 1m", "0 users for 5s"]);
    }

    #[test]
    fn refuses_invalid_stages_of_users() {
        for text in ["", "50", "50@", "@5s", "a..b@5s", "1..2..3@5s", "5@5s,", "-1@5s", "1.5@5s"] {
            assert!(matches!(parse_user_stages(text), Err(UserStageError::Item(_))), "{text}");
        }
        assert!(matches!(parse_user_stages("0@5s"), Err(UserStageError::Nothing(_))));
        assert!(matches!(parse_user_stages("5@0s"), Err(UserStageError::Nothing(_))));
    }
}
