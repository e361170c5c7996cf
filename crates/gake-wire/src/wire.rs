//! Everything about the wire that is known before a run.

use std::sync::Arc;

use gake_core::plan::Timeouts;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::address::{Address, ResolveError, Resolver};
use crate::http1::Limits;
use crate::http1::request::{Rendered, RequestError, RequestSpec, render};
use crate::location::{Location, LocationError, Scheme};
use crate::order::cycle;
use crate::source::Sources;
use crate::tls::{TlsError, TlsOptions};

/// Labels told apart at most; the rest is one label, `other`.
const LABELS_MAX: usize = 100;

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
    /// Most connections of the load, over all workers.
    pub connections: usize,
    /// Connections opened at the start and held without a request, over all workers.
    pub idle_connections: usize,
    /// New idle connections a second, over all workers.
    pub connect_rate: Option<f64>,
    /// Where connections come from.
    pub sources: Sources,
    /// Bounds on what a server can make us hold.
    pub limits: Limits,
}

/// Where requests go: scheme, host and port, with the addresses they mean.
#[derive(Debug)]
pub struct Origin {
    /// For people.
    pub name: String,
    /// Never empty.
    pub addresses: Vec<Address>,
    /// The name the certificate must have, when there is TLS.
    pub(crate) server_name: Option<ServerName<'static>>,
    scheme: Scheme,
    host: String,
    port: u16,
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
        let mut wire = Self {
            origins: Vec::new(),
            labels: Vec::new(),
            tls: None,
            notes: Vec::new(),
            prepared: Vec::with_capacity(asks.len()),
            order,
            settings,
        };
        let labelled = asks.len() > 1 || asks.iter().any(|ask| ask.label.is_some());
        for ask in asks {
            let location = Location::parse(&ask.url)?;
            if location.scheme == Scheme::Https && wire.tls.is_none() {
                wire.tls = Some(tls.config()?);
            }
            let label = if labelled { wire.label(ask, &location) } else { 0 };
            let rendered = wire.render(ask, &location)?;
            let origin = wire.origin(&location, resolver)?;
            wire.prepared.push(Prepared { rendered, origin, label });
        }
        Ok(wire)
    }

    /// The request that arrival `number` sends.
    #[inline]
    pub(crate) fn request(&self, number: u64) -> &Prepared {
        match self.prepared.as_slice() {
            [only] => only,
            all => &all[self.order[(number % self.order.len() as u64) as usize] as usize],
        }
    }

    /// How many different requests there are.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.prepared.len()
    }

    fn render(&self, ask: &Ask, location: &Location) -> Result<Rendered, RequestError> {
        let mut headers = ask.headers.clone();
        let given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(user) = location.user.as_ref().filter(|_| !given) {
            headers.push(basic_authorization(user));
        }
        render(&RequestSpec {
            method: &ask.method,
            target: &location.target,
            authority: &location.authority(),
            headers: &headers,
            body: ask.body.clone(),
            keep_alive: self.settings.keepalive,
        })
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

    fn origin(&mut self, location: &Location, resolver: &Resolver) -> Result<u32, WireError> {
        let same = |origin: &Origin| {
            (origin.scheme, origin.host.as_str(), origin.port)
                == (location.scheme, location.host.as_str(), location.port)
        };
        if let Some(known) = self.origins.iter().position(same) {
            return Ok(known as u32);
        }
        let (addresses, refusing) =
            crate::connect::answering(resolver.resolve(&location.host, location.port)?);
        if let (Some(first), false) = (addresses.first(), refusing.is_empty()) {
            let refusing: Vec<_> = refusing.iter().map(ToString::to_string).collect();
            let host = &location.host;
            self.notes.push(format!("{host} is {first}; {} does not answer", refusing.join(", ")));
        }
        let server_name = match location.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(
                ServerName::try_from(location.host.clone())
                    .map_err(|_| WireError::ServerName(location.host.clone()))?,
            ),
        };
        self.origins.push(Origin {
            name: location.authority(),
            addresses,
            server_name,
            scheme: location.scheme,
            host: location.host.clone(),
            port: location.port,
        });
        Ok(self.origins.len() as u32 - 1)
    }
}

/// The header of basic authentication (RFC 7617) for `user:password`.
#[must_use]
pub fn basic_authorization(user: &str) -> (String, String) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(user);
    ("Authorization".to_owned(), format!("Basic {encoded}"))
}
