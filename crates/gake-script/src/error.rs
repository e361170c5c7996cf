//! What can go wrong with a script.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rquickjs::{Coerced, Ctx, FromJs};

/// Why a script could not be loaded or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The script threw, or is no JavaScript.
    #[error(transparent)]
    Thrown(#[from] Exception),
    /// It was ended at its time limit, or its turn did not come before it.
    #[error("{what} took longer than {limit:?}")]
    Late {
        /// The function, or the file while it is loaded.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// Too many calls wait already.
    #[error("{0} was not called: too many calls wait for the script")]
    Busy(String),
    /// What it returned cannot leave it.
    #[error("{what} returned {reason}")]
    Value {
        /// The function.
        what: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The system has no thread or memory for it.
    #[error("the script's thread cannot be started: {0}")]
    Thread(#[from] io::Error),
    /// The thread is gone.
    #[error("the script's thread is gone")]
    Gone,
}

/// What a script threw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Name and message, as `TypeError: not a function`.
    pub message: String,
    /// Where it was thrown, as `hooks.js:3:9`; empty when nobody knows.
    pub place: String,
    /// The calls that led there, innermost first, a line each; only an `Error` has them.
    pub stack: String,
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
    /// What the context caught.
    #[must_use]
    pub fn caught(ctx: &Ctx<'_>) -> Self {
        let thrown = ctx.catch();
        let text = |value| Coerced::<String>::from_js(ctx, value).map(|text| text.0);
        let stack = match thrown.as_exception() {
            Some(error) => error.stack().unwrap_or_default(),
            None => String::new(),
        };
        let message = text(thrown).unwrap_or_else(|_| {
            // Whoever throws what cannot be shown gets no second try.
            let _ = ctx.catch();
            "something that has no text".to_owned()
        });
        Self { message, place: place(&stack), stack: stack.trim_end().to_owned() }
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
