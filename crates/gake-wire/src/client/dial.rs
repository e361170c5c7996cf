//! Opening connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use gake_codec::http1::KnownHeads;
use gake_codec::websocket::UpgradeRequest;
use gake_core::clock::{Clock, Nanos, SECOND};
use gake_core::record::{Exchange, Fault, Phase};
use rustix::time::{ClockId, clock_gettime};
use rustls::ClientConfig;
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::client::early::EarlyRequest;
use crate::client::lookups::LiveAddresses;
use crate::client::meter::{Meter, OpenGuard};
use crate::client::network::{Network, is_loopback};
use crate::client::origin::Origin;
use crate::client::request::PreparedRequest;
use crate::client::transport::{AnyTransport, Http1, Http2, Http2Options, WebSocket, upgrade};
use crate::net::address::Address;
use crate::net::alarm::Alarm;
use crate::net::alternative::Alternatives;
use crate::net::deadline::Deadline;
use crate::net::fault;
use crate::net::ports::LocalPorts;
use crate::net::scratch::Scratch;
use crate::net::sockopt;
use crate::net::stream::{Link, Stream};
use crate::tls::facts::ConnectionFacts;
use crate::tls::handshakes::Handshake;
use crate::tls::protocol::Protocol;
use crate::tls::stapling;

/// A source address without free ports is skipped for this long: every further try would search the
/// whole port range in the kernel.
const SOURCE_PAUSE: Nanos = SECOND;

#[derive(Debug)]
pub(crate) struct Dialer<C> {
    pub(crate) network: Arc<Network>,
    pub(crate) clock: C,
    pub(crate) meter: Rc<Meter>,
    scratch: Rc<Scratch>,
    /// The number of the next connection, for the round-robin of addresses and sources.
    next: Cell<usize>,
    /// Until when each source is skipped.
    paused: RefCell<Vec<Nanos>>,
    current: RefCell<CurrentAddresses>,
    /// The known heads of each origin, by its number.
    known: RefCell<Vec<Rc<RefCell<KnownHeads>>>>,
    pub(crate) alternatives: Alternatives,
}

/// The addresses of origins as of a number of changes, so that connections take no lock.
#[derive(Debug, Default)]
struct CurrentAddresses {
    changes: u32,
    by_origin: Vec<Option<Arc<[Address]>>>,
}

/// A new connection, before its protocol starts.
pub(crate) struct DialedStream {
    pub(crate) stream: Stream,
    /// `None` for a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) open: OpenGuard,
    /// When it was open, and how long that took.
    times: (Nanos, Nanos),
    /// Bytes of the request accepted as early data.
    early: usize,
}

