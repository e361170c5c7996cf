//! The shadow proxy: clients are answered by the master, and other backends get a copy.
//!
//! A [`Proxy`] is made from a [`Config`](config::Config), with [`hooks`] if a program wants a say,
//! and runs on threads of its own until it is told to stop. [`exchange`] has what is known of one
//! request when all backends are done with it; comparison and recording listen to these
//! ([`Proxy::exchanges`]) over a bounded queue, off the client's path.

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
