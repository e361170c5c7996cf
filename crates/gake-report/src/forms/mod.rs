//! The written forms of core's types: core does not serialise, formats do.

pub(crate) mod counts;
pub(crate) mod fault;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod watched;
