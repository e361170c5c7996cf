//! Everything about the wire that is known before a run.

use std::collections::HashMap;
use std::sync::Arc;

use gake_core::plan::Timeouts;
use gake_core::record::Fault;
use rustls::ClientConfig;

use crate::address::{ResolveError, Resolver};
use crate::http1::Limits;
use crate::http1::request::{Rendered, RequestError, Version};
use crate::location::{Location, LocationError, Scheme};
use crate::order::cycle;
use crate::origin::{Found, Origin};
use crate::redirect::Spec;
use crate::source::{SourceError, Sources};
use crate::tls::{TlsError, TlsOptions};

/// Labels told apart at most; the rest is one label, `other`.
const LABELS_MAX: usize = 100;

/// Bytes that a new connection may send before it hears of the peer: ten segments (RFC 6928) of
/// the usual size.
const INITIAL_WINDOW: usize = 14_000;

/// A request that was made while the run went on, and cannot be sent.
const BAD_REQUEST: Fault = Fault::Malformed("request");

/// A request as the user describes it.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Arc<[u8]>>,
    /// The name under which it is reported; method and path when there is none.
    pub label: Option<String>,
    /// How often it is sent, against the others.
    pub weight: u32,
}

/// How connections are made and used.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The bounds on waiting.
    pub timeouts: Timeouts,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// Whether any lane may use any idle connection (open loop), or each keeps its own (a user
    /// of a closed loop).
    pub pooled: bool,
    /// Most connections of the load, over all workers, when they are pooled. Users of a closed
    /// loop have one an origin each.
    pub connections: usize,
    /// Connections opened at the start and held without a request, over all workers.
    pub idle_connections: usize,
    /// New idle connections a second, over all workers.
    pub connect_rate: Option<f64>,
    /// Where connections come from.
    pub sources: Sources,
    /// Bounds on what a server can make us hold.
    pub limits: Limits,
    /// Redirects followed for one arrival at most; when 0, a redirect is an answer as any other.
    pub max_redirects: u32,
    /// What is kept of answers, when anything is.
    pub keep: Option<Keep>,
    /// Idle connections kept to an origin, over all workers, when that is bounded.
    pub max_idle: Option<usize>,
    /// Makes each request when it is fired, instead of those known beforehand.
    pub feed: Option<Arc<dyn Feed>>,
    /// The version that requests say.
    pub version: Version,
}

/// Requests that are made while the run goes on: each can differ, and they can end. All workers
/// share it.
pub trait Feed: std::fmt::Debug + Send + Sync {
    /// The request of the arrival with this number; `None` when there are no more. To wait for it
    /// is part of the response time.
    fn next(&self, number: u64) -> BoxedAsk<'_>;

    /// Whether it has said that there are no more.
    fn is_over(&self) -> bool;
}

/// The request of a [`Feed`], when it is there.
pub type BoxedAsk<'a> = std::pin::Pin<Box<dyn Future<Output = Option<Ask>> + Send + 'a>>;

/// How many answers are kept, and how much of each. A request whose answer is kept allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Answers kept on each worker, from its first on.
    pub answers: u64,
    /// Bytes of a body kept at most.
    pub body_bytes: usize,
}

/// A request ready to be written.
#[derive(Debug)]
pub struct Prepared {
    /// Its bytes.
    pub rendered: Rendered,
    /// The number of its origin.
    pub origin: u32,
    /// The number of its label.
    pub label: u16,
    /// What it says, when redirects are followed.
    pub(crate) spec: Option<Box<Spec>>,
}

/// What is sent, where, and how.
#[derive(Debug)]
pub struct Wire {
    /// By origin number.
    pub origins: Vec<Origin>,
    /// Names of the labels by number; empty when there is one request without a label.
    pub labels: Vec<String>,
    /// How connections are made and used.
    pub settings: Settings,
    /// What the user should know before the run, in sentences.
    pub notes: Vec<String>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    found: Option<Found>,
    /// Whether every request fits into a connection's initial window.
    pub(crate) small: bool,
    prepared: Vec<Prepared>,
    order: Vec<u32>,
}

/// Why a run cannot be made from what was asked.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Nothing to send.
    #[error("there is nothing to send: no target, or every weight is 0")]
    Nothing,
    /// A bad URL.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A name without an address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A request that is not HTTP.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Bad TLS files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A source that cannot be used.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A name that no certificate can have.
    #[error("{0:?} cannot be checked against a certificate")]
    ServerName(String),
}

