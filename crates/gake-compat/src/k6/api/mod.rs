//! The REST API of a run: its status, its figures and changes to it.

mod commands;
mod http;
mod server;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gake_engine::Stop;
use gake_k6::test::Test;
use gake_run::{Interrupt, UserControl};
use serde_json::{Value, json};

pub(super) use commands::main;
pub(super) use server::start;

/// k6's default address.
pub(super) const DEFAULT_ADDRESS: &str = "localhost:6565";

/// The end reason of a run that was stopped by the API.
const STOPPED: &str = "test run stopped from REST API";

/// The longest wait of a request for figures until the next second of the run.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The interval at which a run that waits for its start checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// k6's numbers of the stages of a run.
mod stage {
    pub const PAUSED: u8 = 4;
    pub const STARTED: u8 = 5;
    pub const RUNNING: u8 = 7;
    pub const ENDED: u8 = 9;
}

/// The API's view of a run.
pub(super) struct Api {
    test: Arc<Test>,
    users: UserControl,
    interrupt: Interrupt,
    state: Mutex<State>,
    changed: Condvar,
}

/// The mutable state.
struct State {
    stage: u8,
    is_paused: bool,
    is_stopped: bool,
    is_tainted: bool,
    /// The number of complete seconds of the run.
    second: u64,
    /// Whether a request waits for figures.
    is_requested: bool,
    /// The figures as `handleSummary` gets them, and when they were made.
    figures: Arc<Value>,
    figures_second: u64,
}

/// A refusal of a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoChange(String);

impl Api {
    /// The API of a run that waits for its start if `is_paused`.
    pub(super) fn new(test: Arc<Test>, interrupt: Interrupt, is_paused: bool) -> Arc<Self> {
        Arc::new(Self {
            test,
            users: UserControl::default(),
            interrupt,
            state: Mutex::new(State {
                stage: if is_paused { stage::PAUSED } else { stage::STARTED },
                is_paused,
                is_stopped: false,
                is_tainted: false,
                second: 0,
                is_requested: false,
                figures: Arc::new(Value::Null),
                figures_second: 0,
            }),
            changed: Condvar::new(),
        })
    }

    /// The control of the run's number of users.
    pub(super) fn users(&self) -> &UserControl {
        &self.users
    }

    /// Whether the API has stopped the run.
    pub(super) fn has_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits until the run is resumed, stopped or interrupted.
    pub(super) fn await_resumption(&self) {
        self.wait_while(|state| state.is_paused && !state.is_stopped).stage = stage::STARTED;
    }

    /// Continues to serve after the run until a signal comes.
    pub(super) fn linger(&self) {
        drop(self.wait_while(|_| true));
    }