impl<C: Clock + Clone + 'static> Dialer<C> {
    /// `first`: the start of the round-robin, different for each worker.
    pub(crate) fn new(
        network: Arc<Network>,
        clock: C,
        (meter, scratch): (Rc<Meter>, Rc<Scratch>),
        first: usize,
    ) -> Self {
        let sources = &network.settings.sources.addresses;
        let paused = RefCell::new(vec![0; sources.len().max(network.loopback_sources.len())]);
        let next = Cell::new(first);
        let (known, alternatives) = (RefCell::default(), Alternatives::default());
        let current = RefCell::default();
        Self { network, clock, meter, scratch, next, paused, current, known, alternatives }
    }

    /// Opens a connection to an origin, by its number, and records the time in `exchange`. The request
    /// may be sent as early data; then it must be the first exchange on the connection. `alarm` stands
    /// at the end of the request; it is set to the connect time-out meanwhile.
    pub(crate) async fn dial(
        &self,
        to: (u32, Option<&PreparedRequest>),
        alarm: &Alarm<'_>,
        deadline: &Deadline,
        exchange: &mut Exchange,
    ) -> Result<AnyTransport, Fault> {
        let begun = self.clock.now();
        let limit = begun.saturating_add(deadline.connect);
        alarm.set(limit.min(deadline.end));
        let opened = alarm.before(pin!(self.open(to, begun, exchange))).await;
        alarm.set(deadline.end);
        opened.unwrap_or(Err(match limit < deadline.end {
            true => Fault::ConnectTimeout,
            false => Fault::Timeout(Phase::Connect),
        }))
    }

    async fn open(
        &self,
        (number, request): (u32, Option<&PreparedRequest>),
        begun: Nanos,
        exchange: &mut Exchange,
    ) -> Result<AnyTransport, Fault> {
        let Network { tls, early, upgrade, settings, .. } = &*self.network;
        let request = request.filter(|request| request.rendered.replayable);
        if settings.protocol == Protocol::Http3 && self.network.is_tls(number) {
            return self.open_quic((number, request), None, begun, exchange).await;
        }
        if let Some(port) = self.alternatives.port(number)
            && let Some(opened) = self.open_alternative(number, port, begun, exchange).await
        {
            return Ok(opened);
        }
        let is_tunnelled = upgrade.is_some();
        let tls = match (&early.tls, request) {
            (Some(tls), Some(request)) => (Some(tls), Some(&*request.rendered.first)),
            _ => (tls.as_ref(), None),
        };
        let connected = self.connect(number, begun, exchange, tls, is_tunnelled).await?;
        match upgrade {
            Some(upgrade) => self.upgrade(connected, upgrade, exchange).await,
            None => self.speak(connected, number),
        }
    }

    /// Connects to an origin, with TLS if it is https, where a request may be sent as early data. With
    /// `is_tunnelled`, clear text goes through the proxy's tunnel, too.
    pub(crate) async fn connect(
        &self,
        number: u32,
        begun: Nanos,
        exchange: &mut Exchange,
        (tls, request): (Option<&Arc<ClientConfig>>, Option<&[u8]>),
        is_tunnelled: bool,
    ) -> Result<DialedStream, Fault> {
        let discovered;
        let origin = match self.network.origins.get(number as usize) {
            Some(origin) => origin,
            None => {
                discovered = self.network.discovered(number).ok_or(Fault::Dns)?;
                &*discovered
            }
        };
        let (address, turn) = self.address(number, origin).await?;
        let permitted = self.network.permitted()?;
        let (link, peer) = match address {
            Address::Tcp(address) => {
                let opened = self.open_tcp(address, turn).await;
                let opened = opened.inspect_err(|_| self.has_failed(address));
                (opened.map_err(|fault| of_proxy(fault, origin))?, Some(address))
            }
            Address::Unix(path) => (open_unix(&path).await?, None),
        };
        let has_tunnel = origin.server_name.is_some() || is_tunnelled;
        let link = match (&origin.proxy, link) {
            (Some(proxy), Link::Tcp(tcp)) => {
                let is_clear = !has_tunnel && proxy.takes_requests();
                if is_clear && self.network.settings.protocol == Protocol::Http2 {
                    return Err(Fault::Proxy("it carries no HTTP/2 in clear"));
                }
                let mut link = proxy.link(tcp, self.network.proxy_tls.as_ref()).await?;
                if !is_clear {
                    proxy.tunnel(&mut link, &origin.tunnel_authority()).await?;
                }
                link
            }
            (_, link) => link,
        };
        let open = self.meter.opened(permitted);
        let connected = self.clock.now();
        let connect = connected - begun;
        // With redirects, an exchange may open several connections.
        exchange.connect = Some(exchange.connect.unwrap_or(0) + connect);
        let (stream, early) = match (&origin.server_name, tls) {
            (Some(name), Some(config)) => {
                let request = request.map(EarlyRequest::new);
                self.secure(link, (name, config), request, connected, exchange).await?
            }
            (Some(_), None) => return Err(Fault::Tls("TLS was not set up for this origin")),
            (None, _) => (Stream::Plain(link), 0),
        };
        Ok(DialedStream { stream, peer, open, times: (connected, connect), early })
    }

    /// Makes a handshake, which begins at `connected`. Returns the bytes accepted as early data, too.
    async fn secure(
        &self,
        link: Link,
        (name, config): (&ServerName<'static>, &Arc<ClientConfig>),
        mut request: Option<EarlyRequest<'_>>,
        connected: Nanos,
        exchange: &mut Exchange,
    ) -> Result<(Stream, usize), Fault> {
        let begin = |session: &mut ClientConnection| {
            if let Some(request) = &mut request {
                request.send(session, exchange, connected);
            }
        };
        let (stream, is_stapled) = stapling::watched(secure(name, config, link, begin)).await;
        let stream = stream?;
        let handshake = self.clock.now() - connected;
        exchange.tls = Some(exchange.tls.unwrap_or(0) + handshake);
        let sent = request.filter(EarlyRequest::is_sent);
        let is_early_accepted = sent.as_ref().map(|_| stream.is_early_data_accepted());
        if let Some(facts) = stream.tls_facts() {
            self.meter.handshake(Handshake { facts, is_stapled, is_early_accepted });
        }
        let accepted = sent.filter(|_| is_early_accepted == Some(true));
        Ok((stream, accepted.map_or(0, |request| request.len())))
    }

    /// Opens a WebSocket session, possibly refused. The upgrade counts as connecting.
    async fn upgrade(
        &self,
        connected: DialedStream,
        upgrade: &UpgradeRequest,
        exchange: &mut Exchange,
    ) -> Result<AnyTransport, Fault> {
        let DialedStream { mut stream, peer, open, times, .. } = connected;
        let begun = self.clock.now();
        let upgraded = upgrade::open(&mut stream, upgrade, &self.scratch).await?;
        self.meter.add_bytes(upgraded.bytes_in, upgraded.bytes_out);
        let took = self.clock.now() - begun;
        exchange.connect = Some(exchange.connect.unwrap_or(0) + took);
        let reply = self.network.settings.reply.clone();
        WebSocket::new((stream, peer), &upgraded, reply, &self.scratch, open, times)
            .map(AnyTransport::WebSocket)
    }

    /// Starts the negotiated protocol on a connection to origin `number`.
    fn speak(&self, connected: DialedStream, number: u32) -> Result<AnyTransport, Fault> {
        let DialedStream { stream, peer, open, times, early } = connected;
        let settings = &self.network.settings;
        let has_http2 = stream.alpn().is_some_and(|protocol| protocol == b"h2");
        let is_http2 = match settings.protocol {
            Protocol::Http1 | Protocol::WebSocket => false,
            Protocol::Negotiated | Protocol::Advertised => has_http2,
            // A URL without TLS, of a script or a redirect.
            Protocol::Http3 => false,
            Protocol::Http2 if stream.is_plain() || has_http2 => true,
            Protocol::Http2 => return Err(Fault::Tls("the peer does not offer HTTP/2")),
        };
        let tls = stream.tls_facts();
        let facts = ConnectionFacts { peer, is_http2, is_http3: false, tls };
        if !is_http2 {
            let known = self.known(number);
            let http1 = Http1::new(stream, facts, known, settings.limits, open, times);
            http1.has_sent(early);
            return Ok(AnyTransport::Http1(http1));
        }
        let limits = settings.connection_limits();
        let (at, took) = times;
        let options = Http2Options { limits, facts, is_single_use: !settings.keepalive, at, took };
        let scratch = Rc::clone(&self.scratch);
        let http2 = Http2::new(stream, &options, scratch, self.clock.clone(), open);
        Ok(AnyTransport::Http2(http2))
    }

    /// The number of the next connection.
    pub(crate) fn turn(&self) -> usize {
        self.next.replace(self.next.get().wrapping_add(1))
    }

    /// The address of the next connection to an origin, and its turn among the sources: every source
    /// is combined with every address.
    pub(crate) async fn address(
        &self,
        number: u32,
        origin: &Origin,
    ) -> Result<(Address, usize), Fault> {
        let turn = self.turn();
        let pick = |all: &[Address]| (all[turn % all.len()].clone(), turn / all.len());
        match &origin.live {
            None => Ok(pick(&origin.addresses)),
            Some(live) if self.network.lookups.is_per_connection() => {
                Ok(pick(&self.network.lookups.fresh(live).await?))
            }
            Some(live) => Ok(pick(&self.current(number, live))),
        }
    }

    fn current(&self, number: u32, live: &LiveAddresses) -> Arc<[Address]> {
        let mut current = self.current.borrow_mut();
        let changes = self.network.lookups.changes();
        if current.changes != changes {
            current.by_origin.clear();
            current.changes = changes;
        }
        let number = number as usize;
        if number >= current.by_origin.len() {
            current.by_origin.resize(number + 1, None);
        }
        Arc::clone(current.by_origin[number].get_or_insert_with(|| live.current()))
    }

    /// Whether later lookups of an origin have found that it is not at `peer` any more.
    pub(crate) fn has_left(&self, number: u32, peer: Option<SocketAddr>) -> bool {
        let is_at = |live: &LiveAddresses, peer: SocketAddr| {
            let same = |to: &Address| matches!(to, Address::Tcp(to) if to.ip() == peer.ip());
            self.current(number, live).iter().any(same)
        };
        let left = |origin: &Origin| Some(!is_at(origin.live.as_ref()?, peer?));
        match self.network.origins.get(number as usize) {
            Some(origin) => left(origin),
            None => self.network.discovered(number).and_then(|origin| left(&origin)),
        }
        .unwrap_or(false)
    }

    /// Counts a failed connection.
    pub(crate) fn has_failed(&self, address: SocketAddr) {
        if self.network.counts_addresses {
            self.meter.addresses.borrow_mut().add(address, None, true);
        }
    }

    fn known(&self, number: u32) -> Rc<RefCell<KnownHeads>> {
        let mut known = self.known.borrow_mut();
        let number = number as usize;
        if number >= known.len() {
            known.resize_with(number + 1, Rc::default);
        }
        Rc::clone(&known[number])
    }

    async fn open_tcp(&self, address: SocketAddr, turn: usize) -> Result<Link, Fault> {
        let own = &self.network.settings.sources.addresses;
        let sources = match own.is_empty() && is_loopback(address.ip()) {
            true => &self.network.loopback_sources,
            false => own,
        };
        if sources.is_empty() {
            return self.connect_from(address, None).await.map_err(|e| fault::of_connect(&e));
        }
        let count = sources.len();
        for step in 0..count {
            let at = (turn + step) % count;
            let source = sources[at];
            let fits = source.is_ipv4() == address.is_ipv4();
            if !fits || self.paused.borrow()[at] > self.clock.now() {
                continue;
            }
            match self.connect_from(address, Some(source)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => match fault::of_connect(&error) {
                    Fault::NoLocalPort => {
                        self.paused.borrow_mut()[at] = self.clock.now() + SOURCE_PAUSE;
                    }
                    fault => return Err(fault),
                },
            }
        }
        Err(Fault::NoLocalPort)
    }

    async fn connect_from(&self, address: SocketAddr, source: Option<IpAddr>) -> io::Result<Link> {
        let socket = self.network.settings.sources.socket(address.ip(), source)?;
        if let Some(range) = self.network.ports.and_then(LocalPorts::own_range) {
            // Optional: without it the search is slower.
            let _ = sockopt::local_port_range(socket.as_fd(), range);
        }
        if self.network.is_small {
            // Congestion control is irrelevant to requests within the initial window, except that
            // BBR delays them by pacing, at the cost of CPU time. Reno is always available.
            let _ = socket.set_tcp_congestion(b"reno");
        }
        let before = thread_cpu();
        let begun = socket.connect(&address.into());
        self.meter.connect_called(thread_cpu().saturating_sub(before));
        match begun {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let stream = TcpStream::from_std(socket.into())?;
        stream.writable().await?;
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(Link::Tcp(stream)),
        }
    }
}

