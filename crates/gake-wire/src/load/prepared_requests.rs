//! The requests of a load, prepared before the run, in the order of arrivals.

use std::collections::HashMap;
use std::sync::Arc;

use gake_core::record::Fault;

use crate::client::error::WireError;
use crate::client::network::Network;
use crate::client::request::{HttpRequest, PreparedRequest};
use crate::client::settings::ClientSettings;
use crate::load::feed::{LabelledRequest, RequestFeed};
use crate::load::packed_requests::PackedRequests;
use crate::load::request_list::RequestList;
use crate::net::address::Resolver;
use crate::net::location::{Location, LocationParser};
use crate::tls::TlsOptions;
use crate::tls::protocol::Protocol;

/// Maximum number of labels; further ones are merged into [`OTHER`].
const LABELS_MAX: usize = 100;

const OTHER: &str = "other";

/// Requests up to this number are ready to be sent; more are packed, if they can be.
const READY_MAX: usize = 4_096;

/// The requests of a load, with their origins and settings.
#[derive(Debug)]
pub struct PreparedRequests {
    /// The network of the requests.
    pub network: Arc<Network>,
    /// The labels by number; empty for a single request without a label.
    pub labels: Vec<String>,
    /// Sentences for the user to read before the run.
    pub notes: Vec<String>,
    requests: RequestStore,
    /// The request of arrival 0, except if all are made during the run.
    first: Option<Box<LabelledRequest>>,
    /// The request of each arrival, cyclically.
    order: Vec<u32>,
    /// Whether all requests are plain GET or HEAD requests.
    is_idempotent: bool,
}

#[derive(Debug)]
enum RequestStore {
    Ready(Vec<LabelledRequest>),
    Packed(Box<PackedRequests>),
}

impl PreparedRequests {
    /// Prepares the requests and resolves their origins. Blocks for name resolution.
    ///
    /// # Errors
    /// A request is invalid, its origin cannot be resolved, or no weight is positive.
    pub fn prepare(
        requests: &RequestList,
        resolver: &Resolver,
        tls: &TlsOptions,
        settings: ClientSettings,
    ) -> Result<Self, WireError> {
        let order = requests.order();
        if order.is_empty() {
            return Err(WireError::Nothing);
        }
        let mut network = Network::new(resolver, tls, settings)?;
        let is_labelled = network.settings.labels || requests.is_labelled();
        let mut labels = LabelNumbers::default();
        let mut store = RequestStore::new(requests.len());
        let (mut parser, mut is_idempotent) = (LocationParser::default(), true);
        let mut reader = requests.reader();
        while let Some((request, label)) = reader.next() {
            let location = network.location(&request.url, &mut parser)?;
            let label = match is_labelled {
                true => labels.number(label, request, &location),
                false => 0,
            };
            is_idempotent &= matches!(&*request.method, "GET" | "HEAD");
            let request = network.prepare_at(request, location)?;
            store.push(LabelledRequest { request, label });
        }
        let mut labels = labels.names;
        if is_labelled && network.settings.feed.is_some() && labels.len() <= LABELS_MAX {
            // Requests of the feed may have other labels.
            labels.push(OTHER.to_owned());
        }
        let mut notes = std::mem::take(&mut network.notes);
        notes.extend(network.source_note());
        let network = Arc::new(network);
        let (requests, first) = (store, None);
        let prepared = Self { network, labels, notes, requests, first, order, is_idempotent };
        Ok(prepared.with_first())
    }

    fn with_first(mut self) -> Self {
        let mut first = None;
        if let RequestStore::Packed(packed) = &self.requests {
            packed.unpack(self.order[0] as usize, &mut first);
        }
        self.first = first;
        self
    }

    /// Sets the order of the requests, by number, instead of the weights: the n-th arrival sends
    /// `order[n]`, cyclically.
    ///
    /// # Errors
    /// [`WireError::Nothing`] if the order is empty or names a request that does not exist.
    pub fn in_order(mut self, order: Vec<u32>) -> Result<Self, WireError> {
        let len = self.requests();
        if order.is_empty() || order.iter().any(|number| *number as usize >= len) {
            return Err(WireError::Nothing);
        }
        self.order = order;
        Ok(self.with_first())
    }