    /// Waits until a condition no longer holds, or a signal has come.
    fn wait_while(&self, holds: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while holds(&state) && !self.interrupt.came() {
            let waited = self.changed.wait_timeout(state, POLL_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    /// Notes that a second of the run is over; makes `figures` if a request waits for them.
    pub(super) fn second(&self, second: u64, is_tainted: bool, figures: impl FnOnce() -> Value) {
        let is_requested = {
            let mut state = self.lock();
            state.stage = stage::RUNNING;
            (state.second, state.is_tainted) = (second, is_tainted);
            std::mem::take(&mut state.is_requested)
        };
        if is_requested {
            let figures = Arc::new(figures());
            let mut state = self.lock();
            (state.figures, state.figures_second) = (figures, second);
            self.changed.notify_all();
        }
    }

    /// Notes that the run is over.
    pub(super) fn end(&self) {
        self.lock().stage = stage::ENDED;
        self.changed.notify_all();
    }

    /// The figures of the last second, or the next ones if those are older.
    fn figures(&self) -> Arc<Value> {
        let mut state = self.lock();
        let before = state.second;
        if state.figures_second < before || state.figures.is_null() {
            state.is_requested = true;
            let is_waiting =
                |state: &mut State| state.figures_second <= before && state.stage != stage::ENDED;
            let waited = self.changed.wait_timeout_while(state, TIMEOUT, is_waiting);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Arc::clone(&state.figures)
    }

    /// The response of `/v1/status`.
    fn status(&self) -> Value {
        let state = self.lock();
        let at = state.second.saturating_mul(gake_core::clock::SECOND);
        let users = if state.stage == stage::RUNNING { self.test.active(at) } else { 0 };
        json!({
            "type": "status",
            "id": "default",
            "attributes": {
                "status": state.stage,
                "paused": state.is_paused,
                "vus": users,
                "vus-max": self.test.counters.ready(),
                "stopped": state.is_stopped,
                "running": state.stage == stage::RUNNING,
                "tainted": state.is_tainted,
            },
        })
    }

    /// Stops the run if a change requested it, once that has its response: the server ends with the
    /// run.
    fn stop_if_requested(&self) {
        if self.has_stopped() {
            self.test.abort(STOPPED.to_owned());
            self.interrupt.stop(Stop::Now);
            self.changed.notify_all();
        }
    }

    /// Applies a change of these attributes.
    fn change(&self, attributes: &Value) -> Result<(), NoChange> {
        if attributes["stopped"] == true {
            self.lock().is_stopped = true;
            return Ok(());
        }
        if let Some(pause) = attributes["paused"].as_bool() {
            self.pause(pause)?;
        }
        if let Some(most) = attributes["vus-max"].as_u64()
            && most > self.test.counters.ready()
        {
            let ready = self.test.counters.ready();
            return Err(NoChange(format!(
                "vus-max cannot be {most}: gake makes the {ready} users of maxVUs before the start"
            )));
        }
        if let Some(users) = attributes["vus"].as_u64() {
            self.scale(usize::try_from(users).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }

    fn pause(&self, pause: bool) -> Result<(), NoChange> {
        let mut state = self.lock();
        if state.is_paused == pause {
            let now = if pause { "paused already" } else { "not paused" };
            return Err(NoChange(format!("the run is {now}")));
        }
        if state.stage == stage::RUNNING {
            match pause {
                true if !self.users.pause() => return Err(no_control("paused")),
                true => {}
                false => self.users.resume(),
            }
        } else if pause {
            return Err(NoChange("a run can be paused once it has started".to_owned()));
        }
        state.is_paused = pause;
        self.changed.notify_all();
        Ok(())
    }

    fn scale(&self, users: usize) -> Result<(), NoChange> {
        let most = self.users.scale(users).ok_or_else(|| no_control("scaled"))?;
        match users > most {
            true => Err(NoChange(format!(
                "invalid configuration supplied: the number of active VUs ({users}) must be less \
                 than or equal to the number of maxVUs ({most})"
            ))),
            false => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_control(what: &str) -> NoChange {
    NoChange(format!(
        "only a running externally-controlled scenario can be {what}, and there is none"
    ))
}

#[cfg(test)]
mod tests {
    use gake_k6::files::ScriptFiles;
    use gake_k6::test::UserSettings;

    use super::*;

    fn api(is_paused: bool) -> Arc<Api> {
        let files = ScriptFiles::on_disk(None);
        let log = Arc::new(|_: &gake_k6::test::LogLine| ());
        let test = Test::new("/s.js".as_ref(), files, UserSettings::default(), log);
        Api::new(Arc::new(test), Interrupt::default(), is_paused)
    }

    #[test]
    fn a_paused_run_waits_until_it_is_resumed() {
        let api = api(true);
        assert_eq!(api.status()["attributes"]["status"], stage::PAUSED);
        let waiting = {
            let api = Arc::clone(&api);
            std::thread::spawn(move || api.await_resumption())
        };
        assert!(api.change(&json!({ "paused": true })).is_err());
        api.change(&json!({ "paused": false })).unwrap();
        waiting.join().unwrap();
        assert_eq!(api.status()["attributes"]["paused"], false);
    }

    #[test]
    fn a_stopped_run_does_not_wait() {
        let api = api(true);
        api.change(&json!({ "stopped": true })).unwrap();
        api.stop_if_requested();
        api.await_resumption();
        assert!(api.has_stopped() && api.interrupt.came());
        assert_eq!(api.test.aborted().unwrap().reason, STOPPED);
    }

    #[test]
    fn other_runs_can_be_neither_paused_nor_scaled() {
        let api = api(false);
        api.second(1, true, || unreachable!("no request"));
        for wish in [json!({ "paused": true }), json!({ "vus": 3 }), json!({ "vus-max": 9 })] {
            assert!(api.change(&wish).is_err(), "{wish}");
        }
        let status = api.status();
        assert_eq!(status["attributes"]["running"], true);
        assert_eq!(status["attributes"]["tainted"], true);
    }

    #[test]
    fn figures_are_created_on_request() {
        let api = api(false);
        let asking = {
            let api = Arc::clone(&api);
            std::thread::spawn(move || api.figures())
        };
        let mut second = 0;
        while !asking.is_finished() {
            second += 1;
            api.second(second, false, || json!({ "metrics": {} }));
            std::thread::yield_now();
        }
        assert_eq!(*asking.join().unwrap(), json!({ "metrics": {} }));
    }
}
