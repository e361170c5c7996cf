//! Errors of scripts.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rquickjs::{Coerced, Ctx, FromJs};

use crate::user::frames;

/// Why a script could not be loaded, or a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The script threw, or is not JavaScript.
    #[error(transparent)]
    Thrown(#[from] Exception),
    /// The time limit has passed, perhaps while the call was queued.
    #[error("{what} took longer than {limit:?}")]
    Late {
        /// The function, or the file while it is loaded.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The queue of calls is full.
    #[error("{0} was not called: too many calls are queued")]
    Busy(String),
    /// The value returned cannot be converted.
    #[error("{what} returned {reason}")]
    Value {
        /// The function.
        what: String,
        /// The kind of value.
        reason: &'static str,
    },
    /// No thread or memory.
    #[error("the script's thread cannot be started: {0}")]
    Thread(#[from] io::Error),
    /// The thread has ended.
    #[error("the script's thread has ended")]
    Gone,
}

/// An exception of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exception {
    /// Name and message, as `TypeError: not a function`.
    pub message: String,
    /// Where it was thrown, as `hooks.js:3:9`; empty if unknown.
    pub place: String,
    /// The stack trace, innermost call first, one a line; only of an `Error`.
    pub stack: String,
    /// Whether it is an `Error` rather than another value.
    pub is_error: bool,
}

impl std::error::Error for Exception {}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.place, self.message)
        }
    }
}

impl Exception {
    /// Takes the pending exception of a context.
    #[must_use]
    pub fn caught(ctx: &Ctx<'_>) -> Self {
        let thrown = ctx.catch();
        let text = |value| Coerced::<String>::from_js(ctx, value).map(|text| text.0);
        let is_error = thrown.is_error();
        let stack = thrown.as_object().filter(|_| is_error).map(frames).unwrap_or_default();
        let message = text(thrown).unwrap_or_else(|_| {
            // Its toString threw.
            let _ = ctx.catch();
            "a value that cannot be shown".to_owned()
        });
        Self { message, place: place(&stack), stack: stack.trim_end().to_owned(), is_error }
    }
}

/// The innermost place in a script: `hooks.js:3:9` of `    at f (hooks.js:3:9)`.
fn place(stack: &str) -> String {
    let frames = stack.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let places = frames.map(|frame| match frame.rsplit_once('(') {
        Some((_, place)) => place.trim_end_matches(')'),
        None => frame,
    });
    places.into_iter().find(|place| place.contains(':')).unwrap_or_default().to_owned()
}
