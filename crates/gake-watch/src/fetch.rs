//! Small GET requests with the client that the load uses too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::End;
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, PreparedRequest, Resolver, TlsOptions,
};

use crate::level::PATIENCE;

/// Bytes of an answer read at most: node_exporter's is some 100 KiB.
const BODY_MAX: usize = 8 << 20;

#[derive(Debug, Clone, Copy)]
struct Since(Instant);

impl Clock for Since {
    fn now(&self) -> Nanos {
        nanos(self.0.elapsed())
    }

    async fn sleep_until(&self, at: Nanos) {
        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(self.now()))).await;
    }
}

/// GETs URLs again and again, on connections that are kept.
#[derive(Debug)]
pub(crate) struct Fetch {
    client: Client<Since>,
    requests: Vec<PreparedRequest>,
}

impl Fetch {
    /// Resolves the URLs. Blocks for names.
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
        let clock = Since(Instant::now());
        Ok(Self { client: Client::new(Arc::new(network), Slice::WHOLE, clock), requests })
    }

    /// The body of a 2xx answer of the URL `number`.
    pub(crate) async fn get(&self, number: usize) -> Result<String, String> {
        let deadline = Deadline::within(self.client.clock().now(), PATIENCE);
        let (exchange, kept) = self.client.send(&self.requests[number], deadline, BODY_MAX).await;
        let answer = match exchange.end {
            End::Answered(answer) => answer,
            End::Fault(fault) => return Err(fault.to_string()),
            End::Unfinished => return Err("no answer".to_owned()),
        };
        if !(200..300).contains(&answer.status) {
            return Err(format!("it answers {}", answer.status));
        }
        if answer.body_bytes > BODY_MAX as u64 {
            return Err(format!("its answer has {} bytes", answer.body_bytes));
        }
        String::from_utf8(kept.body).map_err(|_| "its answer is not text".to_owned())
    }
}
