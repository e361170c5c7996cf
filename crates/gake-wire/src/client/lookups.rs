//! Lookups of names: before the run and, with a time to live, again beside it.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use gake_core::record::Fault;
use tokio::sync::oneshot;

use crate::client::error::WireError;
use crate::client::settings::ClientSettings;
use crate::net::address::{Address, Resolver};
use crate::net::permit::{ConnectionPermit, NO_TARGET};
use crate::net::proxy::ForwardProxy;
use crate::net::source::SourceAddresses;

/// Time-out of a probe connection to one of several addresses.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// How the names of a network become addresses.
#[derive(Debug)]
pub(crate) struct Lookups {
    pub(crate) resolver: Resolver,
    sources: SourceAddresses,
    permit: Option<Arc<ConnectionPermit>>,
    ttl: Option<Duration>,
    /// Changes of the addresses of any origin.
    changes: AtomicU32,
    renewed: Mutex<Vec<Arc<LiveAddresses>>>,
    /// Ends the thread of later lookups when it is dropped.
    _thread: Option<Sender<Infallible>>,
}

/// A host and its port, and the proxy for it, whose addresses are its own then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoint<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) proxy: Option<&'a ForwardProxy>,
}

/// The addresses of an origin that is looked up again during the run.
#[derive(Debug)]
pub(crate) struct LiveAddresses {
    host: String,
    port: u16,
    proxy: Option<ForwardProxy>,
    /// Never empty.
    current: Mutex<Arc<[Address]>>,
}

impl Lookups {
    /// With a time to live, it starts a thread, which ends with the last reference.
    pub(crate) fn new(resolver: Resolver, settings: &ClientSettings) -> Arc<Self> {
        let ttl = settings.dns_ttl;
        Arc::new_cyclic(|all| Self {
            resolver,
            sources: settings.sources.clone(),
            permit: settings.permit.clone(),
            ttl,
            changes: AtomicU32::new(0),
            renewed: Mutex::default(),
            _thread: ttl.filter(|ttl| !ttl.is_zero()).and_then(|ttl| start(all.clone(), ttl)),
        })
    }

    /// The addresses of a host to connect to, and its unreachable ones. Blocks. Those in `known` are
    /// not probed.
    pub(crate) fn addresses(
        &self,
        Endpoint { host, port, proxy }: Endpoint<'_>,
        known: &[Address],
    ) -> Result<(Vec<Address>, Vec<Address>), WireError> {
        let addresses = match proxy {
            Some(proxy) => self.resolver.addresses(proxy.host.clone(), proxy.port)?,
            None => self.resolver.resolve(host, port)?,
        };
        let addresses = self.sources.reaching(host, addresses)?;
        // Before any of them is probed.
        if self.permit.as_ref().is_some_and(|permit| !permit.allows(host, &addresses)) {
            return Err(WireError::NotAllowed(host.to_owned()));
        }
        Ok(probe(addresses, known, self.permit.as_ref()))
    }

    /// Has an origin looked up again, if the network does that and its host is a name.
    pub(crate) fn renewed(
        &self,
        Endpoint { host, port, proxy }: Endpoint<'_>,
        addresses: &[Address],
    ) -> Option<Arc<LiveAddresses>> {
        if self.ttl.is_none() || self.resolver.is_fixed(host, port, proxy) {
            return None;
        }
        let (host, proxy) = (host.to_owned(), proxy.cloned());
        let current = Mutex::new(addresses.into());
        let live = Arc::new(LiveAddresses { host, port, proxy, current });
        lock(&self.renewed).push(Arc::clone(&live));
        Some(live)
    }

    /// Whether each new connection has a lookup of its own.
    pub(crate) fn is_per_connection(&self) -> bool {
        self.ttl == Some(Duration::ZERO)
    }

    /// Whether names are looked up more than once.
    pub(crate) fn are_repeated(&self) -> bool {
        self.ttl.is_some()
    }

    /// How often the addresses of an origin have changed so that open connections must follow.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Looks a name up for one connection, on a thread of its own.
    pub(crate) async fn fresh(
        self: &Arc<Self>,
        live: &Arc<LiveAddresses>,
    ) -> Result<Arc<[Address]>, Fault> {
        let (all, live) = (Arc::clone(self), Arc::clone(live));
        on_thread(move || {
            live.renew(&all).map_err(|error| fault(&error))?;
            Ok(live.current())
        })
        .await
    }

    /// Looks all names up again. An origin keeps its addresses when its lookup fails.
    fn renew(&self) {
        let all = lock(&self.renewed).clone();
        let changed = all.iter().filter(|live| live.renew(self).unwrap_or(false)).count();
        if changed > 0 {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }
}

impl LiveAddresses {
    pub(crate) fn current(&self) -> Arc<[Address]> {
        Arc::clone(&lock(&self.current))
    }

