//! The shadow proxy: the master serves the clients, other backends get copies of the requests.
//!
//! A [`Proxy`] is built from a [`Config`](config::Config), optionally with [`hooks`], and runs on
//! its own threads until stopped. Finished [exchanges](exchange) go to comparison and recording
//! ([`Proxy::exchanges`]) over bounded queues, off the client's path.

mod admin;
mod background;
mod breaker;
mod coding;
mod collect;
pub mod compare;
pub mod config;
mod control;
pub mod exchange;
pub mod hooks;
mod message;
mod mirror;
mod proxy;
#[cfg(feature = "scripts")]
pub mod script_hooks;
pub mod traffic;

pub use collect::Exchanges;
pub use control::{NoSuchShadow, ProxyControl, ProxySummary, ShadowState};
pub use mirror::ledger::{Category, Ledger};
pub use proxy::{Proxy, ProxyStartError, ProxyStats, RunningProxy};
