//! Runs of k6 scripts: what a script does is what a server sees and what is recorded.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod http;
mod lifecycle;
mod remote_users;
mod support;
