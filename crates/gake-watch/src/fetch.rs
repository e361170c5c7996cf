//! Small GET requests on the wire that the load uses too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos};
use gake_core::plan::Timeouts;
use gake_core::record::End;
use gake_core::work::{Arrival, Factory, Work};
use gake_wire::http1::Limits;
use gake_wire::http1::request::Version;
use gake_wire::{Ask, HttpFactory, HttpWork, Keep, Resolver, Settings, Sources, TlsOptions, Wire};

/// How long an answer may take: less than the time between two samples.
const TIMEOUT: Duration = Duration::from_millis(900);

/// Bytes of an answer read at most: node_exporter's is some 100 KiB.
const BODY_MAX: usize = 8 << 20;

#[derive(Debug, Clone, Copy)]
struct Since(Instant);

impl Clock for Since {
    fn now(&self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}

/// GETs URLs again and again, on a connection that is kept.
#[derive(Debug)]
pub(crate) struct Fetch {
    clock: Since,
    work: HttpWork<Since>,
}

impl Fetch {
    /// Resolves the URLs. Blocks for names; to be called on a local runtime.
    pub(crate) fn new(urls: &[String]) -> Result<Self, String> {
        let asks: Vec<_> = urls
            .iter()
            .map(|url| Ask {
                method: "GET".to_owned(),
                url: url.clone(),
                headers: vec![("Accept".to_owned(), "text/plain, application/json".to_owned())],
                body: None,
                label: None,
                weight: 1,
            })
            .collect();
        let settings = Settings {
            timeouts: Timeouts { connect: TIMEOUT, first_byte: None, total: TIMEOUT },
            keepalive: true,
            pooled: false,
            connections: 1,
            idle_connections: 0,
            connect_rate: None,
            sources: Sources::default(),
            limits: Limits::default(),
            max_redirects: 0,
            keep: Some(Keep { answers: u64::MAX, body_bytes: BODY_MAX }),
            max_idle: None,
            feed: None,
            version: Version::Http11,
        };
        let wire = Wire::prepare(&asks, &Resolver::default(), &TlsOptions::default(), settings)
            .map_err(|error| error.to_string())?;
        let clock = Since(Instant::now());
        let factory = HttpFactory::new(Arc::new(wire), 0, 1, clock);
        factory.begin();
        Ok(Self { clock, work: factory.work(0) })
    }

    /// The body of a 2xx answer of the URL `number`.
    pub(crate) async fn get(&mut self, number: usize) -> Result<String, String> {
        let now = self.clock.now();
        let arrival = Arrival { number: number as u64, due: now };
        let exchange = self.work.fire(arrival, now).await;
        let answer = match exchange.end {
            End::Answered(answer) => answer,
            End::Fault(fault) => return Err(fault.to_string()),
            End::Unfinished | End::NothingToSend => return Err("no answer".to_owned()),
        };
        if !(200..300).contains(&answer.status) {
            return Err(format!("it answers {}", answer.status));
        }
        if answer.body_bytes > BODY_MAX as u64 {
            return Err(format!("its answer has {} bytes", answer.body_bytes));
        }
        let body = exchange.kept.map(|kept| kept.body).unwrap_or_default();
        String::from_utf8(body).map_err(|_| "its answer is no text".to_owned())
    }
}