    /// Looks the name up; whether its addresses are others now.
    fn renew(&self, by: &Lookups) -> Result<bool, WireError> {
        let known = self.current();
        let at = Endpoint { host: &self.host, port: self.port, proxy: self.proxy.as_ref() };
        let (addresses, _) = by.addresses(at, &known)?;
        let is_same = addresses.len() == known.len() && addresses.iter().all(|a| known.contains(a));
        if !is_same {
            *lock(&self.current) = addresses.into();
        }
        Ok(!is_same)
    }
}

/// The fault of a lookup during the run.
pub(crate) fn fault(error: &WireError) -> Fault {
    match error {
        WireError::NotAllowed(_) => NO_TARGET,
        _ => Fault::Dns,
    }
}

/// Looks something up on a thread of its own; on the runtime's blocking pool the end of a run would
/// wait for it.
pub(crate) async fn on_thread<T: Send + 'static>(
    look_up: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("gake-resolve".to_owned())
        .spawn(move || {
            // The receiver may be gone.
            let _ = sender.send(look_up());
        })
        .map_err(|_| Fault::Dns)?;
    receiver.await.unwrap_or(Err(Fault::Dns))
}

/// Starts the thread of later lookups; `None` without one leaves the first addresses.
fn start(all: Weak<Lookups>, ttl: Duration) -> Option<Sender<Infallible>> {
    let (sender, receiver) = channel();
    let name = "gake-resolve".to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(move || repeat(&all, ttl, &receiver));
    thread.is_ok().then_some(sender)
}

fn repeat(all: &Weak<Lookups>, ttl: Duration, end: &Receiver<Infallible>) {
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(ttl) {
        let Some(all) = all.upgrade() else { return };
        all.renew();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Splits the addresses of a name into reachable and unreachable ones; if none is reachable, keeps
/// all, for the run to report. Neither a single address nor one of `known` is probed. Probes need a
/// permit, too; without one an address counts as reachable.
fn probe(
    addresses: Vec<Address>,
    known: &[Address],
    permit: Option<&Arc<ConnectionPermit>>,
) -> (Vec<Address>, Vec<Address>) {
    if addresses.len() < 2 {
        return (addresses, Vec::new());
    }
    let opens = |to: &SocketAddr| TcpStream::connect_timeout(to, PROBE_TIMEOUT).is_ok();
    let is_reachable = |address: &Address| match address {
        Address::Tcp(to) => known.contains(address) || opens(to),
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
    use std::net::{IpAddr, Ipv4Addr, TcpListener};

    use super::*;
    use crate::net::address::NameLookup;

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
        assert_eq!(probe(addresses(), &[], Some(&permit)), (at(open_at), at(free_at)));
        assert!(open.accept().is_ok(), "it was probed");
        let held = permit.take().unwrap();
        assert_eq!(probe(addresses(), &[], Some(&permit)), (addresses(), Vec::new()));
        assert!(open.accept().is_err(), "nothing is opened without a permit");
        drop(held);
        assert_eq!(probe(addresses(), &addresses(), None), (addresses(), Vec::new()));
        assert!(open.accept().is_err(), "known addresses are not probed");
    }

    #[test]
    fn later_lookups_replace_addresses_and_failed_ones_keep_them() {
        let answers: Vec<Option<[u8; 4]>> =
            vec![Some([127, 0, 0, 2]), None, Some([127, 0, 0, 2]), Some([127, 0, 0, 3])];
        let answers = Mutex::new(answers.into_iter());
        let names = NameLookup::new(move |_| {
            let next = answers.lock().unwrap().next().flatten();
            let address = next.ok_or(std::io::ErrorKind::NotFound)?;
            Ok(vec![IpAddr::from(address)])
        });
        let mut resolver = Resolver::default();
        resolver.names = Some(names);
        let ttl = Some(Duration::from_secs(1_000_000));
        let settings = ClientSettings { dns_ttl: ttl, ..ClientSettings::default() };
        let lookups = Lookups::new(resolver, &settings);
        let of = |host| Endpoint { host, port: 80, proxy: None };
        let (first, _) = lookups.addresses(of("h.test"), &[]).unwrap();
        let live = lookups.renewed(of("h.test"), &first).unwrap();
        let at = |last: u8| Address::Tcp(SocketAddr::from(([127, 0, 0, last], 80)));
        for (changes, last) in [(0, 2), (0, 2), (1, 3), (1, 3)] {
            lookups.renew();
            assert_eq!((lookups.changes(), &live.current()[..]), (changes, &[at(last)][..]));
        }
        assert!(lookups.renewed(of("127.0.0.1"), &first).is_none(), "an address is no name");
    }
}
