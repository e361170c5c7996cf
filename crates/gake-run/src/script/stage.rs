//! Calls that run once, outside of iterations: init code, `setup`, `teardown`, `handleSummary`.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::plan::ExpectedStatus;
use gake_core::record::{Recorder, Tally};
use gake_core::schedule::Slice;
use gake_core::work::{Arrival, Iteration};
use gake_engine::RunClock;
use gake_k6::Stacks;
use gake_k6::scenario::ScenarioFacts;
use gake_k6::test::Test;
use gake_k6::user::clock::UserClock;
use gake_k6::user::script_user::{CallEnd, ScriptUser, SummaryOutputs};
use gake_k6::user::series_index::SeriesIndex;
use gake_k6::user::vu::{VuContext, VuStage};
use gake_wire::{Client, Network};
use tokio::runtime::{Builder, LocalOptions};

use super::{LoadedScript, ScriptRun, ScriptRunError, SetupResult, TagKeys};
use crate::{Interrupt, RunError};

/// Polling interval for the end of a call.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The number of users above which lines of their init code follow `setup`.
const MOST_INIT_LINES: u64 = 100;

/// How a call ended.
#[derive(Debug)]
pub(super) enum CallOutcome {
    /// It returned this value, as JSON.
    Returned(Option<String>),
    /// The script aborted the test, or the call was interrupted.
    Ended,
}

impl CallOutcome {
    /// The return value, as JSON.
    pub(super) fn returned(self) -> Option<String> {
        match self {
            Self::Returned(json) => json,
            Self::Ended => None,
        }
    }
}

impl LoadedScript {
    /// Runs `setup`. Returns its result, and whether it returned or was interrupted. It does not
    /// run after an interrupt, which may come during the wait for agents.
    pub(super) fn set_up(
        &self,
        run: &ScriptRun,
        network: (&Arc<Network>, &TagKeys),
        interrupt: &Interrupt,
    ) -> (SetupResult, Result<bool, ScriptRunError>) {
        let mut set_up = SetupResult::default();
        if interrupt.came() {
            return (set_up, Ok(false));
        }
        match self.setup(run, network, &mut set_up.recorded, || interrupt.came()) {
            Ok(CallOutcome::Returned(data)) => (SetupResult { data, ..set_up }, Ok(true)),
            Ok(CallOutcome::Ended) => (set_up, Ok(false)),
            Err(error) => (set_up, Err(error)),
        }
    }

    /// Calls `setup`, if there is one and it is not disabled.
    fn setup(
        &self,
        run: &ScriptRun,
        network: (&Arc<Network>, &TagKeys),
        aside: &mut Tally,
        is_cut: impl Fn() -> bool,
    ) -> Result<CallOutcome, ScriptRunError> {
        let Some(limit) = run.setup.filter(|_| self.has("setup")) else {
            return Ok(CallOutcome::Returned(None));
        };
        let user = StageUser::load(&self.test, Some(network))?;
        user.call(VuStage::Setup, "setup", None, limit, aside, is_cut)
    }

    /// Calls `teardown` with `data`, if there is one and it is not disabled.
    pub(super) fn teardown(
        &self,
        run: &ScriptRun,
        network: (&Arc<Network>, &TagKeys),
        data: Option<&str>,
        aside: &mut Tally,
        is_cut: impl Fn() -> bool,
    ) -> Result<(), ScriptRunError> {
        let Some(limit) = run.teardown.filter(|_| self.has("teardown")) else { return Ok(()) };
        let user = StageUser::load(&self.test, Some(network))?;
        user.call(VuStage::Teardown, "teardown", data, limit, aside, is_cut).map(drop)
    }

    /// Writes what the init code of all users logs, if it logs anything and `setup` follows.
    pub(super) fn write_init_lines(&self, run: &ScriptRun) {
        let users = self.test.planned();
        let lines = &self.test.init_lines;
        let is_set_up = run.setup.is_some() && self.has("setup");
        if !is_set_up || !lines.are_any() || users > MOST_INIT_LINES {
            return;
        }
        for number in 1..=users {
            // An error is reported when the user itself is loaded.
            let _ = StageUser::load_as(number, &self.test, None);
        }
        lines.written();
    }

    /// Loads the script again, for the log of its init code.
    pub fn load_again(&self) {
        // Errors were reported by the first load.
        let _ = StageUser::load(&self.test, None);
    }

