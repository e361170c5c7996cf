//! JavaScript on QuickJS: bounded runtimes on threads of their own.
//!
//! A [`ScriptSource`] is an ES module; [`ScriptThreads`] evaluates it on as many threads as wanted and calls the
//! functions that it exports, with a [`Value`] for each argument and for what comes back. Memory,
//! stack and time are bounded ([`ScriptLimits`]); a script has no files, no network and no timers. It
//! must not know what is asked of it, and prints nothing: what a script logs goes to a [`ConsoleSink`].
//!
//! A [`user::User`] is one of many users on one thread, whose synchronous calls wait in a coroutine.

mod console;
mod error;
mod imports;
mod script;
mod source;
mod threads;
pub mod user;
mod value;

pub use console::{ConsoleSink, ConsoleLevel};
pub use error::{Exception, ScriptError};
pub use script::{Export, ScriptLimits};
pub use source::ScriptSource;
pub use threads::ScriptThreads;
pub use value::Value;
