//! The engine with synthetic work: no sockets, real time. Assertions are on counts, or on times
//! that a busy machine can only lengthen.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod bounds;
mod counts;
mod ends;
mod iterations;
mod joined;
mod logs;
mod scenarios;
mod support;
mod truth;
