//! A named case for each rule of RFC 9112, and properties that hold for any split.

mod bounds;
mod generate;
mod harness;
mod lenient;
mod requests;
mod rules;
mod splits;
mod state;
