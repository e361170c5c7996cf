//! gake as other tools, end to end.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod common;
mod layout;

mod ab;
mod h2load;
mod hey;
mod k6;
mod nighthawk;
mod oha;
mod vegeta;
mod wrk;
