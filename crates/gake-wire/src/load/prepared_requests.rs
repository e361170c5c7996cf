//! The requests of a load, prepared before the run, in the order of arrivals.

use std::sync::Arc;

use gake_core::record::Fault;

use crate::client::error::WireError;
use crate::client::network::Network;
use crate::client::request::PreparedRequest;
use crate::client::settings::ClientSettings;
use crate::load::feed::{RequestFeed, WeightedRequest};
use crate::load::order::cycle;
use crate::net::address::Resolver;
use crate::net::location::Location;
use crate::tls::TlsOptions;
use crate::tls::protocol::Protocol;

/// Maximum number of labels; further ones are merged into [`OTHER`].
const LABELS_MAX: usize = 100;

const OTHER: &str = "other";

#[derive(Debug)]
pub(crate) struct LabelledRequest {
    pub(crate) request: PreparedRequest,
    /// The number of its label.
    pub(crate) label: u16,
}

/// The requests of a load, with their origins and settings.
#[derive(Debug)]
pub struct PreparedRequests {
    /// The network of the requests.
    pub network: Arc<Network>,
    /// The labels by number; empty for a single request without a label.
    pub labels: Vec<String>,
    /// Sentences for the user to read before the run.
    pub notes: Vec<String>,
    requests: Vec<LabelledRequest>,
    order: Vec<u32>,
}

impl PreparedRequests {
    /// Prepares the requests and resolves their origins. Blocks for name resolution.
    ///
    /// # Errors
    /// A request is invalid, its origin cannot be resolved, or no weight is positive.
    pub fn prepare(
        requests: &[WeightedRequest],
        resolver: &Resolver,
        tls: &TlsOptions,
        settings: ClientSettings,
    ) -> Result<Self, WireError> {
        let weights: Vec<u32> = requests.iter().map(|request| request.weight).collect();
        let order = cycle(&weights);
        if order.is_empty() {
            return Err(WireError::Nothing);
        }
        let mut network = Network::new(resolver, tls, settings)?;
        let is_labelled =
            requests.len() > 1 || requests.iter().any(|request| request.label.is_some());
        let mut labels = Vec::new();
        let mut prepared = Vec::with_capacity(requests.len());
        for weighted in requests {
            let location = network.location(&weighted.request.url)?;
            let label = match is_labelled {
                true => add_label(&mut labels, name(weighted, &location)),
                false => 0,
            };
            let request = network.prepare_at(&weighted.request, location)?;
            prepared.push(LabelledRequest { request, label });
        }
        if is_labelled && network.settings.feed.is_some() && labels.len() <= LABELS_MAX {
            // Requests of the feed may have other labels.
            labels.push(OTHER.to_owned());
        }
        let mut notes = std::mem::take(&mut network.notes);
        notes.extend(network.source_note());
        Ok(Self { network: Arc::new(network), labels, notes, requests: prepared, order })
    }

    /// Sets the order of the requests, by number, instead of the weights: the n-th arrival sends
    /// `order[n]`, cyclically.
    ///
    /// # Errors
    /// [`WireError::Nothing`] if the order is empty or names a request that does not exist.
    pub fn in_order(mut self, order: Vec<u32>) -> Result<Self, WireError> {
        if order.is_empty() || order.iter().any(|number| *number as usize >= self.requests.len()) {
            return Err(WireError::Nothing);
        }
        self.order = order;
        Ok(self)
    }

    /// Whether all requests are plain GET or HEAD requests, which may be repeated.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let is = |one: &LabelledRequest| {
            let first = &one.request.rendered.first;
            let is_safe = first.starts_with(b"GET ") || first.starts_with(b"HEAD ");
            is_safe && one.request.websocket.is_none()
        };
        let settings = &self.network.settings;
        let is_plain = !matches!(settings.protocol, Protocol::WebSocket) && settings.feed.is_none();
        is_plain && !self.requests.is_empty() && self.requests.iter().all(is)
    }

    /// The number of distinct requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
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
        for request in &mut self.requests {
            if let Some(number) = numbers.get(usize::from(request.label)) {
                request.label = *number;
            }
        }
        self.labels.clone_from(labels);
    }

    /// The first request; `None` for messages of streams, and if all are made during the run.
    #[must_use]
    pub fn first(&self) -> Option<&PreparedRequest> {
        let number = self.order.first().map_or(0, |number| *number as usize);
        let request = &self.requests.get(number)?.request;
        request.websocket.is_none().then_some(request)
    }

    /// One or several whole requests in HTTP/1.1, to the origin of the first request and sent as
    /// they are.
    #[must_use]
    pub fn raw(&self, bytes: Arc<[u8]>) -> PreparedRequest {
        PreparedRequest::raw(self.first().map_or(0, |first| first.origin), bytes)
    }

    #[inline]
    pub(crate) fn request(&self, number: u64) -> &LabelledRequest {
        match self.requests.as_slice() {
            [only] => only,
            all => &all[self.order[(number % self.order.len() as u64) as usize] as usize],
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
        Ok(Some(LabelledRequest { request, label: self.label(&next) }))
    }

    /// The number of the label of a request from the feed, [`OTHER`] if it is new.
    fn label(&self, weighted: &WeightedRequest) -> u16 {
        let Some(last) = self.labels.len().checked_sub(1) else { return 0 };
        // In a shared list, labels of other loads may follow `other`.
        let other = self.labels.iter().position(|label| label == OTHER).unwrap_or(last);
        let location = Location::parse(&weighted.request.url).ok();
        let name = location.map(|location| name(weighted, &location));
        let known = self.labels.iter().position(|label| Some(label) == name.as_ref());
        known.unwrap_or(other) as u16
    }
}

/// The label of a request: the given one, or its method and path.
fn name(weighted: &WeightedRequest, location: &Location) -> String {
    let path = location.target.split('?').next().unwrap_or_default();
    let name = weighted.label.clone();
    name.unwrap_or_else(|| format!("{} {path}", weighted.request.method))
}

/// The number of the label `name`, added if it is new and below the limit.
fn add_label(labels: &mut Vec<String>, name: String) -> u16 {
    let known = labels.iter().position(|label| *label == name);
    let number = known.unwrap_or_else(|| {
        if labels.len() < LABELS_MAX {
            labels.push(name);
        } else if labels.len() == LABELS_MAX {
            labels.push(OTHER.to_owned());
        }
        labels.len() - 1
    });
    number as u16
}
