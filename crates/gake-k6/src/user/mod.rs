//! One scripted user, and what it notes for the record.

pub mod clock;
mod console;
mod exports;
mod globals;
pub(crate) mod lingering;
pub(crate) mod loader;
pub mod pending;
pub mod requests;
pub mod script_user;
pub mod series_index;
mod syntax;
mod timers;
pub mod vu;
