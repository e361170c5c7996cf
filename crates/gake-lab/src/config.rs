//! The settings of a lab and their validation.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use gake_core::plan::{TableShares, tables_for};
use gake_files::{can_own_table, table_size};

use crate::duration::LONGEST;
use crate::{DatabaseConfig, DatabaseKind, Metastable, ServiceTime};

/// The settings of a lab.
///
/// The default is a server without limits on a free loopback port.
#[derive(Debug, Clone, PartialEq)]
pub struct LabConfig {
    /// The TCP address. Port 0 takes a free port. Default `127.0.0.1:0`: a server that hangs and
    /// resets on request belongs on loopback.
    pub listen: SocketAddr,
    /// An additional Unix socket. It is removed at the end; a stale one without a listener is
    /// replaced.
    pub unix_socket: Option<PathBuf>,
    /// Worker threads; 0 (the default) takes one per core.
    ///
    /// Bounds the CPU that the lab uses; [`threads`](Self::threads) bounds the requests that it
    /// serves concurrently.
    pub cores: usize,
    /// Workers of the thread-pool model: at most this many requests are served concurrently, the
    /// rest queue in FIFO order across all connections. `None` (the default) is unlimited.
    ///
    /// As in a thread-per-request server, a worker does not notice a disconnect: an abandoned
    /// request keeps its place in the queue and takes its full service time.
    pub threads: Option<usize>,
    /// Requests that may queue for a worker; more are rejected with 503 at once, as a server that
    /// sheds load does. `None` (the default) is unbounded; needs [`threads`](Self::threads).
    pub queue: Option<usize>,
    /// The listen backlog: connections that the kernel completes before the lab
    /// accepts them. Default 4096.
    ///
    /// Linux holds one more than this, caps it at `net.core.somaxconn`, and drops (does not
    /// refuse) further SYNs: further clients see a slow connect (retries after 1 s, 3 s, 7 s ...)
    /// and no error. On a Unix socket further connects block or fail with `EAGAIN`.
    pub accept_count: u32,
    /// Connections that may be open at the same time. At the limit the lab stops accepting, and
    /// further connections wait in the backlog. `None` (the default) is bounded by descriptors
    /// only.
    ///
    /// When one descriptor table is too small, there are as many threads as tables are needed.
    /// Each has its own table and its own listener and backlog on the same port (`SO_REUSEPORT`);
    /// the kernel assigns connections to them at random.
    pub max_connections: Option<usize>,
    /// The database of the users service, `/users`. `None` (the default) disables the service.
    pub database: Option<DatabaseConfig>,
    /// How long a connection may stay open without a complete request head, after connecting or
    /// between requests. `None` (the default) is unlimited.
    pub connection_timeout: Option<Duration>,
    /// The service time of every request, during which it holds its worker.
    /// `/metrics`, `/config` and `/stall` have none.
    pub service: Option<ServiceTime>,
    /// An overload leaves the server slower until the load has eased; needs
    /// [`threads`](Self::threads).
    pub metastable: Option<Metastable>,
    /// The seed of all random draws. The n-th service time depends on the seed and n only, not on
    /// the number of cores.
    pub seed: u64,
    /// A planned stall of the whole server.
    pub stall: Option<Stall>,
    /// Repeats the stall with this period; needs [`stall`](Self::stall). `None` (the default)
    /// stalls once.
    pub stall_every: Option<Duration>,
    /// Every n-th request leaks its worker, as code does that loses a pooled connection on one of
    /// its paths; needs [`threads`](Self::threads). The request itself is served. `None` (the
    /// default) leaks none.
    pub leak_every: Option<u64>,
    /// Most concurrent streams per HTTP/2 or HTTP/3 connection. `None` (the default) is unlimited.
    pub h2_max_streams: Option<u32>,
    /// Send GOAWAY on an HTTP/2 or HTTP/3 connection after this many requests; those already
    /// received are served. `None` (the default) never does.
    pub goaway_every: Option<u32>,
    /// Share of requests, 0 to 1, that are reset without a response: the stream with HTTP/2 and
    /// HTTP/3, the connection with HTTP/1.1. [`seed`](Self::seed) decides which requests.
    pub reset_rate: f64,
    /// Whether to serve TLS, with a certificate made at the start
    /// ([`Lab::certificate`](crate::Lab::certificate)).
    pub tls: bool,
    /// Whether to serve HTTP/3 too, on the same port over UDP, and to advertise it over TCP
    /// (`Alt-Svc`); needs [`tls`](Self::tls).
    pub http3: bool,
    /// Whether clients that resume a session may send early data (TLS 1.3 0-RTT); needs
    /// [`tls`](Self::tls).
    pub early_data: bool,
    /// Reject the early data of every n-th connection, TCP and QUIC together; needs
    /// [`early_data`](Self::early_data). `None` (the default) rejects none.
    pub reject_early_data_every: Option<u64>,
    /// How many arrival instants are recorded, from the first request on; see
    /// [`Lab::arrivals`](crate::Lab::arrivals). 0 (the default) records none.
    pub record_arrivals: usize,
}

/// A stall of the whole server: no thread of the lab runs, while the kernel keeps completing
/// connections and buffering requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Delay after the first request.
    pub after: Duration,
    /// Duration of the stall.
    pub length: Duration,
}

