//! Control of the rate of a run in progress, from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::nanos;
use gake_core::plan::Plan;
use gake_core::record::RunEvent;
use gake_core::schedule::{RateChange, Stage};
use gake_engine::{RateChangeError, RateHandle};

/// Changes the rates of open loops during a run, and the number of users of externally controlled
/// scenarios.
#[derive(Debug, Clone, Default)]
pub struct RateControl(Arc<Mutex<Option<RateHandle>>>);

impl RateControl {
    /// Whether a run of `plan` has a rate that can be changed.
    #[must_use]
    pub fn suits(plan: &Plan) -> bool {
        plan.scenarios()
            .iter()
            .any(|plan| matches!(plan.load.one(), Some(Load::Open { .. } | Load::External { .. })))
    }

    /// Multiplies all rates of the plan by `factor`, over a tenth of a second.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn change(&self, factor: f64) -> Result<(), RateChangeError> {
        let handle = self.lock().clone();
        handle.ok_or(RateChangeError::NoRate)?.change(factor)
    }

    /// The latest factor; 1 at first.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let changes = self.lock().as_ref().map(RateHandle::changes).unwrap_or_default();
        changes.last().map_or(1.0, |change| change.factor)
    }

    /// Controls a run that starts through `handle`.
    pub(crate) fn attach(&self, handle: Option<RateHandle>) {
        *self.lock() = handle;
    }

    fn lock(&self) -> MutexGuard<'_, Option<RateHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn event(change: &RateChange, plan: &Plan) -> RunEvent {
    let at = nanos(change.at);
    let percent = change.factor * 100.0;
    let (what, now) = match plan.load.one() {
        Some(Load::Open { stages, .. }) => match stages.as_slice() {
            [only] if only.from == only.to => {
                let stage = Stage::step(only.from * change.factor, Duration::MAX);
                ("rate", format!(": {stage}"))
            }
            _ => ("rate", String::new()),
        },
        Some(Load::External { users, max }) => {
            let users = ((*users as f64 * change.factor).round() as usize).min(*max);
            ("number of users", format!(": {users}"))
        }
        _ => ("load", String::new()),
    };
    let text = format!("the {what} was set to {percent:.0} % of the plan by hand{now}");
    RunEvent::new(at, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use gake_core::schedule::Process;

    #[test]
    fn an_event_names_a_constant_rate() {
        let of = |stages: Vec<Stage>| {
            let plan = Plan::new("url", Load::Open { stages, process: Process::Uniform });
            event(&RateChange { at: Duration::from_millis(1_500), factor: 1.5 }, &plan)
        };
        let step = Stage::step(100.0, Duration::from_secs(9));
        let event = of(vec![step]);
        assert_eq!(event.at, 1_500_000_000);
        expect!["the rate was set to 150 % of the plan by hand: 150/s"].assert_eq(&event.text);
        let text = of(vec![step, Stage::step(9.0, Duration::from_secs(1))]).text;
        expect!["the rate was set to 150 % of the plan by hand"].assert_eq(&text);
        let users = Plan::new("url", Load::External { users: 7, max: 10 });
        let text = super::event(&RateChange { at: Duration::ZERO, factor: 1.2 }, &users).text;
        expect!["the number of users was set to 120 % of the plan by hand: 8"].assert_eq(&text);
    }
}
