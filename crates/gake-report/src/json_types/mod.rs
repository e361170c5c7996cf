//! The serialised forms of core's types, where a format differs from their exact encoding.

pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod watched;
