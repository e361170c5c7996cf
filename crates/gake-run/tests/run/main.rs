//! Runs as a library: the server sees what the spec describes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod calls;
mod example;
mod inputs;
mod orders;
mod scenarios;
mod search;
mod sinks;
mod support;
mod works;
