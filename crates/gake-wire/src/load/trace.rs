//! Traces: a share of the requests carries a trace id (W3C Trace Context), under which the target's
//! own traces are found, and leaves a span.
//!
//! A request that is not sampled costs one random number. The samples per second and the backlog of
//! spans are bounded.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use gake_core::clock::{Nanos, SECOND};
use gake_core::random::random_number;
use gake_core::record::{Exchange, ExchangeEnd};
use gake_core::schedule::Slice;
use gake_core::work::Iteration;

use crate::client::network::Network;
use crate::load::feed::LabelledRequest;

/// Maximum sampled requests per second, over all scenarios and workers.
const SAMPLED_A_SECOND: usize = 1_000;

/// Maximum backlog of spans.
const SPANS_WAITING: usize = 10_000;

const HEADER: &str = "traceparent";

/// The span of a request. Its instants are on the run's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpan {
    /// The id of the trace; never 0.
    pub trace: [u8; 16],
    /// The id of this span, the parent of the target's spans; never 0.
    pub id: [u8; 8],
    /// The number of the arrival.
    pub number: u64,
    /// When it was due.
    pub due: Nanos,
    /// When it was fired.
    pub fired: Nanos,
    /// When its first byte was written, if one was.
    pub write: Option<Nanos>,
    /// When it ended.
    pub done: Nanos,
    /// How it ended.
    pub end: ExchangeEnd,
    /// The method.
    pub method: String,
    /// The URL, without user and password.
    pub url: String,
    /// The host of the URL.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Samples the requests of a run.
#[derive(Debug)]
pub struct Tracer {
    /// Requests with a random number below this are sampled.
    below: u64,
    /// Random, so that the ids of two runs differ. Not secret.
    keys: [u64; 3],
    /// The number of scenarios that share the limit of samples per second.
    scenarios: usize,
    /// The samples so far, from which ids are derived.
    sampled: AtomicU64,
    receivers: Vec<(SyncSender<TraceSpan>, Arc<AtomicU64>)>,
}

/// Receives the spans of a [`Tracer`].
#[derive(Debug)]
pub struct SpanReceiver {
    receiver: Receiver<TraceSpan>,
    lost: Arc<AtomicU64>,
}

impl Tracer {
    /// Samples a `share` of all requests; `keys` are random.
    #[must_use]
    pub fn new(share: f64, keys: [u64; 3]) -> Self {
        // A float-to-integer cast saturates.
        let below = (share * u64::MAX as f64) as u64;
        Self { below, keys, scenarios: 1, sampled: AtomicU64::new(0), receivers: Vec::new() }
    }

    /// Divides the limit of samples per second among `scenarios`.
    #[must_use]
    pub fn across(self, scenarios: usize) -> Self {
        Self { scenarios: scenarios.max(1), ..self }
    }

    /// Adds a receiver of all spans.
    pub fn subscribe(&mut self) -> SpanReceiver {
        let (sender, receiver) = sync_channel(SPANS_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        self.receivers.push((sender, Arc::clone(&lost)));
        SpanReceiver { receiver, lost }
    }

    #[inline]
    fn samples(&self, number: u64) -> bool {
        random_number(self.keys[0], number) < self.below
    }

    /// The ids of the next sampled request.
    fn ids(&self) -> ([u8; 16], [u8; 8]) {
        let number = self.sampled.fetch_add(1, Relaxed);
        // An id of zeros is invalid.
        let random = |key: usize| random_number(self.keys[key], number).max(1).to_be_bytes();
        let mut trace = [0; 16];
        trace[..8].copy_from_slice(&random(0));
        trace[8..].copy_from_slice(&random(1));
        (trace, random(2))
    }

    fn send(&self, span: &TraceSpan) {
        for (sender, lost) in &self.receivers {
            if sender.try_send(span.clone()).is_err() {
                lost.fetch_add(1, Relaxed);
            }
        }
    }
}

impl SpanReceiver {
    /// Takes the received spans, without waiting.
    pub fn take(&self) -> impl Iterator<Item = TraceSpan> {
        self.receiver.try_iter()
    }

