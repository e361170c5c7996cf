//! k6's scripts on gake's engine: what a script may say, and what k6 would print of the run.
//!
//! [`options`] defines the run, [`threshold`] its objectives, [`summary`] its
//! result. [`duration`] reads and writes durations as k6 does. The crate prints nothing and sees
//! neither arguments nor environment: the binary does.
//!
//! [`user`] is one user with its script, [`modules`] what the script can import, [`work`] joins users
//! with the engine. What users of a test share is its [`test::Test`].

pub mod aggregation;
pub mod archive;
pub mod blocked;
mod bodies;
mod counters;
mod definitions;
mod errors;
pub mod files;
pub mod metrics;
pub mod modules;
pub mod options;
pub mod out;
mod paths;
pub mod profile;
pub mod scenario;
pub mod secrets;
pub mod summary;
pub mod test;
mod test_progress;
pub mod threshold;
mod typescript;
pub mod unattributed_samples;
pub mod user;
pub mod values;
pub mod work;

pub use gake_go::duration;
pub use gake_script::Exception;
pub use gake_script::user::{Stacks, within};
pub use user::loader::not_on_disk;
