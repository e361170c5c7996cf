//! The client's path: one accept loop a core, and nothing on it that waits for a shadow.
//!
//! A client's connection is served in [`client`]: most requests go to the master as bytes
//! ([`client::direct`]). Where a hook has a say, or client or master speak HTTP/2 ([`http2`]), their
//! bodies go in parts by way of [`exchange`]. [`upstream`] is the backends' side, [`policy`] the rules
//! for what passes.

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
