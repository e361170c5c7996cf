//! k6's scripts on gake's engine: what a script may say, and what k6 would print of the run.
//!
//! [`duration`] reads and writes durations as k6 does. The crate prints nothing and sees neither
//! arguments nor environment: the binary does.

pub mod duration;
