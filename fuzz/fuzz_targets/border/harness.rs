//! One user runs border.js for one value, or sizes.js for calls with sizes, without a network: for
//! the fuzz targets and for tests of gake-k6.

#![allow(dead_code)] // each of them calls one function

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

/// The heap of the script, in bytes.
pub const HEAP: usize = 64 << 20;

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
    run(include_str!("border.js"), expression)
}

/// Makes calls of functions that take sizes: a function, then the sizes that it is called with.
pub fn call_with_sizes(calls: &[[u8; 3]]) -> Crossed {
    run(include_str!("sizes.js"), &format!("{calls:?}"))
}

/// Runs the script's default function with a value in its environment.
fn run(script: &str, value: &str) -> Crossed {
    let log: ScriptLog =
        Arc::new(|line: &LogLine| assert!(line.message.len() <= LINE_MAX, "a line has no bound"));
    let settings = UserSettings {
        environment: vec![("VALUE".to_owned(), value.to_owned())],
        memory: HEAP,
        ..UserSettings::default()
    };
    let main = Path::new("/border.js");
    let files = ScriptFiles::on_disk(None).with(main, script.as_bytes().to_vec());
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
