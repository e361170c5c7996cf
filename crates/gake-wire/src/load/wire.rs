//! The requests of a load, prepared before the run, in the order of the arrivals.

use std::sync::Arc;

use gake_core::record::Fault;

use crate::client::error::WireError;
use crate::client::network::Network;
use crate::client::request::PreparedRequest;
use crate::client::settings::Settings;
use crate::load::feed::{Feed, WeightedRequest};
use crate::load::order::cycle;
use crate::net::address::Resolver;
use crate::net::location::Location;
use crate::tls::TlsOptions;

/// Maximum number of labels; the rest is one label, [`OTHER`].
const LABELS_MAX: usize = 100;

/// The label of requests that have no label of their own any more.
const OTHER: &str = "other";

/// A request of the load.
#[derive(Debug)]
pub(crate) struct Labelled {
    pub(crate) request: PreparedRequest,
    /// The number of its label.
    pub(crate) label: u16,
}

/// The requests of a load, with their origins and settings.
#[derive(Debug)]
pub struct Wire {
    /// The network that requests go through.
    pub network: Arc<Network>,
    /// Names of the labels by number; empty when there is one request without a label.
    pub labels: Vec<String>,
    /// Notes for the user before the run, in sentences.
    pub notes: Vec<String>,
    requests: Vec<Labelled>,
    order: Vec<u32>,
}

impl Wire {
    /// Renders the requests and resolves their origins. Blocks for name resolution.
    ///
    /// # Errors
    /// The first thing that keeps a request from being sent.
    pub fn prepare(
        requests: &[WeightedRequest],
        resolver: &Resolver,
        tls: &TlsOptions,
        settings: Settings,
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
            prepared.push(Labelled { request, label });
        }
        if is_labelled && network.settings.feed.is_some() && labels.len() <= LABELS_MAX {
            // What the feed brings may have a label that no request here has.
            labels.push(OTHER.to_owned());
        }
        let mut notes = std::mem::take(&mut network.notes);
        notes.extend(network.source_note());
        Ok(Self { network: Arc::new(network), labels, notes, requests: prepared, order })
    }

    /// Sends the requests in this order, by their numbers, instead of in turn: the n-th arrival
    /// sends `order[n]`, and past its end it starts again. Numbers that no request has, and an
    /// empty order, are refused.
    ///
    /// # Errors
    /// [`WireError::Nothing`] when the order names a request that does not exist.
    pub fn in_order(mut self, order: Vec<u32>) -> Result<Self, WireError> {
        if order.is_empty() || order.iter().any(|number| *number as usize >= self.requests.len()) {
            return Err(WireError::Nothing);
        }
        self.order = order;
        Ok(self)
    }

    /// How many different requests there are.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Numbers the labels within `labels`, to which it adds its own: several wires that share the
    /// list have one number for one name.
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

    /// The request that arrival `number` sends.
    #[inline]
    pub(crate) fn request(&self, number: u64) -> &Labelled {
        match self.requests.as_slice() {
            [only] => only,
            all => &all[self.order[(number % self.order.len() as u64) as usize] as usize],
        }
    }

    /// The request that arrival `number` sends, made now; `None` when there are no more.
    pub(crate) async fn make(
        &self,
        feed: &dyn Feed,
        number: u64,
    ) -> Result<Option<Labelled>, Fault> {
        let Some(next) = feed.next(number).await else { return Ok(None) };
        let request = self.network.make(&next.request).await?;
        Ok(Some(Labelled { request, label: self.label(&next) }))
    }

    /// The number of the label of a request made now: that of `other` when it is a new one.
    fn label(&self, weighted: &WeightedRequest) -> u16 {
        let Some(last) = self.labels.len().checked_sub(1) else { return 0 };
        // The list may be that of several wires, in which other labels follow.
        let other = self.labels.iter().position(|label| label == OTHER).unwrap_or(last);
        let location = Location::parse(&weighted.request.url).ok();
        let name = location.map(|location| name(weighted, &location));
        let known = self.labels.iter().position(|label| Some(label) == name.as_ref());
        known.unwrap_or(other) as u16
    }
}

/// What a request is called: its label, else its method and path.
fn name(weighted: &WeightedRequest, location: &Location) -> String {
    let path = location.target.split('?').next().unwrap_or_default();
    let name = weighted.label.clone();
    name.unwrap_or_else(|| format!("{} {path}", weighted.request.method))
}

/// The number of the label `name`, which is added when it is new and there is room.
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
