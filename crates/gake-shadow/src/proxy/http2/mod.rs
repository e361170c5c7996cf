//! HTTP/2, to either side: on the crate h2, whose streams are read as soon as something comes.

pub(crate) mod connection;
pub(crate) mod intake;
pub(crate) mod outflow;
pub(crate) mod read_budget;
pub(crate) mod request;
pub(crate) mod shared_streams;
