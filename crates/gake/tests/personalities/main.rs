//! gake as other tools, end to end.

#[path = "../common/mod.rs"]
mod common;

mod wrk;
