//! Origins, known before the run or discovered during it.

use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gake_core::record::Fault;
use rustls::pki_types::ServerName;
use tokio::sync::{OnceCell, oneshot};

use crate::client::error::WireError;
use crate::client::settings::ClientSettings;
use crate::net::address::{Address, Resolver};
use crate::net::location::{Location, Scheme};
use crate::net::permit::{ConnectionPermit, NO_TARGET};
use crate::net::proxy::ForwardProxy;
use crate::net::source::SourceAddresses;

/// Maximum number of origins discovered in one run.
const DISCOVERED_MAX: usize = 1_000;

/// Time-out of a probe connection to one of several addresses.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Scheme, host and port, with their addresses.
#[derive(Debug)]
pub struct Origin {
    /// Host and port, for display.
    pub name: String,
    /// Its addresses; never empty.
    pub addresses: Vec<Address>,
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
        Self { name, addresses: vec![address], server_name, proxy, scheme, host, port }
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
        resolver: &Resolver,
        (sources, permit): (&SourceAddresses, Option<&Arc<ConnectionPermit>>),
    ) -> Result<(Self, Vec<Address>), WireError> {
        let proxy = resolver.proxy.as_ref().and_then(|rules| rules.proxy_for(location)).cloned();
        let addresses = match &proxy {
            Some(proxy) => resolver.addresses(proxy.host.clone(), proxy.port)?,
            None => resolver.resolve(&location.host, location.port)?,
        };
        let addresses = sources.reaching(&location.host, addresses)?;
        // Before any of them is probed.
        if permit.is_some_and(|permit| !permit.allows(&location.host, &addresses)) {
            return Err(WireError::NotAllowed(location.host.clone()));
        }
        let (addresses, refusing) = probe(addresses, permit);
        let server_name = match location.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(
                ServerName::try_from(location.host.clone())
                    .map_err(|_| WireError::ServerName(location.host.clone()))?,
            ),
        };
        let origin = Self {
            name: location.authority(),
            addresses,
            server_name,
            proxy,
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
    resolver: Arc<Resolver>,
    sources: Arc<SourceAddresses>,
    permit: Option<Arc<ConnectionPermit>>,
    all: Mutex<Vec<Arc<DiscoveredOrigin>>>,
}

#[derive(Debug)]
struct DiscoveredOrigin {
    location: Location,
    origin: OnceCell<Result<Arc<Origin>, Fault>>,
}

impl DiscoveredOrigins {
    pub(crate) fn new(resolver: Resolver, settings: &ClientSettings) -> Self {
        let (sources, permit) = (settings.sources.clone(), settings.permit.clone());
        let (resolver, sources) = (resolver.into(), sources.into());
        Self { resolver, sources, permit, all: Mutex::default() }
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
        let (sender, receiver) = oneshot::channel();
        let (resolver, sources) = (Arc::clone(&self.resolver), Arc::clone(&self.sources));
        let (location, permit) = (location.clone(), self.permit.clone());
        // Not on the runtime's blocking pool: the end of a run would wait for its threads.
        std::thread::Builder::new()
            .name("gake-resolve".to_owned())
            .spawn(move || {
                let by = (sources.as_ref(), permit.as_ref());
                let origin = match Origin::resolve(&location, &resolver, by) {
                    Ok((origin, _)) => Ok(Arc::new(origin)),
                    Err(WireError::NotAllowed(_)) => Err(NO_TARGET),
                    Err(_) => Err(Fault::Dns),
                };
                // The receiver may be gone.
                let _ = sender.send(origin);
            })
            .map_err(|_| Fault::Dns)?;
        receiver.await.unwrap_or(Err(Fault::Dns))
    }
}

/// Splits the addresses of a name into reachable and unreachable ones; if none is reachable, keeps
/// all, for the run to report. A single address is not probed. Probes need a permit, too; without
/// one an address counts as reachable.
fn probe(
    addresses: Vec<Address>,
    permit: Option<&Arc<ConnectionPermit>>,
) -> (Vec<Address>, Vec<Address>) {
    if addresses.len() < 2 {
        return (addresses, Vec::new());
    }
    let is_reachable = |address: &Address| match address {
        Address::Tcp(address) => TcpStream::connect_timeout(address, PROBE_TIMEOUT).is_ok(),
        Address::Unix(_) => true,
    };
    let results: Vec<bool> = match permit {
        // In sequence: each takes a permit.
        Some(permit) => {
            let permitted = |address| permit.take().map_or(true, |_open| is_reachable(address));
            addresses.iter().map(permitted).collect()
        }
        // In parallel: a name may have many addresses, and each may take the whole time-out.
        None => std::thread::scope(|scope| {
            let probes: Vec<_> =
                addresses.iter().map(|a| scope.spawn(move || is_reachable(a))).collect();
            probes.into_iter().map(|probe| probe.join().unwrap_or(true)).collect()
        }),
    };
    let mut results = results.into_iter();
    let (good, bad): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|_| results.next().unwrap_or(true));
    if good.is_empty() { (bad, Vec::new()) } else { (good, bad) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};

    use super::*;

    #[test]
    fn a_probe_takes_a_permit() {
        let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        open.set_nonblocking(true).unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (open_at, free_at) = (open.local_addr().unwrap(), free.local_addr().unwrap());
        drop(free);
        let addresses = || [open_at, free_at].map(Address::Tcp).to_vec();
        let permit = Arc::new(ConnectionPermit::new(|_, _| true, Some(1)));
        let at = |address: SocketAddr| vec![Address::Tcp(address)];
        assert_eq!(probe(addresses(), Some(&permit)), (at(open_at), at(free_at)));
        assert!(open.accept().is_ok(), "it was probed");
        let held = permit.take().unwrap();
        assert_eq!(probe(addresses(), Some(&permit)), (addresses(), Vec::new()));
        assert!(open.accept().is_err(), "nothing is opened without a permit");
        drop(held);
    }
}
