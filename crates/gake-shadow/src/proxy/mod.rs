//! The client's path: one accept loop a core, and nothing on it that waits for a shadow.
//!
//! A plain request goes through as bytes ([`direct`]), any other as parts ([`service`]).

mod answer;
pub(crate) mod answer_bytes;
mod ask;
mod choice;
mod client;
mod congestion;
mod date;
mod direct;
pub(crate) mod fault;
mod forwarded;
mod gather;
mod guard;
pub(crate) mod headers;
mod http2;
mod inbound;
pub(crate) mod link;
mod loops;
mod near;
pub(crate) mod opening;
mod plain;
mod pool;
mod race;
mod refusal;
pub(crate) mod send_body;
mod service;
pub(crate) mod shared;
pub(crate) mod shared_streams;
pub(crate) mod start;
pub(crate) mod stream;
pub(crate) mod target;
mod transaction;
mod tunnel;
mod upload;
pub(crate) mod upstream;
pub(crate) mod watch;
pub(crate) mod worker;

pub use shared::ProxyStats;
pub use start::{Proxy, ProxyStartError, ProxySummary, RunningProxy};
