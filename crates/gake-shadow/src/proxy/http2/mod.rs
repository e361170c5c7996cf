//! HTTP/2 to clients and backends, on the crate h2.

pub(crate) mod connection;
pub(crate) mod intake;
pub(crate) mod outflow;
pub(crate) mod read_budget;
pub(crate) mod request;
pub(crate) mod shared_streams;
pub(crate) mod status_watch;
