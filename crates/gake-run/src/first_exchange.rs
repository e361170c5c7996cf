//! The first request of a run, sent once, to be looked at.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gake_core::clock::Clock;
use gake_core::record::{CapturedResponse, Exchange};
use gake_core::schedule::Slice;
use gake_engine::RunClock;
use gake_wire::{Client, Deadline, PreparedRequests};
use tokio::runtime::{Builder, LocalOptions};

use crate::ResolvedRun;

/// Bytes kept of the response.
const BODY_MAX: usize = 1 << 20;

/// A request and its response.
#[derive(Debug)]
pub struct FirstExchange {
    /// The request as it is written over HTTP/1.1.
    pub request: Vec<u8>,
    /// Its times and its end.
    pub exchange: Exchange,
    /// The response: the last one, after redirects.
    pub response: CapturedResponse,
}

/// Sends the first request of a run, by the run's own client settings. `None` if the run has none
/// before it starts, as that of a script; the error says why it could not be sent.
pub fn send_first(run: &ResolvedRun, patience: Duration) -> Option<Result<FirstExchange, String>> {
    let wire = run.wires.iter().find(|wire| wire.first().is_some())?;
    let send = || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .map_err(|error| error.to_string())?;
        runtime.block_on(send(wire, patience)).ok_or_else(|| "there is no request".to_owned())
    };
    // On its own thread, since the caller's may already have a runtime.
    Some(thread::scope(|scope| {
        scope.spawn(send).join().unwrap_or_else(|_| Err("the request panicked".to_owned()))
    }))
}

async fn send(wire: &PreparedRequests, patience: Duration) -> Option<FirstExchange> {
    let request = wire.first()?;
    let clock = RunClock::starting_in(0);
    let client = Client::new(Arc::clone(&wire.network), Slice::WHOLE, clock.clone());
    let deadline = Deadline::within(clock.now(), patience);
    let (exchange, response) = client.send(request, deadline, BODY_MAX).await;
    Some(FirstExchange { request: request.as_http1(), exchange, response })
}
