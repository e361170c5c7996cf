//! k6's scripts on gake's engine: what a script may say, and what k6 would print of the run.
//!
//! [`options`] says what is to be run, [`threshold`] what is demanded of it, [`summary`] what came
//! of it. [`duration`] reads and writes durations as k6 does. The crate prints nothing and sees neither
//! arguments nor environment: the binary does.

pub mod aggregation;
pub mod duration;
pub mod options;
pub mod out;
pub mod summary;
pub mod threshold;
pub mod values;