impl Default for LabConfig {
    fn default() -> LabConfig {
        LabConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            unix_socket: None,
            cores: 0,
            threads: None,
            queue: None,
            accept_count: 4096,
            max_connections: None,
            database: None,
            connection_timeout: None,
            service: None,
            metastable: None,
            seed: 1,
            stall: None,
            stall_every: None,
            leak_every: None,
            h2_max_streams: None,
            goaway_every: None,
            reset_rate: 0.0,
            tls: false,
            http3: false,
            early_data: false,
            reject_early_data_every: None,
            record_arrivals: 0,
        }
    }
}

impl LabConfig {
    fn check_early_data(&self) -> Result<(), LabError> {
        let reject = |what: &str| Err(LabError::Config(what.to_owned()));
        match self.reject_early_data_every {
            _ if self.early_data && !self.tls => {
                reject("early_data needs tls: it goes with the handshake")
            }
            Some(0) => reject("reject_early_data_every must be at least 1"),
            Some(_) if !self.early_data => reject("reject_early_data_every needs early_data"),
            _ => Ok(()),
        }
    }

    pub(crate) fn check(&self) -> Result<(), LabError> {
        let reject = |what: &str| Err(LabError::Config(what.to_owned()));
        if self.threads == Some(0) {
            return reject("threads must be at least 1: with none no request is ever served");
        }
        if self.queue.is_some() && self.threads.is_none() {
            return reject("queue needs threads: without a limit no request waits");
        }
        if self.max_connections == Some(0) {
            return reject("max_connections must be at least 1: with none no client gets in");
        }
        if self.tables() > 1 && self.unix_socket.is_some() {
            return reject("a Unix socket has one listener, and max_connections needs several");
        }
        if self.connection_timeout == Some(Duration::ZERO) {
            return reject("connection_timeout must be longer than 0");
        }
        let is_real = |config: &DatabaseConfig| matches!(config.kind, DatabaseKind::Real(_));
        if self.tables() > 1 && self.database.as_ref().is_some_and(is_real) {
            return reject(
                "a real database needs one descriptor table, and max_connections several",
            );
        }
        if self.database.as_ref().is_some_and(|database| database.max_open == Some(0)) {
            return reject("max_open must be at least 1: with none no statement is executed");
        }
        if self.database.as_ref().is_some_and(|database| database.lose_every == Some(0)) {
            return reject("lose_every must be at least 1");
        }
        if self.leak_every.is_some() && self.threads.is_none() {
            return reject("leak_every needs threads: without a limit there is nothing to exhaust");
        }
        if self.leak_every == Some(0) {
            return reject("leak_every must be at least 1");
        }
        self.check_early_data()?;
        if let Some(every) = self.stall_every {
            let Some(stall) = self.stall else {
                return reject("stall_every needs stall");
            };
            if every <= stall.length || every > LONGEST {
                return reject("stall_every must be longer than the stall, and at most 24h");
            }
        }
        // Longer ones are mistakes, and would overflow instants.
        let stall = self.stall.map(|stall| stall.after.max(stall.length));
        let service = self.service.map(|service| service.mean());
        if [self.connection_timeout, stall, service].into_iter().flatten().any(|d| d > LONGEST) {
            return reject("timeouts, stalls and service times must be at most 24h");
        }
        if let Some(Metastable { wait, factor, rest }) = self.metastable {
            if self.threads.is_none() {
                return reject("metastable needs threads: without a limit no request waits");
            }
            let sane = factor > 1.0 && factor <= 1_000.0;
            if !sane || wait.is_zero() || wait.max(rest) > LONGEST {
                return reject("metastable has a wait over 0, a factor over 1 and at most 1000");
            }
        }
        if !(0.0..=1.0).contains(&self.reset_rate) {
            return reject("reset_rate must be between 0 and 1");
        }
        if self.http3 && !cfg!(feature = "http3") {
            return reject("http3 is not in this build: it was made without the feature `http3`");
        }
        if self.http3 && !self.tls {
            return reject("http3 needs tls: QUIC has no clear text");
        }
        if self.cores > 1024 {
            return reject("cores must be at most 1024");
        }
        Ok(())
    }

    /// The number of worker threads on this machine.
    pub(crate) fn worker_count(&self) -> usize {
        let cores = match self.cores {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            cores => cores,
        };
        cores.max(self.tables())
    }

    /// The descriptor tables that the connections need: 1 when the process's own is large enough,
    /// or when more would not help. HTTP/3 connections share their threads' sockets and need none.
    pub fn tables(&self) -> usize {
        if self.http3 {
            return 1;
        }
        let connections = self.max_connections.unwrap_or(0);
        match tables_for(connections, table_size(), TableShares::Random) {
            Some(tables) if tables > 1 && can_own_table() => tables,
            _ => 1,
        }
    }
}

/// Why a lab could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A setting is invalid.
    #[error("{0}")]
    Config(String),
    /// Cannot listen on the TCP address.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The configured address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Cannot listen on the Unix socket.
    #[error("cannot listen on {}: {source}", path.display())]
    UnixSocket {
        /// The configured path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Cannot make a certificate.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// Cannot create a thread, an event queue or a timer.
    #[error("cannot start the lab's threads: {0}")]
    Start(#[from] io::Error),
}
