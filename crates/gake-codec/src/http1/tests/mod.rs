//! The rules of RFC 9112, one named case each, and the properties that hold for any split.

mod bounds;
mod generate;
mod harness;
mod lenient;
mod requests;
mod rules;
mod splits;
mod state;
