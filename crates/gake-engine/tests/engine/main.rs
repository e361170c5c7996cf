//! The engine with works that are known exactly: no sockets, real time.
//!
//! Bounds are counts, or times that a busy machine can only lengthen.

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
