//! Fires arrivals without an engine, on a real clock and a worker's runtime.

use std::time::{Duration, Instant};

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos};
use gake_core::plan::Timeouts;
use gake_core::record::{Counts, Exchange, ExchangeEnd, Fault, ResponseSummary, Tally};
use gake_core::schedule::Slice;
use gake_core::work::{Factory, Gauges};
use gake_wire::{
    ClientSettings, HttpFactory, HttpRequest, HttpWork, PreparedRequests, Resolver, TlsOptions,
    WeightedRequest, WireError,
};

/// The longest wait of a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Nanos {
        crate::economy::READS.set(crate::economy::READS.get() + 1);
        self.0.elapsed().as_nanos() as Nanos
    }

    async fn sleep_until(&self, at: Nanos) {
        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(self.now()))).await;
    }
}

impl TestClock {
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

/// Runs a future on a new runtime, with a time-out.
pub fn on_runtime<T>(doing: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
    runtime.unwrap().block_on(async {
        tokio::time::timeout(PATIENCE, doing).await.expect("the test ran out of patience")
    })
}

pub struct Setup {
    pub requests: Vec<WeightedRequest>,
    pub resolver: Resolver,
    pub tls: TlsOptions,
    pub settings: ClientSettings,
}

pub fn request(method: &str, url: &str) -> WeightedRequest {
    HttpRequest::new(method, url).into()
}

impl Setup {
    pub fn get(url: impl AsRef<str>) -> Self {
        Self::of(vec![request("GET", url.as_ref())])
    }

    pub fn of(requests: Vec<WeightedRequest>) -> Self {
        Self {
            requests,
            resolver: Resolver::default(),
            tls: TlsOptions::default(),
            settings: ClientSettings {
                timeouts: Timeouts {
                    connect: Duration::from_secs(20),
                    first_byte: None,
                    total: Duration::from_secs(40),
                },
                connections: 10,
                ..ClientSettings::default()
            },
        }
    }

    pub fn post(url: impl AsRef<str>, body: impl Into<Vec<u8>>) -> Self {
        let body = Some(Arc::from(body.into()));
        let request = HttpRequest { body, ..HttpRequest::new("POST", url.as_ref()) };
        Self::of(vec![request.into()])
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn prepare(&self) -> Result<PreparedRequests, WireError> {
        let requests = self.requests.iter().cloned().collect();
        PreparedRequests::prepare(&requests, &self.resolver, &self.tls, self.settings.clone())
    }

    /// Runs `doing` with a client on a new runtime.
    pub fn run<T>(self, doing: impl AsyncFnOnce(&Client) -> T) -> T {
        let wire = Arc::new(self.prepare().unwrap());
        on_runtime(async {
            let client = Client::new(wire);
            doing(&client).await
        })
    }

    /// As `run`, with the labels numbered within the shared list `labels`.
    pub fn run_with_labels<T>(
        self,
        labels: &mut Vec<String>,
        doing: impl AsyncFnOnce(&Client) -> T,
    ) -> T {
        let mut wire = self.prepare().unwrap();
        wire.number_labels(labels);
        on_runtime(async { doing(&Client::new(Arc::new(wire))).await })
    }

    /// Fires once.
    pub fn fire(self) -> Exchange {
        self.run(async |client| client.lane().fire().await)
    }

    /// The fault of one arrival.
    pub fn fault(self) -> Fault {
        fault_of(&self.fire())
    }
}

pub struct Client {
    factory: HttpFactory<TestClock>,
    pub clock: TestClock,
    next: Cell<u64>,
    tally: RefCell<Tally>,
}

impl Client {
    fn new(wire: Arc<PreparedRequests>) -> Self {
        let clock = TestClock::new();
        let factory = HttpFactory::new(wire, Slice::WHOLE, clock);
        factory.begin();
        Self { factory, clock, next: Cell::new(0), tally: RefCell::default() }
    }

    pub fn lane(&self) -> Lane<'_> {
        Lane { work: self.factory.work(0), client: self }
    }

    pub fn clock_millis(&self) -> u64 {
        millis(self.clock.now())
    }

    /// Counts since the start.
    pub fn counts(&self) -> Counts {
        self.gauges();
        self.tally.borrow().counts
    }

    pub fn gauges(&self) -> Gauges {
        self.factory.observe(&mut self.tally.borrow_mut())
    }

    /// Ends the run for idle connections.
    pub fn finish(&self) {
        self.factory.finish();
    }

    /// Waits until a condition holds.
    pub async fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE / 2, "never came true: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub struct Lane<'a> {
    work: HttpWork<TestClock>,
    client: &'a Client,
}

impl Lane<'_> {
    pub async fn fire(&mut self) -> Exchange {
        let now = self.client.clock.now();
        let number = self.client.next.replace(self.client.next.get() + 1);
        let exchange = self.work.send(number, now).await.expect("there is a request");
        check(&exchange, now);
        exchange
    }

    /// The size of a user's work.
    pub fn work_bytes(&self) -> usize {
        size_of_val(&self.work)
    }

    /// The size of the future of a request.
    pub fn request_bytes(&mut self) -> usize {
        let now = self.client.clock.now();
        size_of_val(&self.work.send(0, now))
    }

    /// Whether the feed is at its end.
    pub async fn is_exhausted(&mut self) -> bool {
        let number = self.client.next.get();
        self.work.send(number, self.client.clock.now()).await.is_none()
    }

    /// Fires `times` times, and expects 200, or 101 from a WebSocket.
    pub async fn fire_ok(&mut self, times: usize) {
        for _ in 0..times {
            let exchange = self.fire().await;
            assert!(matches!(status_of(&exchange), 200 | 101), "{exchange:?}");
        }
    }

    /// Fires, and abandons the exchange when a condition holds.
    pub async fn abandon_when(
        &mut self,
        what: &str,
        is_so: impl FnMut(&Client) -> bool,
    ) -> Exchange {
        let client = self.client;
        let now = client.clock.now();
        let number = client.next.replace(client.next.get() + 1);
        tokio::select! {
            biased;
            exchange = self.work.send(number, now) => panic!("{exchange:?}"),
            () = client.until(what, is_so) => {}
        }
        let exchange = self.work.interrupt();
        check(&exchange, now);
        exchange
    }
}

/// Invariants of every exchange.
fn check(exchange: &Exchange, fired: Nanos) {
    assert!(exchange.write >= fired, "{exchange:?}");
    assert!(exchange.done >= exchange.write, "{exchange:?}");
    if let Some(first) = exchange.first_byte {
        assert!(first >= exchange.write && first <= exchange.done, "{exchange:?}");
        assert!(exchange.bytes_in > 0, "{exchange:?}");
    }
    if exchange.bytes_out == 0 {
        assert!(!exchange.written && exchange.write == exchange.done, "{exchange:?}");
    }
}

pub fn status_of(exchange: &Exchange) -> u16 {
    match exchange.end {
        ExchangeEnd::Response(ResponseSummary { status, .. }) => status,
        end => panic!("{end:?}"),
    }
}

pub fn fault_of(exchange: &Exchange) -> Fault {
    match exchange.end {
        ExchangeEnd::Fault(fault) => fault,
        end => panic!("{end:?}"),
    }
}

pub fn millis(nanos: Nanos) -> u64 {
    nanos / 1_000_000
}