    /// The number of spans dropped because the backlog was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct WorkerTracer {
    tracer: Arc<Tracer>,
    /// Maximum samples per second.
    most: u32,
    /// The second of the last sample, and the number of samples in it.
    second: Cell<Nanos>,
    count: Cell<u32>,
}

/// The span of a sampled request that has not ended.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    pub(crate) request: LabelledRequest,
    trace: [u8; 16],
    id: [u8; 8],
    number: u64,
    due: Nanos,
    fired: Nanos,
}

impl WorkerTracer {
    pub(crate) fn new(tracer: Arc<Tracer>, slice: Slice) -> Self {
        let most = slice.count(SAMPLED_A_SECOND / tracer.scenarios).max(1) as u32;
        Self { tracer, most, second: Cell::new(0), count: Cell::new(0) }
    }

    /// The span of an iteration, with its request, if it is sampled.
    #[inline]
    pub(crate) fn begin(
        &self,
        iteration: &Iteration<'_>,
        request: &LabelledRequest,
    ) -> Option<Box<OpenSpan>> {
        let is_sampled = self.tracer.samples(iteration.arrival.number);
        if is_sampled && self.has_room(iteration.fired) {
            self.open(iteration, request)
        } else {
            None
        }
    }

    /// Counts one more sample, and returns whether it is within the limit.
    fn has_room(&self, now: Nanos) -> bool {
        let second = now / SECOND;
        if self.second.replace(second) != second {
            self.count.set(0);
        }
        self.count.set(self.count.get().saturating_add(1));
        self.count.get() <= self.most
    }

    fn open(&self, iteration: &Iteration<'_>, request: &LabelledRequest) -> Option<Box<OpenSpan>> {
        let (trace, id) = self.tracer.ids();
        let value = format!("00-{}-{}-01", hex(&trace), hex(&id));
        // A request with its own `traceparent` keeps it.
        let label = request.label;
        let request =
            LabelledRequest { request: request.request.with_header(HEADER, &value)?, label };
        let (number, due) = (iteration.arrival.number, iteration.arrival.due);
        Some(Box::new(OpenSpan { request, trace, id, number, due, fired: iteration.fired }))
    }

