//! One request apart from any load, with the client that loads use.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gake_core::clock::Clock;
use gake_core::record::{End, Fault};
use gake_core::schedule::Slice;
use gake_engine::RunClock;
use gake_wire::{Client, ClientSettings, Deadline, HttpRequest, Network, Resolver, TlsOptions};
use tokio::runtime::{Builder, LocalOptions};

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleAnswer {
    /// The status.
    pub status: u16,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body, or its beginning.
    pub body: Vec<u8>,
    /// Whether that is all of the body.
    pub is_whole: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The exchange failed.
    #[error("{0}")]
    Fault(Fault),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

/// Sends a request and waits for the answer, but no longer than `patience`. Redirects are not
/// followed. Of the body, `body_max` bytes are kept.
///
/// # Errors
/// When there is no answer.
pub fn send_once(
    request: &HttpRequest,
    body_max: usize,
    patience: Duration,
) -> Result<SingleAnswer, NoAnswer> {
    let send = || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .map_err(|error| NoAnswer::Other(error.to_string()))?;
        runtime.block_on(send(request, body_max, patience))
    };
    // A thread of its own: the caller's may have a runtime already.
    thread::scope(|scope| {
        let panicked = || NoAnswer::Other("the request panicked".to_owned());
        scope.spawn(send).join().unwrap_or_else(|_| Err(panicked()))
    })
}

async fn send(
    request: &HttpRequest,
    body_max: usize,
    patience: Duration,
) -> Result<SingleAnswer, NoAnswer> {
    let (resolver, tls) = (Resolver::default(), TlsOptions::default());
    let network = Network::new(&resolver, &tls, ClientSettings::default());
    let mut network = network.map_err(|error| NoAnswer::Other(error.to_string()))?;
    let request = network.prepare(request).map_err(|error| NoAnswer::Other(error.to_string()))?;
    let clock = RunClock::starting_in(0);
    let client = Client::new(Arc::new(network), Slice::WHOLE, clock.clone());
    let deadline = Deadline::within(clock.now(), patience);
    let (exchange, kept) = client.send(&request, deadline, body_max).await;
    match exchange.end {
        End::Answered(answer) => Ok(SingleAnswer {
            status: answer.status,
            headers: kept.headers,
            is_whole: answer.body_bytes <= body_max as u64,
            body: kept.body,
        }),
        End::Fault(fault) => Err(NoAnswer::Fault(fault)),
        End::Unfinished => Err(NoAnswer::Other("there is no answer".to_owned())),
    }
}
