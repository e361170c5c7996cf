//! One user runs border.js for one value, without a network: for the fuzz target and for a test of
//! gake-k6.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use gake_core::clock::{Clock, Nanos};
use gake_k6::Stacks;
use gake_k6::files::ScriptFiles;
use gake_k6::scenario::ScenarioFacts;
use gake_k6::test::{LogLine, ScriptLog, Test, UserSettings};
use gake_k6::user::clock::UserClock;
use gake_k6::user::script_user::{CallEnd, ScriptUser};
use gake_k6::user::series_index::SeriesIndex;
use gake_k6::user::vu::{VuContext, VuStage};

/// The longest line of the log, in bytes.
const LINE_MAX: usize = 2 << 20;

/// Turns after which an iteration is ended from outside.
const TURNS: usize = 3_000;

/// A clock on which every pause is over at once.
struct Impatient(Instant);

impl Clock for Impatient {
    fn now(&self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }

    async fn sleep_until(&self, _: Nanos) {}
}

/// How the iteration ended, by itself or from outside, which is no fault.
#[derive(Debug, PartialEq, Eq)]
pub enum Crossed {
    Ended(CallEnd),
    Stopped,
}

/// Gives the value of a JavaScript expression to everything that takes values.
pub fn cross(expression: &str) -> Crossed {
    let log: ScriptLog =
        Arc::new(|line: &LogLine| assert!(line.message.len() <= LINE_MAX, "a line has no bound"));
    let settings = UserSettings {
        environment: vec![("VALUE".to_owned(), expression.to_owned())],
        memory: 64 << 20,
        ..UserSettings::default()
    };
    let script = include_str!("border.js").as_bytes().to_vec();
    let main = Path::new("/border.js");
    let files = ScriptFiles::on_disk(None).with(main, script);
    let test = Arc::new(Test::new(main, files, settings, log));
    let parts = VuContext {
        test,
        series_index: Rc::new(SeriesIndex::new([], false)),
        requests: Rc::default(),
        clock: UserClock::new(Impatient(Instant::now())),
        scenario: Rc::new(ScenarioFacts::default()),
        number: 1,
        number_in_test: 1,
    };
    let user = ScriptUser::load(&Stacks::new(), parts).expect("the script loads");
    let call = user.call(VuStage::Iteration, "default", None).expect("a stack");
    let mut call = Box::pin(call);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..TURNS {
        if let Poll::Ready(end) = call.as_mut().poll(&mut cx) {
            return Crossed::Ended(end);
        }
    }
    drop(call);
    Crossed::Stopped
}