    /// Whether all requests are plain GET or HEAD requests, which may be repeated.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let settings = &self.network.settings;
        let is_plain = !matches!(settings.protocol, Protocol::WebSocket) && settings.feed.is_none();
        is_plain && self.is_idempotent
    }

    /// The number of distinct requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        match &self.requests {
            RequestStore::Ready(requests) => requests.len(),
            RequestStore::Packed(packed) => packed.len(),
        }
    }

    /// Renumbers the labels within `labels`, a list shared with other loads, and adds missing ones.
    pub fn number_labels(&mut self, labels: &mut Vec<String>) {
        let mut numbers = Vec::with_capacity(self.labels.len());
        for label in &self.labels {
            let known = labels.iter().position(|known| known == label);
            numbers.push(known.unwrap_or_else(|| {
                labels.push(label.clone());
                labels.len() - 1
            }) as u16);
        }
        let requests = match &mut self.requests {
            RequestStore::Ready(requests) => requests.as_mut_slice(),
            RequestStore::Packed(packed) => packed.kinds_mut(),
        };
        for request in requests.iter_mut().chain(self.first.as_deref_mut()) {
            if let Some(number) = numbers.get(usize::from(request.label)) {
                request.label = *number;
            }
        }
        self.labels.clone_from(labels);
    }

    /// The first request; `None` for messages of streams, and if all are made during the run.
    #[must_use]
    pub fn first(&self) -> Option<&PreparedRequest> {
        let first = match &self.requests {
            RequestStore::Ready(requests) => requests.get(*self.order.first()? as usize)?,
            RequestStore::Packed(_) => self.first.as_ref()?,
        };
        first.request.websocket.is_none().then_some(&first.request)
    }

    /// One or several whole requests in HTTP/1.1, to the origin of the first request and sent as
    /// they are.
    #[must_use]
    pub fn raw(&self, bytes: Vec<u8>) -> PreparedRequest {
        PreparedRequest::raw(self.first().map_or(0, |first| first.origin), bytes)
    }

    /// Whether requests are ready to be sent, so that [`request`](Self::request) makes none.
    pub(crate) fn are_ready(&self) -> bool {
        matches!(self.requests, RequestStore::Ready(_))
    }

    /// The request of arrival `number`, which `made` may hold.
    #[inline]
    pub(crate) fn request<'a>(
        &'a self,
        number: u64,
        made: &'a mut Option<Box<LabelledRequest>>,
    ) -> &'a LabelledRequest {
        let place = |order: &[u32]| order[(number % order.len() as u64) as usize] as usize;
        match &self.requests {
            RequestStore::Ready(requests) => match requests.as_slice() {
                [only] => only,
                all => &all[place(&self.order)],
            },
            RequestStore::Packed(packed) => packed.unpack(place(&self.order), made),
        }
    }

    /// Makes the request of arrival `number` by the feed; `None` at its end.
    pub(crate) async fn make(
        &self,
        feed: &dyn RequestFeed,
        number: u64,
    ) -> Result<Option<LabelledRequest>, Fault> {
        let Some(next) = feed.next(number).await else { return Ok(None) };
        let request = self.network.make(&next.request).await?;
        let label = self.label(next.label.as_deref(), &next.request);
        Ok(Some(LabelledRequest { request, label }))
    }

    /// The number of the label of a request from the feed, [`OTHER`] if it is new.
    fn label(&self, given: Option<&str>, request: &HttpRequest) -> u16 {
        let Some(last) = self.labels.len().checked_sub(1) else { return 0 };
        // In a shared list, labels of other loads may follow `other`.
        let other = self.labels.iter().position(|label| label == OTHER).unwrap_or(last);
        let name = match (given, Location::parse(&request.url)) {
            (Some(given), _) => Some(given.to_owned()),
            (None, Ok(location)) => {
                let mut name = String::new();
                write_name(request, &location, &mut name);
                Some(name)
            }
            (None, Err(_)) => None,
        };
        let known = self.labels.iter().position(|label| Some(label) == name.as_ref());
        known.unwrap_or(other) as u16
    }
}

impl RequestStore {
    fn new(requests: usize) -> Self {
        match requests {
            0..=READY_MAX => Self::Ready(Vec::with_capacity(requests)),
            _ => Self::Packed(Box::default()),
        }
    }

    fn push(&mut self, one: LabelledRequest) {
        if let Self::Packed(packed) = self {
            if PackedRequests::can_hold(&one.request) {
                return packed.push(one);
            }
            let ready = |number| {
                let mut made = None;
                packed.unpack(number, &mut made);
                made.map(|made| *made)
            };
            *self = Self::Ready((0..packed.len()).filter_map(ready).collect());
        }
        if let Self::Ready(requests) = self {
            requests.push(one);
        }
    }
}

/// The labels of a load, numbered as they occur.
#[derive(Default)]
struct LabelNumbers {
    names: Vec<String>,
    numbers: HashMap<String, u16>,
    name: String,
}

impl LabelNumbers {
    /// The number of a request's label: the given one, or its method and path. Above the limit it is
    /// that of [`OTHER`].
    fn number(&mut self, given: Option<&str>, request: &HttpRequest, location: &Location) -> u16 {
        let name = match given {
            Some(given) => given,
            None => {
                self.name.clear();
                write_name(request, location, &mut self.name);
                &self.name
            }
        };
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        if self.names.len() < LABELS_MAX {
            self.numbers.insert(name.to_owned(), self.names.len() as u16);
            self.names.push(name.to_owned());
        } else if self.names.len() == LABELS_MAX {
            self.names.push(OTHER.to_owned());
        }
        (self.names.len() - 1) as u16
    }
}

