//! The shadow proxy: clients are answered by the master, and other backends get a copy.
//!
//! [`exchange`] has what is known of one request when all backends are done with it; comparison
//! and recording are fed with it over a bounded channel, off the client's path.

pub mod compare;
pub mod exchange;
