//! Opening connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos, SECOND};
use gake_core::record::{Exchange, Fault, Phase};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, UnixStream};
use tokio_rustls::TlsConnector;

use crate::address::Address;
use crate::conn::Conn;
use crate::deadline::Deadline;
use crate::fault;
use crate::meter::Meter;
use crate::stream::Stream;
use crate::wire::Wire;

/// A source address whose ports ran out rests this long: every further try would search the whole
/// port range in the kernel.
const SOURCE_REST: Nanos = SECOND;

/// How long an address may take to show that it answers, when a name has several.
const PROBE: Duration = Duration::from_secs(1);

/// Opens the connections of one worker.
#[derive(Debug)]
pub(crate) struct Dialer<C> {
    pub(crate) wire: Arc<Wire>,
    pub(crate) clock: C,
    pub(crate) meter: Rc<Meter>,
    /// The number of the next connection, for turns among addresses and sources.
    next: Cell<usize>,
    /// Until when each source rests.
    resting: RefCell<Vec<Nanos>>,
}

impl<C: Clock> Dialer<C> {
    /// `first` is where the turns start, different for each worker.
    pub(crate) fn new(wire: Arc<Wire>, clock: C, meter: Rc<Meter>, first: usize) -> Self {
        let sources = wire.settings.sources.addresses.len();
        Self { wire, clock, meter, next: Cell::new(first), resting: RefCell::new(vec![0; sources]) }
    }

    /// Opens a connection to origin number `number`, and notes in `exchange` how long it took.
    /// `deadline` is set to the end of the request; the connect time-out is kept within it, and
    /// it is set back to `request_ends` after.
    pub(crate) async fn dial(
        &self,
        number: u32,
        deadline: &Deadline,
        request_ends: Nanos,
        exchange: &mut Exchange,
    ) -> Result<Box<Conn>, Fault> {
        let begun = self.clock.now();
        let limit = begun.saturating_add(nanos(self.wire.settings.timeouts.connect));
        deadline.set(limit.min(request_ends));
        let opened = {
            let opening = self.open(number, begun, exchange);
            deadline.before(std::pin::pin!(opening)).await
        };
        deadline.set(request_ends);
        opened.unwrap_or(Err(match limit < request_ends {
            true => Fault::ConnectTimeout,
            false => Fault::Timeout(Phase::Connect),
        }))
    }

    async fn open(
        &self,
        number: u32,
        begun: Nanos,
        exchange: &mut Exchange,
    ) -> Result<Box<Conn>, Fault> {
        let found;
        let origin = match self.wire.origins.get(number as usize) {
            Some(origin) => origin,
            None => {
                found = self.wire.found(number).ok_or(Fault::Dns)?;
                &*found
            }
        };
        let turn = self.next.replace(self.next.get().wrapping_add(1));
        let addresses = &origin.addresses;
        let stream = match &addresses[turn % addresses.len()] {
            // Each source takes its turn with every address.
            Address::Tcp(address) => self.open_tcp(*address, turn / addresses.len()).await?,
            Address::Unix(path) => open_unix(path).await?,
        };
        let guard = self.meter.opened();
        let connected = self.clock.now();
        let connect = connected - begun;
        // The times of an arrival that opens several connections, for redirects, add up.
        exchange.connect = Some(exchange.connect.unwrap_or(0) + connect);
        let stream = match (&origin.server_name, &self.wire.tls) {
            (Some(name), Some(config)) => {
                let stream = secure(name, config, stream).await?;
                let handshake = self.clock.now() - connected;
                exchange.tls = Some(exchange.tls.unwrap_or(0) + handshake);
                stream
            }
            _ => stream,
        };
        let limits = self.wire.settings.limits;
        Ok(Box::new(Conn::new(stream, number, limits, guard, connected, connect)))
    }

    async fn open_tcp(&self, address: SocketAddr, turn: usize) -> Result<Stream, Fault> {
        let sources = &self.wire.settings.sources;
        if sources.addresses.is_empty() {
            return self.connect_from(address, None).await.map_err(|e| fault::of_connect(&e));
        }
        let count = sources.addresses.len();
        for step in 0..count {
            let at = (turn + step) % count;
            let source = sources.addresses[at];
            let fits = source.is_ipv4() == address.is_ipv4();
            if !fits || self.resting.borrow()[at] > self.clock.now() {
                continue;
            }
            match self.connect_from(address, Some(source)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => match fault::of_connect(&error) {
                    Fault::NoLocalPort => {
                        self.resting.borrow_mut()[at] = self.clock.now() + SOURCE_REST;
                    }
                    fault => return Err(fault),
                },
            }
        }
        Err(Fault::NoLocalPort)
    }

    async fn connect_from(
        &self,
        address: SocketAddr,
        source: Option<IpAddr>,
    ) -> io::Result<Stream> {
        let socket = self.wire.settings.sources.socket(address.ip(), source)?;
        if self.wire.small {
            // Congestion control has no say in requests that fit into the initial window, except
            // that BBR, where it is the default, delays them to pace them and costs CPU time for
            // each. Reno is always there; a kernel that refuses it goes on with its own.
            let _ = socket.set_tcp_congestion(b"reno");
        }
        let socket = TcpSocket::from_std_stream(socket.into());
        Ok(Stream::Tcp(socket.connect(address).await?))
    }
}

async fn secure(
    name: &ServerName<'static>,
    config: &Arc<ClientConfig>,
    stream: Stream,
) -> Result<Stream, Fault> {
    let connector = TlsConnector::from(Arc::clone(config));
    let secured = match stream {
        Stream::Tcp(tcp) => {
            connector.connect(name.clone(), tcp).await.map(|s| Stream::TcpTls(Box::new(s)))
        }
        Stream::Unix(unix) => {
            connector.connect(name.clone(), unix).await.map(|s| Stream::UnixTls(Box::new(s)))
        }
        secured => Ok(secured),
    };
    secured.map_err(|error| fault::of_handshake(&error))
}

async fn open_unix(path: &Path) -> Result<Stream, Fault> {
    UnixStream::connect(path).await.map(Stream::Unix).map_err(|error| fault::of_connect(&error))
}

/// Splits the addresses of a name into those that take a connection and those that do not; when
/// none does, all are kept, for the run to report. One address is not asked.
pub(crate) fn answering(addresses: Vec<Address>) -> (Vec<Address>, Vec<Address>) {
    if addresses.len() < 2 {
        return (addresses, Vec::new());
    }
    let answers = |address: &Address| match address {
        Address::Tcp(address) => std::net::TcpStream::connect_timeout(address, PROBE).is_ok(),
        Address::Unix(_) => true,
    };
    // All at once: a name may have many addresses, and each may take the whole time.
    let asked = std::thread::scope(|scope| {
        let asking: Vec<_> = addresses.iter().map(|a| scope.spawn(move || answers(a))).collect();
        asking.into_iter().map(|answer| answer.join().unwrap_or(true)).collect::<Vec<_>>()
    });
    let mut asked = asked.into_iter();
    let (good, bad): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|_| asked.next().unwrap_or(true));
    if good.is_empty() { (bad, Vec::new()) } else { (good, bad) }
}

/// A duration in nanoseconds.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
