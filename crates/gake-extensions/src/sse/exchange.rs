//! The request for events, and its response as it comes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use flate2::write::GzDecoder;
use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, ExchangeEnd, Fault, ResponseSummary};
use gake_k6::user::dial::go_text;
use gake_k6::user::request_params::{NotPrepared, PreparedCall, RequestParams};
use gake_k6::user::vu::Vu;
use gake_script::user::HeapCharge;
use gake_wire::{ConnectionFacts, Deadline, ExchangeVisitor};
use rquickjs::Ctx;
use url::Url;

use super::events::{SseItem, SseReader};
use super::params::SseParams;

/// Redirects that Go's client follows.
const REDIRECTS_MAX: usize = 10;

/// The time-out of a response that may last for ever.
const NO_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What comes next.
pub(super) enum SseNext {
    Item(SseItem),
    /// The response has ended.
    End,
    /// The connection failed: Go's message.
    Failed(String),
    /// The events do not fit into the script's heap.
    NoMemory,
}

/// What has come of the response.
#[derive(Default)]
struct Received {
    status: u16,
    headers: Vec<(String, String)>,
    address: Option<String>,
    reader: SseReader,
    /// The decoder of a compressed body.
    gzip: Option<GzDecoder<Vec<u8>>>,
    body_bytes: u64,
    exchange: Option<Exchange>,
}

type Flight = Pin<Box<dyn Future<Output = ()>>>;

/// A request in flight.
pub(super) struct SseExchange {
    vu: Rc<Vu>,
    url: String,
    method: String,
    body: Option<Arc<[u8]>>,
    request: RequestParams,
    end: Nanos,
    start: Nanos,
    received: Rc<RefCell<Received>>,
    charge: HeapCharge,
    flight: Option<Flight>,
}

impl SseExchange {
    pub(super) fn new(ctx: &Ctx<'_>, vu: &Rc<Vu>, params: &SseParams) -> rquickjs::Result<Self> {
        let body = (!params.body.is_empty()).then(|| params.body.as_bytes().into());
        let start = vu.now();
        let timeout = params.timeout.unwrap_or(NO_TIMEOUT);
        Ok(Self {
            vu: Rc::clone(vu),
            url: params.url.clone(),
            method: params.method.clone(),
            body,
            request: params.request.clone(),
            end: start.saturating_add(gake_core::clock::nanos(timeout)),
            start,
            received: Rc::default(),
            charge: HeapCharge::new(ctx, params.body.len())?,
            flight: None,
        })
    }

    /// Sends the request, and waits for the head of the last response.
    pub(super) async fn open(&mut self) -> Result<(), String> {
        for _ in 0..=REDIRECTS_MAX {
            let url = Url::parse(&self.url).map_err(|error| format!("parse: {error}"))?;
            if !matches!(url.scheme(), "http" | "https") {
                let why = format!("unsupported protocol scheme {:?}", url.scheme());
                return Err(self.failed(&why));
            }
            self.send(&url).await?;
            self.request.keep_cookies(&self.received.borrow().headers, &url);
            let Some(next) = self.redirect(&url) else { return Ok(()) };
            self.finish();
            self.follow(&url, &next);
        }
        Err(format!("stopped after {REDIRECTS_MAX} redirects"))
    }

    /// Sends one request, and waits for the head of its response.
    async fn send(&mut self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let address = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let body = self.body.clone();
        let call = self.request.prepare(&self.vu, &self.method, (url, &self.url), body).await;
        let call = Rc::new(call.map_err(|why| match why {
            NotPrepared::Refused(why) => self.failed(&why),
            NotPrepared::Fault(fault) => self.failed(&go_text(fault, &host, &address)),
        })?);
        self.received = Rc::default();
        let (received, now, end) = (Rc::clone(&self.received), self.vu.now(), self.end);
        self.flight = Some(Box::pin(fly(Rc::clone(&call), received, now, end)));
        let is_open = poll_fn(|cx| {
            let polled = self.flight.as_mut().map(|flight| flight.as_mut().poll(cx));
            if matches!(polled, Some(Poll::Ready(()))) {
                self.flight = None;
            }
            match (self.received.borrow().status, &self.flight) {
                (0, Some(_)) => Poll::Pending,
                (status, _) => Poll::Ready(status > 0),
            }
        });
        match is_open.await {
            true => Ok(()),
            false => Err(self.failed(&go_text(self.fault(), &host, &address))),
        }
    }

    /// Go's message for a request that failed.
    fn failed(&self, why: &str) -> String {
        let method = &self.method;
        let (first, rest) = method.split_at_checked(1).unwrap_or(("", method));
        format!("{}{} {:?}: {why}", first, rest.to_lowercase(), self.url)
    }

    /// The fault that ended the exchange.
    fn fault(&self) -> Fault {
        match self.received.borrow().exchange.as_ref().map(|exchange| exchange.end) {
            Some(ExchangeEnd::Fault(fault)) => fault,
            _ => Fault::ConnectReset,
        }
    }