    /// Calls `handleSummary` with `data`, which is JSON; `None` if it was interrupted.
    ///
    /// # Errors
    /// When it throws, or takes longer than `limit`.
    pub fn handle_summary(
        &self,
        data: &str,
        limit: Duration,
    ) -> Result<Option<SummaryOutputs>, ScriptRunError> {
        let network = self.network.get().map(|(network, keys)| (network, keys));
        let user = StageUser::load(&self.test, network)?;
        let mut nothing = Tally::default();
        let never = || false;
        let stage = VuStage::Summary;
        let called = user.call(stage, "handleSummary", Some(data), limit, &mut nothing, never)?;
        Ok(called.returned().and_then(|json| serde_json::from_str(&json).ok()))
    }
}

/// User 0, which makes these calls.
pub(super) struct StageUser {
    pub(super) user: ScriptUser,
}

impl StageUser {
    /// Loads the script. It can send requests if it has a network.
    pub(super) fn load(
        test: &Arc<Test>,
        network: Option<(&Arc<Network>, &TagKeys)>,
    ) -> Result<Self, ScriptRunError> {
        Self::load_as(0, test, network)
    }

    fn load_as(
        number: u64,
        test: &Arc<Test>,
        network: Option<(&Arc<Network>, &TagKeys)>,
    ) -> Result<Self, ScriptRunError> {
        let clock = UserClock::new(RunClock::starting_in(0));
        let keys = network.map(|(_, keys)| &**keys).unwrap_or_default();
        let parts = VuContext {
            test: Arc::clone(test),
            series_index: Rc::new(SeriesIndex::new(
                keys.iter().map(String::as_str),
                test.tap.get().is_some(),
            )),
            requests: Rc::default(),
            clock: clock.clone(),
            scenario: Rc::new(ScenarioFacts::default()),
            number,
            number_in_test: number,
        };
        let user = ScriptUser::load(&Stacks::new(), parts)?;
        if let Some((network, _)) = network {
            let http2 = Arc::new(network.of_http2());
            let grpc = Client::new(http2, Slice::new(0, 1), clock.clone());
            *user.vu.grpc.borrow_mut() = Some(grpc);
            let client = Client::new(Arc::clone(network), Slice::new(0, 1), clock);
            *user.vu.client.borrow_mut() = Some(client);
        }
        Ok(Self { user })
    }

    /// Calls a function of the script and adds its samples to `tally`. `is_cut` is polled, and
    /// interrupts the call.
    pub(super) fn call(
        &self,
        stage: VuStage,
        function: &'static str,
        argument: Option<&str>,
        limit: Duration,
        tally: &mut Tally,
        is_cut: impl Fn() -> bool,
    ) -> Result<CallOutcome, ScriptRunError> {
        let cannot = |error: std::io::Error| RunError::cannot(error);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .map_err(cannot)?;
        let vu = &self.user.vu;
        let is_part_of_run = matches!(stage, VuStage::Setup | VuStage::Teardown);
        let began = Instant::now();
        let into_group = || {
            if is_part_of_run {
                *vu.group.borrow_mut() = format!("::{function}").into();
            }
        };
        into_group();
        let recorder = Recorder::new(ExpectedStatus::default(), 0, 0, None);
        let arrival = Arrival { number: 0, due: vu.now() };
        let iteration = Iteration::new(arrival, 0, arrival.due, &recorder);
        let end = runtime.block_on(async {
            let call = self.user.call(stage, function, argument).map_err(cannot)?;
            let mut call = pin!(tokio::time::timeout(limit, call));
            let end = poll_fn(|cx| {
                let polled = call.as_mut().poll(cx);
                vu.pending.flush(&vu.test, &vu.series_index, &iteration);
                polled
            });
            let cut = async {
                while !is_cut() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            let end = tokio::select! {
                end = end => end,
                () = cut => Ok(CallEnd::Ended),
            };
            Ok::<_, RunError>(end)
        })?;
        if is_part_of_run {
            into_group();
            vu.record_traffic();
            vu.test.count_stage(began.elapsed());
        }
        vu.pending.flush(&vu.test, &vu.series_index, &iteration);
        let (recorded, _) = recorder.take(Tally::default());
        tally.merge(&recorded);
        match end {
            Ok(CallEnd::Returned(json)) => Ok(CallOutcome::Returned(json)),
            Ok(CallEnd::Rejected(exception)) => Err(ScriptRunError::Rejected(exception)),
            Ok(CallEnd::NoData(wrong)) => Err(ScriptRunError::SetupData(wrong)),
            Ok(CallEnd::Thrown(exception)) => Err(ScriptRunError::Thrown { stage, exception }),
            // The script aborted the test, as `test` knows, or the call was interrupted.
            Ok(CallEnd::Ended) => Ok(CallOutcome::Ended),
            Err(_) => Err(ScriptRunError::Late { stage, function, limit }),
        }
    }
}
