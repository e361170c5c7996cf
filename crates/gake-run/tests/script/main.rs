//! Runs of k6 scripts: requests reach the server, and samples are recorded.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod http;
mod lifecycle;
mod remote_users;
mod support;
