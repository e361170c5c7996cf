//! What tests of several crates need: the programs of other packages, an nginx, an allocator that
//! counts. Never a dependency of the product.

#![allow(clippy::unwrap_used, clippy::expect_used)] // all of it is test code

mod counting;
mod nginx;
mod once;
mod programs;

pub use counting::{Counting, allocations, live_bytes, peak_bytes, reset_peak, thread_counts};
pub use nginx::Nginx;
pub use once::{locked, once};
pub use programs::{PROGRAMS, Program, command, find, missing};