/// Appends the label of a request without one: method and path.
fn write_name(request: &HttpRequest, location: &Location, name: &mut String) {
    name.push_str(&request.method);
    name.push(' ');
    name.push_str(location.target.split('?').next().unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::feed::WeightedRequest;

    const MANY: usize = READY_MAX + 100;

    fn prepared(requests: Vec<WeightedRequest>, protocol: Protocol) -> PreparedRequests {
        let settings = ClientSettings { protocol, ..ClientSettings::default() };
        let (resolver, tls) = (Resolver::default(), TlsOptions::default());
        PreparedRequests::prepare(&RequestList::from_iter(requests), &resolver, &tls, settings)
            .unwrap()
    }

    /// Requests of several methods, origins, labels and bodies.
    fn requests() -> Vec<WeightedRequest> {
        let large: Arc<[u8]> = Arc::from(vec![b'x'; 20_000]);
        let request = |number: usize| {
            let url = format!("http://127.0.0.{}:80/{number}?q", 1 + number % 2);
            let method = ["GET", "HEAD", "POST"][number % 3];
            let body = (method == "POST").then(|| match number % 2 {
                0 => Arc::clone(&large),
                _ => Arc::from(format!("body {number}").into_bytes()),
            });
            let headers = vec![("X-Number".to_owned(), number.to_string())];
            let request = HttpRequest { headers, body, ..HttpRequest::new(method, url) };
            let label = number.is_multiple_of(5).then(|| "fifth".to_owned());
            WeightedRequest { request, label, weight: 1 + u32::from(number.is_multiple_of(7)) }
        };
        (0..MANY).map(request).collect()
    }

    fn shown(one: &LabelledRequest) -> (u32, u16, Vec<u8>, [bool; 4]) {
        let PreparedRequest { origin, rendered, .. } = &one.request;
        let flags = [rendered.is_head, rendered.idempotent, rendered.replayable, rendered.closes];
        (*origin, one.label, one.request.as_http1(), flags)
    }

    #[test]
    fn packed_requests_are_those_that_a_small_load_sends() {
        let requests = requests();
        let packed = prepared(requests.clone(), Protocol::Http1);
        assert!(matches!(&packed.requests, RequestStore::Packed(_)));
        assert_eq!(packed.requests(), MANY);
        let mut made = None;
        // The first part is ready in a load of its own, and has the same origins and labels.
        let ready = prepared(requests[..READY_MAX].to_vec(), Protocol::Http1);
        let RequestStore::Ready(ready) = &ready.requests else { panic!("{ready:?}") };
        let RequestStore::Packed(all) = &packed.requests else { panic!("{packed:?}") };
        for (number, ready) in ready.iter().enumerate().rev() {
            assert_eq!(shown(all.unpack(number, &mut made)), shown(ready), "{number}");
        }
        let first = packed.first().unwrap().as_http1();
        assert_eq!(first, packed.request(0, &mut made).request.as_http1());
        assert!(!packed.is_idempotent());
        let last = MANY as u32 - 1;
        let ordered = packed.in_order(vec![last, 1]).unwrap();
        assert_eq!(ordered.first().unwrap().as_http1(), shown(ordered.request(2, &mut made)).2);
        assert!(shown(ordered.request(3, &mut made)).2.starts_with(b"HEAD /1?q"));
    }

    #[test]
    fn unpacking_reuses_the_memory_of_the_lane() {
        let packed = prepared(requests(), Protocol::Http1);
        let mut made = None;
        let mut rooms = [0, 1].map(|_| {
            let rooms = (0..2 * MANY as u64).map(|number| {
                let one = packed.request(number, &mut made);
                (std::ptr::from_ref(one), one.request.rendered.first.capacity())
            });
            rooms.collect::<Vec<_>>()
        });
        rooms[1].dedup();
        assert_eq!(rooms[1].len(), 1, "no memory moves once each request has been sent");
        assert_eq!(rooms[0].last(), rooms[1].last());
    }

    #[test]
    fn labels_of_packed_requests_are_renumbered() {
        let mut packed = prepared(requests(), Protocol::Http1);
        let name = |packed: &PreparedRequests, number| {
            let label = packed.request(number, &mut None).label;
            packed.labels[usize::from(label)].clone()
        };
        let names: Vec<_> = (0..20).map(|number| name(&packed, number)).collect();
        packed.number_labels(&mut vec!["another load's".to_owned()]);
        assert_eq!((0..20).map(|number| name(&packed, number)).collect::<Vec<_>>(), names);
    }

    #[test]
    fn requests_that_may_be_sent_over_http2_are_not_packed() {
        let mut with_https = requests();
        with_https[MANY / 2].request.url = "https://127.0.0.1/".to_owned();
        let mixed = prepared(with_https, Protocol::Negotiated);
        let RequestStore::Ready(ready) = &mixed.requests else { panic!("{mixed:?}") };
        let is_https = |one: &LabelledRequest| one.request.http2.is_some();
        assert_eq!(ready.iter().position(is_https), Some(MANY / 2));
        assert_eq!(ready.len(), MANY);
        let clear = prepared(requests(), Protocol::Negotiated);
        assert!(matches!(&clear.requests, RequestStore::Packed(_)));
    }
}
