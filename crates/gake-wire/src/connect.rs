//! Opening connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos, SECOND};
use gake_core::record::{Fault, Phase};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, UnixStream};
use tokio_rustls::TlsConnector;

use crate::address::Address;
use crate::conn::Conn;
use crate::deadline::Deadline;
use crate::fault;
use crate::meter::{Meter, OpenGuard};
use crate::sockopt;
use crate::stream::Stream;
use crate::wire::{Origin, Wire};

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

/// A connection, or why there is none, and how long it took.
pub(crate) struct Dialed {
    pub(crate) conn: Result<Box<Conn>, Fault>,
    pub(crate) connect: Nanos,
    pub(crate) tls: Option<Nanos>,
}

impl<C: Clock> Dialer<C> {
    /// `first` is where the turns start, different for each worker.
    pub(crate) fn new(wire: Arc<Wire>, clock: C, meter: Rc<Meter>, first: usize) -> Self {
        let sources = wire.settings.sources.addresses.len();
        Self { wire, clock, meter, next: Cell::new(first), resting: RefCell::new(vec![0; sources]) }
    }

    /// Opens a connection to origin number `number`. `deadline` is set to the end of the request;
    /// the connect time-out is kept within it, and it is set back to `request_ends` after.
    pub(crate) async fn dial(
        &self,
        number: u32,
        deadline: &Deadline,
        request_ends: Nanos,
    ) -> Dialed {
        let begun = self.clock.now();
        let limit = begun.saturating_add(nanos(self.wire.settings.timeouts.connect));
        deadline.set(limit.min(request_ends));
        let mut dialed = Dialed { conn: Err(Fault::ConnectTimeout), connect: 0, tls: None };
        {
            let opening = self.open(number, begun, &mut dialed);
            if deadline.before(std::pin::pin!(opening)).await.is_none() {
                let whole = limit >= request_ends;
                let fault =
                    if whole { Fault::Timeout(Phase::Connect) } else { Fault::ConnectTimeout };
                dialed.conn = Err(fault);
                dialed.connect = self.clock.now() - begun;
            }
        }
        deadline.set(request_ends);
        dialed
    }

    async fn open(&self, number: u32, begun: Nanos, dialed: &mut Dialed) {
        let origin = &self.wire.origins[number as usize];
        let turn = self.next.replace(self.next.get().wrapping_add(1));
        let stream = match &origin.addresses[turn % origin.addresses.len()] {
            Address::Tcp(address) => self.open_tcp(*address, turn).await,
            Address::Unix(path) => open_unix(path).await,
        };
        let connected = self.clock.now();
        dialed.connect = connected - begun;
        dialed.conn = match stream {
            Ok(stream) => {
                let guard = self.meter.opened();
                let secured = self.secure(origin, stream, guard).await;
                if origin.server_name.is_some() {
                    dialed.tls = Some(self.clock.now() - connected);
                }
                secured.map(|(stream, guard)| {
                    let limits = self.wire.settings.limits;
                    Box::new(Conn::new(stream, number, limits, guard, connected, dialed.connect))
                })
            }
            Err(fault) => Err(fault),
        };
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
            match self.connect_from(address, Some(SocketAddr::new(source, 0))).await {
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
        source: Option<SocketAddr>,
    ) -> io::Result<Stream> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(device) = &self.wire.settings.sources.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if let Some(source) = source {
            sockopt::bind_address_no_port(socket.as_fd())?;
            socket.bind(&source.into())?;
        }
        let socket = TcpSocket::from_std_stream(socket.into());
        Ok(Stream::Tcp(socket.connect(address).await?))
    }

    async fn secure(
        &self,
        origin: &Origin,
        stream: Stream,
        guard: OpenGuard,
    ) -> Result<(Stream, OpenGuard), Fault> {
        let (Some(name), Some(config)) = (&origin.server_name, &self.wire.tls) else {
            return Ok((stream, guard));
        };
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
        secured.map(|stream| (stream, guard)).map_err(|error| fault::of_handshake(&error))
    }
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
    let (good, bad): (Vec<_>, Vec<_>) = addresses.into_iter().partition(answers);
    if good.is_empty() { (bad, Vec::new()) } else { (good, bad) }
}

/// A duration in nanoseconds.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
