//! Runs as a library: what a spec says is what a server sees.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod example;
mod inputs;
mod orders;
mod scenarios;
mod search;
mod sinks;
mod support;
mod works;
