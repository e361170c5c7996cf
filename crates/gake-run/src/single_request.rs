//! Single requests outside of a load, with the same client.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gake_core::clock::Clock;
use gake_core::record::{ExchangeEnd, Fault};
use gake_core::schedule::Slice;
use gake_engine::RunClock;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, ProxyRules, Resolver, TlsOptions,
    WireError,
};
use tokio::runtime::{Builder, LocalOptions};

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleResponse {
    /// The status.
    pub status: u16,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body, or the beginning of one that is longer than the limit.
    pub body: Vec<u8>,
    /// Whether the body is complete.
    pub is_whole: bool,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The exchange failed.
    #[error("{0}")]
    Fault(Fault),
    /// The host has no address.
    #[error("{0}")]
    Unresolved(String),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

/// Sends a request and waits for the response, at most `patience`. Redirects are not followed. The
/// first `body_max` bytes of the body are kept.
///
/// # Errors
/// When there is no response.
pub fn send_once(
    request: &HttpRequest,
    proxy: Option<&ProxyRules>,
    body_max: usize,
    patience: Duration,
) -> Result<SingleResponse, SendError> {
    let send = || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .map_err(|error| SendError::Other(error.to_string()))?;
        runtime.block_on(send((request, proxy), body_max, patience))
    };
    // On its own thread, since the caller's may already have a runtime.
    thread::scope(|scope| {
        let panicked = || SendError::Other("the request panicked".to_owned());
        scope.spawn(send).join().unwrap_or_else(|_| Err(panicked()))
    })
}

async fn send(
    (request, proxy): (&HttpRequest, Option<&ProxyRules>),
    body_max: usize,
    patience: Duration,
) -> Result<SingleResponse, SendError> {
    let mut resolver = Resolver::default();
    resolver.proxy = proxy.cloned();
    let tls = TlsOptions::default();
    let network = Network::new(&resolver, &tls, ClientSettings::default());
    let mut network = network.map_err(|error| SendError::Other(error.to_string()))?;
    let request = network.prepare(request).map_err(|error| match error {
        WireError::Resolve(error) => SendError::Unresolved(error.to_string()),
        error => SendError::Other(error.to_string()),
    })?;
    let clock = RunClock::starting_in(0);
    let client = Client::new(Arc::new(network), Slice::WHOLE, clock.clone());
    let deadline = Deadline::within(clock.now(), patience);
    let (exchange, kept) = client.send(&request, deadline, body_max).await;
    match exchange.end {
        ExchangeEnd::Response(answer) => Ok(SingleResponse {
            status: answer.status,
            headers: kept.headers,
            is_whole: answer.body_bytes <= body_max as u64,
            body: kept.body,
        }),
        ExchangeEnd::Fault(fault) => Err(SendError::Fault(fault)),
        ExchangeEnd::Unfinished => Err(SendError::Other("there is no response".to_owned())),
    }
}
