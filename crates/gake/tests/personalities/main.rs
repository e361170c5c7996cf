//! gake as other tools, end to end.

#[path = "../common/mod.rs"]
mod common;
mod layout;

mod ab;
mod hey;
mod nighthawk;
mod oha;
mod vegeta;
mod wrk;
