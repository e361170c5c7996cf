//! k6 scripts on gake's engine: options, modules, metrics, thresholds, summary, outputs.
//!
//! [`options`] define the run, [`threshold`] its objectives, [`summary`] its result. A
//! [`test::Test`] is what all users share, [`user`] is one user with its script, [`modules`] are
//! its imports, [`work`] is what the engine fires. The crate prints nothing and sees neither
//! arguments nor environment.

pub mod aggregation;
pub mod archive;
pub mod blocked;
mod bodies;
mod counters;
mod definitions;
pub mod extension;
pub mod features;
pub mod files;
mod init_lines;
pub mod metrics;
pub mod modules;
pub mod options;
pub mod out;
mod paths;
pub mod profile;
pub mod scenario;
pub mod secrets;
pub mod shared_arrays;
mod source_maps;
pub mod summary;
pub mod test;
mod test_progress;
pub mod threshold;
pub mod unattributed_samples;
pub mod user;
mod user_settings;
pub mod values;
pub mod version;
pub mod work;

pub use gake_go::duration;
pub use gake_script::Exception;
pub use gake_script::user::{Stacks, within};
pub use user::import_errors::not_on_disk;
pub use user::loader::check_local;
