//! Origins, known before the run or discovered during it.

use std::sync::{Arc, Mutex, PoisonError};

use gake_core::record::Fault;
use rustls::pki_types::ServerName;
use tokio::sync::OnceCell;

use crate::client::error::WireError;
use crate::client::lookups::{self, Endpoint, LiveAddresses, Lookups};
use crate::net::address::Address;
use crate::net::location::{Location, Scheme};
use crate::net::proxy::ForwardProxy;

/// Maximum number of origins discovered in one run.
const DISCOVERED_MAX: usize = 1_000;

/// Scheme, host and port, with their addresses.
#[derive(Debug)]
pub struct Origin {
    /// Host and port, for display.
    pub name: String,
    /// Its addresses at the start; never empty.
    pub addresses: Vec<Address>,
    /// Its addresses by later lookups, if there are any.
    pub(crate) live: Option<Arc<LiveAddresses>>,
    /// The expected name in the certificate; `None` without TLS.
    pub(crate) server_name: Option<ServerName<'static>>,
    /// The proxy for it, whose addresses it then has.
    pub(crate) proxy: Option<ForwardProxy>,
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    /// The same origin with one address.
    pub(crate) fn at(&self, address: Address) -> Self {
        let (name, host, proxy) = (self.name.clone(), self.host.clone(), self.proxy.clone());
        let (server_name, scheme, port) = (self.server_name.clone(), self.scheme, self.port);
        let (addresses, live) = (vec![address], None);
        Self { name, addresses, live, server_name, proxy, scheme, host, port }
    }

    /// Whether its connections go to a proxy over TLS.
    #[must_use]
    pub fn has_tls_proxy(&self) -> bool {
        self.proxy.as_ref().is_some_and(ForwardProxy::is_tls)
    }

    /// Whether it is reached over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.server_name.is_some()
    }

    /// Whether its connections go to a proxy.
    #[must_use]
    pub fn is_proxied(&self) -> bool {
        self.proxy.is_some()
    }

    /// The host, as in the URL.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a request target: a path with its query, or an absolute URL for a proxy.
    pub(crate) fn url(&self, target: &str) -> String {
        if !target.starts_with('/') {
            return target.to_owned();
        }
        let scheme = if self.is_tls() { "https" } else { "http" };
        format!("{scheme}://{}{target}", self.name)
    }

    /// Host and port, as in CONNECT.
    pub(crate) fn tunnel_authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The origin of `location`, and its unreachable addresses. Blocks for name resolution.
    pub(crate) fn resolve(
        location: &Location,
        lookups: &Lookups,
    ) -> Result<(Self, Vec<Address>), WireError> {
        let rules = lookups.resolver.proxy.as_ref();
        let proxy = rules.and_then(|rules| rules.proxy_for(location));
        let at = Endpoint { host: &location.host, port: location.port, proxy };
        let (addresses, refusing) = lookups.addresses(at, &[])?;
        let server_name = match location.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(
                ServerName::try_from(location.host.clone())
                    .map_err(|_| WireError::ServerName(location.host.clone()))?,
            ),
        };
        let origin = Self {
            name: location.authority(),
            live: lookups.renewed(at, &addresses),
            addresses,
            server_name,
            proxy: proxy.cloned(),
            scheme: location.scheme,
            host: location.host.clone(),
            port: location.port,
        };
        Ok((origin, refusing))
    }

    pub(crate) fn holds(&self, location: &Location) -> bool {
        location.is_at(self.scheme, &self.host, self.port)
    }
}

/// The origins of redirects and of requests made during the run. Each is resolved once, on a thread
/// of its own.
#[derive(Debug)]
pub(crate) struct DiscoveredOrigins {
    lookups: Arc<Lookups>,
    all: Mutex<Vec<Arc<DiscoveredOrigin>>>,
}

#[derive(Debug)]
struct DiscoveredOrigin {
    location: Location,
    origin: OnceCell<Result<Arc<Origin>, Fault>>,
}

impl DiscoveredOrigins {
    pub(crate) fn new(lookups: Arc<Lookups>) -> Self {
        Self { lookups, all: Mutex::default() }
    }

    /// The number of the origin of `location` among those discovered.
    ///
    /// # Errors
    /// Its name has no address, or connections to it are not allowed; that is not retried.
    pub(crate) async fn number(&self, location: &Location) -> Result<usize, Fault> {
        let (number, entry) = self.entry(location).ok_or(Fault::RedirectLimit)?;
        match entry.origin.get_or_init(|| self.resolve(location)).await {
            Ok(_) => Ok(number),
            Err(fault) => Err(*fault),
        }
    }

    /// The origin with a number returned by [`number`](Self::number).
    pub(crate) fn get(&self, number: usize) -> Option<Arc<Origin>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(number)?.origin.get()?.clone().ok()
    }

    fn entry(&self, location: &Location) -> Option<(usize, Arc<DiscoveredOrigin>)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |entry: &Arc<DiscoveredOrigin>| entry.location.same_origin(location);
        if let Some(known) = all.iter().position(same) {
            return Some((known, Arc::clone(&all[known])));
        }
        if all.len() >= DISCOVERED_MAX {
            return None;
        }
        let (location, origin) = (location.clone(), OnceCell::new());
        let entry = Arc::new(DiscoveredOrigin { location, origin });
        all.push(Arc::clone(&entry));
        Some((all.len() - 1, entry))
    }

    async fn resolve(&self, location: &Location) -> Result<Arc<Origin>, Fault> {
        let (lookups, location) = (Arc::clone(&self.lookups), location.clone());
        let resolve = move || match Origin::resolve(&location, &lookups) {
            Ok((origin, _)) => Ok(Arc::new(origin)),
            Err(error) => Err(lookups::fault(&error)),
        };
        lookups::on_thread(resolve).await
    }
}
