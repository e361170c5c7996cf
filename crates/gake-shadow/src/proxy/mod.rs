//! The client's path: one accept loop a core, and nothing on it that waits for a shadow.
//!
//! A plain request goes through as bytes ([`direct`]), any other as parts ([`service`]).

mod accept;
mod answer;
pub(crate) mod answer_bytes;
mod ask;
mod choice;
mod client;
mod client_body;
mod client_request;
mod congestion;
mod connection;
mod date;
mod direct;
pub(crate) mod edits;
mod exchange;
pub(crate) mod fault;
mod forwarded;
mod gather;
pub(crate) mod headers;
mod http2;
mod http2_request;
mod inbound;
pub(crate) mod intake;
pub(crate) mod link;
mod loops;
mod near;
pub(crate) mod opening;
mod outflow;
mod parts;
mod pieces;
mod pool;
mod race;
mod refusal;
mod request_body;
mod request_writer;
pub(crate) mod send_body;
mod service;
pub(crate) mod shared;
pub(crate) mod shared_streams;
pub(crate) mod start;
pub(crate) mod stream;
pub(crate) mod target;
mod transaction;
mod tunnel;
mod turns;
mod upload;
pub(crate) mod upstream;
mod upstream_http1;
pub(crate) mod watch;
mod watched;
pub(crate) mod worker;

pub use shared::ProxyStats;
pub use start::{Proxy, ProxyStartError, RunningProxy};
