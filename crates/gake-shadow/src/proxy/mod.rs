//! The client's path: one accept loop a core, and nothing on it that waits for a shadow.

mod answer;
mod ask;
mod choice;
mod client;
pub(crate) mod fault;
mod forwarded;
mod gather;
mod guard;
pub(crate) mod headers;
mod inbound;
mod loops;
pub(crate) mod opening;
mod pool;
mod race;
mod refusal;
pub(crate) mod send_body;
mod service;
pub(crate) mod shared;
pub(crate) mod start;
mod stream;
pub(crate) mod target;
mod tunnel;
pub(crate) mod upstream;
pub(crate) mod watch;
pub(crate) mod worker;

pub use shared::ProxyStats;
pub use start::{Proxy, ProxyStartError, ProxySummary, RunningProxy};