    /// Where the response redirects to.
    fn redirect(&self, url: &Url) -> Option<Url> {
        let received = self.received.borrow();
        if !matches!(received.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = received.headers.iter().find(|(name, _)| name == "Location")?;
        url.join(&location.1).ok()
    }

    fn follow(&mut self, from: &Url, to: &Url) {
        if self.received.borrow().status <= 303 {
            self.body = None;
            if self.method != "HEAD" {
                "GET".clone_into(&mut self.method);
            }
        }
        if from.host_str() != to.host_str() {
            // Secrets are for the first host only.
            self.request
                .headers
                .retain(|(name, _)| !matches!(name.as_str(), "Authorization" | "Cookie"));
        }
        self.url = to.as_str().to_owned();
    }

    /// The next item of the response.
    pub(super) async fn next(&mut self) -> SseNext {
        loop {
            let item = self.received.borrow_mut().reader.next();
            if let Some(item) = item {
                return SseNext::Item(item);
            }
            let Some(flight) = &mut self.flight else { return self.end() };
            let received = Rc::clone(&self.received);
            let is_over = poll_fn(|cx| match flight.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if received.borrow().reader.has_items() => Poll::Ready(false),
                Poll::Pending => match self.charge.resize(received.borrow().reader.held()) {
                    true => Poll::Pending,
                    false => Poll::Ready(false),
                },
            });
            if is_over.await {
                self.flight = None;
            }
            if !self.charge.resize(self.received.borrow().reader.held()) {
                return SseNext::NoMemory;
            }
        }
    }

    /// How the response ended.
    fn end(&self) -> SseNext {
        match self.received.borrow().exchange.as_ref().map(|exchange| exchange.end) {
            Some(ExchangeEnd::Fault(Fault::Timeout(_))) => SseNext::Failed(
                "context deadline exceeded (Client.Timeout or context cancellation while reading \
                 body)"
                    .to_owned(),
            ),
            Some(ExchangeEnd::Fault(Fault::ClosedEarly(_))) => {
                SseNext::Failed("unexpected EOF".to_owned())
            }
            Some(ExchangeEnd::Fault(fault)) => SseNext::Failed(fault.to_string()),
            _ => SseNext::End,
        }
    }

    /// Ends the exchange, and records it.
    pub(super) fn finish(&mut self) {
        // Ends the connection if the response is not complete.
        self.flight = None;
        let mut received = self.received.borrow_mut();
        let Some(mut exchange) = received.exchange.take() else { return };
        if exchange.end == ExchangeEnd::Unfinished && received.status > 0 {
            // Closed by the script.
            exchange.done = self.vu.now();
            exchange.end = ExchangeEnd::Response(ResponseSummary {
                status: received.status,
                body_bytes: received.body_bytes,
            });
        }
        self.vu.count_traffic(exchange.bytes_out, exchange.bytes_in);
        self.vu.pending.exchange(self.start, exchange);
    }

    /// The status of the response.
    pub(super) fn status(&self) -> u16 {
        self.received.borrow().status
    }

    /// The headers of the response.
    pub(super) fn headers(&self) -> BTreeMap<String, String> {
        let mut joined: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &self.received.borrow().headers {
            let known = joined.entry(name.clone());
            known.and_modify(|all| *all = format!("{all}, {value}")).or_insert(value.clone());
        }
        joined
    }

    /// The tags of its samples.
    pub(super) fn tags(&self, params: &SseParams) -> Vec<(String, String)> {
        let received = self.received.borrow();
        let status = (received.status > 0).then(|| received.status.to_string());
        let system = [
            ("url", Some(params.url.clone())),
            ("ip", received.address.clone()),
            ("status", status),
        ];
        let test = &self.vu.test;
        let known = system.into_iter().filter(|(name, _)| test.has_system_tag(name));
        let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        self.request.tags.iter().cloned().chain(known).collect()
    }
}

/// Sends a request and takes its response.
async fn fly(call: Rc<PreparedCall>, received: Rc<RefCell<Received>>, now: Nanos, end: Nanos) {
    let PreparedCall { client, prepared, .. } = &*call;
    let timeout = Duration::from_nanos(end.saturating_sub(now));
    let deadline = Deadline::within(client.clock().now().min(end), timeout);
    let mut visitor = Collector(Rc::clone(&received));
    let mut state = Flown { received, exchange: Exchange::unfinished(now) };
    client.exchange(prepared, now, deadline, &mut visitor, &mut state.exchange).await;
}

/// The exchange of a flight, which it leaves behind when it is dropped.
struct Flown {
    received: Rc<RefCell<Received>>,
    exchange: Exchange,
}

impl Drop for Flown {
    fn drop(&mut self) {
        self.received.borrow_mut().exchange = Some(self.exchange.clone());
    }
}

struct Collector(Rc<RefCell<Received>>);

impl Visitor for Collector {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let mut received = self.0.borrow_mut();
        let line = |header: &gake_codec::http1::Header<'_>| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (gake_k6::user::request_params::canonical(header.name), value)
        };
        received.headers = head.headers.iter().map(line).collect();
        let is_gzip = |(name, value): &(String, String)| {
            name == "Content-Encoding" && value.eq_ignore_ascii_case("gzip")
        };
        received.gzip = None;
        if received.headers.iter().any(is_gzip) {
            received.gzip = Some(GzDecoder::new(Vec::new()));
            // As in Go, whose client decodes the body.
            let of_body = ["Content-Encoding", "Content-Length"];
            received.headers.retain(|(name, _)| !of_body.contains(&name.as_str()));
        }
        received.status = head.status;
        received.body_bytes = 0;
        received.reader = SseReader::default();
    }

    fn body(&mut self, bytes: &[u8]) {
        let mut received = self.0.borrow_mut();
        received.body_bytes += bytes.len() as u64;
        let Received { gzip, reader, .. } = &mut *received;
        let Some(gzip) = gzip else { return reader.feed(bytes) };
        // What precedes an error is read.
        let _ = gzip.write_all(bytes).and_then(|()| gzip.flush());
        reader.feed(&std::mem::take(gzip.get_mut()));
    }
}

impl ExchangeVisitor for Collector {
    fn connected(&mut self, facts: &ConnectionFacts) {
        self.0.borrow_mut().address = facts.peer.map(|peer| peer.ip().to_string());
    }
}
