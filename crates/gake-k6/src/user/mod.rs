//! One user with its script, and its pending records.

pub mod clock;
mod console;
pub mod dial;
mod globals;
pub(crate) mod import_errors;
pub(crate) mod lingering;
pub(crate) mod loader;
pub(crate) mod metric_context;
mod options_json;
pub mod pending;
pub mod request_params;
pub(crate) mod request_tags;
pub mod requests;
pub mod script_user;
pub mod series_index;
mod thrown;
mod timers;
pub mod vu;