    /// Sends the span of a sampled request that has ended.
    pub(crate) fn end(&self, open: &OpenSpan, exchange: &Exchange, network: &Network) {
        let request = &open.request.request;
        let Some(origin) = network.origins.get(request.origin as usize) else { return };
        let (method, target) = request.rendered.first_line();
        self.tracer.send(&TraceSpan {
            trace: open.trace,
            id: open.id,
            number: open.number,
            due: open.due,
            fired: open.fired,
            write: (exchange.bytes_out > 0).then_some(exchange.write),
            done: exchange.done,
            end: exchange.end,
            method: method.to_owned(),
            url: origin.url(target),
            host: origin.host().to_owned(),
            port: origin.port(),
        });
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use gake_core::plan::ExpectedStatus;
    use gake_core::record::Recorder;
    use gake_core::work::Arrival;

    use super::*;
    use crate::client::request::HttpRequest;
    use crate::client::settings::ClientSettings;
    use crate::load::prepared_requests::PreparedRequests;
    use crate::net::address::Resolver;
    use crate::tls::TlsOptions;
    use crate::tls::protocol::Protocol;

    fn wire(request: HttpRequest) -> PreparedRequests {
        let settings = ClientSettings { protocol: Protocol::Http2, ..ClientSettings::default() };
        let (resolver, tls) = (Resolver::default(), TlsOptions::default());
        let requests = [request.into()].into_iter().collect();
        PreparedRequests::prepare(&requests, &resolver, &tls, settings).unwrap()
    }

    fn recorder() -> Recorder {
        Recorder::new(ExpectedStatus::default(), 0, 0, None)
    }

    #[test]
    fn a_sampled_request_gains_the_trace_header() {
        let request = HttpRequest {
            headers: vec![("X-Own".to_owned(), "a".to_owned())],
            body: Some(Arc::from(&b"body"[..])),
            ..HttpRequest::new("POST", "http://127.0.0.1:1/a?b")
        };
        let wire = wire(request);
        let mut tracer = Tracer::new(1.0, [1, 2, 3]);
        let spans = tracer.subscribe();
        let worker = WorkerTracer::new(Arc::new(tracer), Slice::WHOLE);
        let recorder = recorder();
        let iteration = Iteration::new(Arrival { number: 7, due: 5 }, 0, 6, &recorder);
        let mut made = None;
        let plain = wire.request(7, &mut made);
        let open = worker.begin(&iteration, plain).unwrap();
        let first = |labelled: &LabelledRequest| {
            String::from_utf8(labelled.request.rendered.first.clone()).unwrap()
        };
        let (before, after) = (first(plain), first(&open.request));
        let (head, body) = before.split_once("\r\n\r\n").unwrap();
        worker.end(&open, &Exchange::unfinished(9), &wire.network);
        let span = spans.take().next().unwrap();
        let header = format!("traceparent: 00-{}-{}-01", hex(&span.trace), hex(&span.id));
        assert_eq!(after, format!("{head}\r\n{header}\r\n\r\n{body}"));
        let (http2, traced) = (&plain.request.http2, &open.request.request.http2);
        let grown = traced.as_ref().unwrap().bytes_max() - http2.as_ref().unwrap().bytes_max();
        // A literal with lengths of one byte each; the value is Huffman-coded.
        assert!((40..=4 + header.len()).contains(&grown), "{grown}");
        assert_eq!((span.number, span.due, span.fired, span.done), (7, 5, 6, 9));
        assert_eq!(span.write, None, "nothing was written");
        let url = ("POST", "http://127.0.0.1:1/a?b", "127.0.0.1", 1);
        assert_eq!((&*span.method, &*span.url, &*span.host, span.port), url);
    }

    #[test]
    fn samples_per_second_are_bounded_and_ids_are_unique() {
        let wire = wire(HttpRequest::new("GET", "http://127.0.0.1:1/"));
        let tracer = Arc::new(Tracer::new(1.0, [1, 2, 3]).across(5));
        let worker = WorkerTracer::new(tracer, Slice::new(1, 2));
        let recorder = recorder();
        let begin = |number, now| {
            let iteration = Iteration::new(Arrival { number, due: now }, 0, now, &recorder);
            worker.begin(&iteration, wire.request(number, &mut None))
        };
        let mut ids = HashSet::new();
        for second in 0..3 {
            let sampled = (0..2_000).filter_map(|number| begin(number, second * SECOND + number));
            let sampled: Vec<_> = sampled.map(|open| (open.trace, open.id)).collect();
            assert_eq!(sampled.len(), SAMPLED_A_SECOND / 10);
            ids.extend(sampled);
        }
        assert_eq!(ids.len(), 3 * SAMPLED_A_SECOND / 10);
    }

    #[test]
    fn a_share_is_sampled_and_lost_spans_are_counted() {
        let mut tracer = Tracer::new(0.1, [4, 5, 6]);
        let spans = tracer.subscribe();
        let sampled = (0..100_000).filter(|number| tracer.samples(*number)).count();
        // Five standard deviations of a binomial.
        assert!(sampled.abs_diff(10_000) < 475, "{sampled}");
        let none = Tracer::new(0.0, [4, 5, 6]);
        assert!(!(0..100_000).any(|number| none.samples(number)));
        let span = TraceSpan {
            trace: [1; 16],
            id: [1; 8],
            number: 0,
            due: 0,
            fired: 0,
            write: None,
            done: 0,
            end: ExchangeEnd::Unfinished,
            method: String::new(),
            url: String::new(),
            host: String::new(),
            port: 0,
        };
        (0..SPANS_WAITING + 3).for_each(|_| tracer.send(&span));
        assert_eq!((spans.take().count(), spans.lost()), (SPANS_WAITING, 3));
    }
}