/// CPU time of this thread: the cost of a call, independent of the load of the machine.
fn thread_cpu() -> Nanos {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// The fault of a failed connection, which is the proxy's if the origin has one.
fn of_proxy(fault: Fault, origin: &Origin) -> Fault {
    match fault {
        Fault::ConnectRefused if origin.is_proxied() => Fault::Proxy(fault::PROXY_REFUSED),
        Fault::ConnectReset | Fault::Unreachable(_) if origin.is_proxied() => {
            Fault::Proxy("it cannot be reached")
        }
        fault => fault,
    }
}

/// Makes a handshake over `link`; `begin` gets the session before its first byte.
pub(crate) async fn secure(
    name: &ServerName<'static>,
    config: &Arc<ClientConfig>,
    link: Link,
    begin: impl FnOnce(&mut ClientConnection),
) -> Result<Stream, Fault> {
    let connector = TlsConnector::from(Arc::clone(config));
    let secured = connector.connect_with(name.clone(), link, begin).await;
    secured.map(|stream| Stream::Tls(Box::new(stream))).map_err(|error| fault::of_handshake(&error))
}

async fn open_unix(path: &Path) -> Result<Link, Fault> {
    UnixStream::connect(path).await.map(Link::Unix).map_err(|error| fault::of_connect(&error))
}
