//! `gake shadow` as its users start it, between real clients and real backends.
//!
//! Tests assert counts, and only times that a busy machine cannot reverse.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod support;

#[path = "../../../gake-text/src/redact/tests/canaries.rs"]
mod canaries;

mod backends;
mod compare;
mod escapes;
mod grpc;
mod isolation;
mod planted;
mod proxy;
mod record;
mod replay;
mod script;
mod secrets;
