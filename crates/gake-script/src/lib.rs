//! JavaScript on QuickJS, with bounded memory, stack and time.
//!
//! A [`ScriptSource`] is an ES module; [`ScriptThreads`] evaluates it on a number of threads and
//! calls its exported functions, with [`Value`]s as arguments and results. Scripts have no access
//! to files, network and timers; console output goes to a [`ConsoleSink`]. This crate does not know
//! what scripts are for.
//!
//! A [`user::User`] is one of many users on a thread, whose synchronous calls wait in a coroutine.
//! [`typescript`] makes JavaScript of TypeScript, [`is_es_module`] tells modules from CommonJS.

mod console;
mod error;
mod imports;
mod module_kind;
mod script;
mod source;
mod threads;
pub mod typescript;
pub mod user;
mod value;

pub use console::{ConsoleLevel, ConsoleSink};
pub use error::{Exception, ScriptError};
pub use module_kind::is_es_module;
pub use script::{Export, ScriptLimits};
pub use source::ScriptSource;
pub use threads::ScriptThreads;
pub use value::Value;
