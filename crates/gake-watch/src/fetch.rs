//! Small GET requests with the same client as the load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::ExchangeEnd;
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, PreparedRequest, Resolver, TlsOptions,
};

use crate::level::PATIENCE;

/// Maximum bytes of a response: node_exporter's has about 100 KiB.
const BODY_MAX: usize = 8 << 20;

#[derive(Debug, Clone, Copy)]
struct SteadyClock(Instant);

impl Clock for SteadyClock {
    fn now(&self) -> Nanos {
        nanos(self.0.elapsed())
    }

    async fn sleep_until(&self, at: Nanos) {
        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(self.now()))).await;
    }
}

#[derive(Debug)]
pub(crate) struct Fetch {
    client: Client<SteadyClock>,
    requests: Vec<PreparedRequest>,
}

impl Fetch {
    /// Resolves the URLs; blocks on DNS.
    pub(crate) fn new(urls: &[String]) -> Result<Self, String> {
        let mut network =
            Network::new(&Resolver::default(), &TlsOptions::default(), ClientSettings::default())
                .map_err(|error| error.to_string())?;
        let mut prepare = |url: &String| {
            let accept = ("Accept".to_owned(), "text/plain, application/json".to_owned());
            let get = HttpRequest { headers: vec![accept], ..HttpRequest::new("GET", url) };
            network.prepare(&get).map_err(|error| error.to_string())
        };
        let requests = urls.iter().map(&mut prepare).collect::<Result<_, _>>()?;
        let clock = SteadyClock(Instant::now());
        Ok(Self { client: Client::new(Arc::new(network), Slice::WHOLE, clock), requests })
    }

    /// The body of a 2xx response from the URL `number`.
    pub(crate) async fn get(&self, number: usize) -> Result<String, String> {
        let deadline = Deadline::within(self.client.clock().now(), PATIENCE);
        let (exchange, capture) =
            self.client.send(&self.requests[number], deadline, BODY_MAX).await;
        let response = match exchange.end {
            ExchangeEnd::Response(response) => response,
            ExchangeEnd::Fault(fault) => return Err(fault.to_string()),
            ExchangeEnd::Unfinished => return Err("no response".to_owned()),
        };
        if !(200..300).contains(&response.status) {
            return Err(format!("status {}", response.status));
        }
        if response.body_bytes > BODY_MAX as u64 {
            return Err(format!("its response has {} bytes", response.body_bytes));
        }
        String::from_utf8(capture.body).map_err(|_| "its response is not text".to_owned())
    }
}
