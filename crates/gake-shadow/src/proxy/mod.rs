//! The client's path: one accept loop per core, which never waits for a shadow.
//!
//! [`client`] serves the clients' connections. Most requests pass to the master as bytes
//! ([`client::direct`]). Those that hooks select or change, or that use HTTP/2 ([`http2`]) on either
//! side, pass as frames through [`exchange`]. [`upstream`] is the backends' side, [`policy`] decides
//! what passes.

mod accept;
mod body_frames;
pub(crate) mod client;
mod congestion;
pub(crate) mod deadline;
pub(crate) mod exchange;
pub(crate) mod http2;
pub(crate) mod policy;
mod start;
mod start_error;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod upstream;
pub(crate) mod worker;

pub use start::{Proxy, RunningProxy};
pub use start_error::ProxyStartError;
pub use state::ProxyStats;