impl Wire {
    /// Renders what is asked and resolves where it goes. Blocks for name resolution.
    ///
    /// # Errors
    /// The first thing that keeps a request from being sent.
    pub fn prepare(
        asks: &[Ask],
        resolver: &Resolver,
        tls: &TlsOptions,
        settings: Settings,
    ) -> Result<Self, WireError> {
        let weights: Vec<u32> = asks.iter().map(|ask| ask.weight).collect();
        let order = cycle(&weights);
        if order.is_empty() {
            return Err(WireError::Nothing);
        }
        if resolver.unix_socket.is_none() {
            settings.sources.check()?;
        }
        let mut wire = Self {
            origins: Vec::new(),
            labels: Vec::new(),
            tls: None,
            found: None,
            notes: Vec::new(),
            small: false,
            prepared: Vec::with_capacity(asks.len()),
            order,
            settings,
        };
        let labelled = asks.len() > 1 || asks.iter().any(|ask| ask.label.is_some());
        let mut known = HashMap::new();
        for ask in asks {
            let location = Location::parse(&ask.url)?;
            if location.scheme == Scheme::Https && wire.tls.is_none() {
                wire.tls = Some(tls.config()?);
            }
            let label = if labelled { wire.label(ask, &location) } else { 0 };
            let origin = wire.origin(&location, resolver, &mut known)?;
            let spec = spec(ask, location, wire.settings.version);
            let rendered = spec.render(wire.settings.keepalive)?;
            let spec = (wire.settings.max_redirects > 0).then(|| Box::new(spec));
            wire.prepared.push(Prepared { rendered, origin, label, spec });
        }
        wire.small = wire.prepared.iter().all(|p| p.rendered.len() <= INITIAL_WINDOW);
        if wire.settings.max_redirects > 0 || wire.settings.feed.is_some() {
            // A redirect, and a request yet to be made, may lead to any origin, and to TLS.
            wire.found = Some(Found::new(resolver.clone(), wire.settings.sources.clone()));
            if wire.tls.is_none() {
                wire.tls = Some(tls.config()?);
            }
        }
        Ok(wire)
    }

    /// Sends the requests in this order, by their numbers, instead of in turn: the n-th arrival
    /// sends `order[n]`, and past its end it starts again. Numbers that no request has, and an
    /// empty order, are refused.
    ///
    /// # Errors
    /// [`WireError::Nothing`] when the order names what is not there.
    pub fn in_order(mut self, order: Vec<u32>) -> Result<Self, WireError> {
        if order.is_empty() || order.iter().any(|number| *number as usize >= self.prepared.len()) {
            return Err(WireError::Nothing);
        }
        self.order = order;
        Ok(self)
    }

    /// The request that arrival `number` sends.
    #[inline]
    pub(crate) fn request(&self, number: u64) -> &Prepared {
        match self.prepared.as_slice() {
            [only] => only,
            all => &all[self.order[(number % self.order.len() as u64) as usize] as usize],
        }
    }

    /// The request that arrival `number` sends, made now; `None` when there are no more.
    pub(crate) async fn make(
        &self,
        feed: &dyn Feed,
        number: u64,
    ) -> Result<Option<Prepared>, Fault> {
        let Some(ask) = feed.next(number).await else { return Ok(None) };
        let location = Location::parse(&ask.url).map_err(|_| BAD_REQUEST)?;
        let origin = self.locate(&location).await?;
        let label = ask.label.as_ref().and_then(|name| self.labels.iter().position(|l| l == name));
        let spec = spec(&ask, location, self.settings.version);
        let rendered = spec.render(self.settings.keepalive).map_err(|_| BAD_REQUEST)?;
        let spec = (self.settings.max_redirects > 0).then(|| Box::new(spec));
        Ok(Some(Prepared { rendered, origin, label: label.unwrap_or(0) as u16, spec }))
    }

    /// How many different requests there are.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.prepared.len()
    }

    /// The number of the origin of `location`, for a redirect.
    pub(crate) async fn locate(&self, location: &Location) -> Result<u32, Fault> {
        if let Some(known) = self.origins.iter().position(|origin| origin.holds(location)) {
            return Ok(known as u32);
        }
        let found = self.found.as_ref().ok_or(Fault::RedirectLimit)?;
        Ok((self.origins.len() + found.number(location).await?) as u32)
    }

    /// An origin that a redirect led to.
    pub(crate) fn found(&self, number: u32) -> Option<Arc<Origin>> {
        self.found.as_ref()?.get((number as usize).checked_sub(self.origins.len())?)
    }

    fn label(&mut self, ask: &Ask, location: &Location) -> u16 {
        let path = location.target.split('?').next().unwrap_or_default();
        let name = ask.label.clone().unwrap_or_else(|| format!("{} {path}", ask.method));
        let known = self.labels.iter().position(|label| *label == name);
        let number = known.unwrap_or_else(|| {
            if self.labels.len() < LABELS_MAX {
                self.labels.push(name);
            } else if self.labels.len() == LABELS_MAX {
                self.labels.push("other".to_owned());
            }
            self.labels.len() - 1
        });
        number as u16
    }

    fn origin(
        &mut self,
        location: &Location,
        resolver: &Resolver,
        known: &mut HashMap<(Scheme, String, u16), u32>,
    ) -> Result<u32, WireError> {
        let place = (location.scheme, location.host.clone(), location.port);
        if let Some(&known) = known.get(&place) {
            return Ok(known);
        }
        let (origin, refusing) = Origin::resolve(location, resolver, &self.settings.sources)?;
        if let (Some(first), false) = (origin.addresses.first(), refusing.is_empty()) {
            let refusing: Vec<_> = refusing.iter().map(ToString::to_string).collect();
            let host = &location.host;
            self.notes.push(format!("{host} is {first}; {} does not answer", refusing.join(", ")));
        }
        let number = self.origins.len() as u32;
        self.origins.push(origin);
        known.insert(place, number);
        Ok(number)
    }
}

fn spec(ask: &Ask, location: Location, version: Version) -> Spec {
    let mut headers = ask.headers.clone();
    let given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if let Some(user) = location.user.as_ref().filter(|_| !given) {
        headers.push(basic_authorization(user));
    }
    let body = ask.body.clone();
    Spec { location, method: ask.method.clone(), headers, body, version }
}

/// The header of basic authentication (RFC 7617) for `user:password`.
#[must_use]
pub fn basic_authorization(user: &str) -> (String, String) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(user);
    ("Authorization".to_owned(), format!("Basic {encoded}"))
}
