//! The settings of a lab, as plain values, and what can be wrong with them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use gake_core::plan::{TableShares, tables_for};
use gake_files::{can_own_table, table_size};

use crate::duration::LONGEST;
use crate::{DatabaseConfig, DatabaseKind, Metastable, ServiceTime};

/// Everything that can be set about a lab.
///
/// The default is a server without limits on a free loopback port.
#[derive(Debug, Clone, PartialEq)]
pub struct LabConfig {
    /// Where to listen for TCP. Port 0 takes a free port. Default `127.0.0.1:0`:
    /// a target that can be told to hang or reset belongs on loopback.
    pub listen: SocketAddr,
    /// A Unix socket to listen on as well. It is removed at the end; a stale
    /// one that nobody listens on is replaced.
    pub unix_socket: Option<PathBuf>,
    /// OS threads that do the work; 0 (the default) takes one per core.
    ///
    /// This is how much CPU the lab may use. How many requests it serves at
    /// once is [`threads`](Self::threads).
    pub cores: usize,
    /// Workers of the thread-pool model: at most this many requests are served
    /// at once, the rest wait in the order in which they came, across all
    /// connections. `None` (the default) is unlimited.
    ///
    /// As in a thread-per-request server, a worker does not notice that a
    /// client has gone: a request that was abandoned still waits its turn and
    /// still takes its service time.
    pub threads: Option<usize>,
    /// Requests that may wait for a worker; further ones are answered 503 at once, as a server does
    /// that sheds load. `None` (the default) lets all wait; needs [`threads`](Self::threads).
    pub queue: Option<usize>,
    /// The listen backlog: connections that the kernel completes before the lab
    /// accepts them. Default 4096.
    ///
    /// Linux holds one more than asked, caps it at `net.core.somaxconn`, and
    /// drops (does not refuse) the SYNs beyond it, so that further clients see
    /// a slow connect (retries after 1 s, 3 s, 7 s ...) and not an error. On a
    /// Unix socket further connects block or fail with `EAGAIN`.
    pub accept_count: u32,
    /// Connections that are accepted and open at once. Beyond it the lab stops
    /// accepting, so that the rest waits in the backlog; when one closes the
    /// next is accepted. `None` (the default) is bounded by descriptors alone.
    ///
    /// When the process's descriptor table is too small for them, there are as many threads as
    /// tables are needed. Each has its own table and its own listener on the same port
    /// (`SO_REUSEPORT`), with its own backlog, and the kernel assigns connections to them at random.
    pub max_connections: Option<usize>,
    /// The database of the users service, `/users`. `None` (the default) has no such service.
    pub database: Option<DatabaseConfig>,
    /// How long a connection may be open without a whole request head, at its
    /// start or between two requests, before it is closed. `None` (the
    /// default) is for ever.
    pub connection_timeout: Option<Duration>,
    /// The service time of every request, during which it holds its worker.
    /// `/metrics`, `/config` and `/stall` have none.
    pub service: Option<ServiceTime>,
    /// An overload leaves the server slower, until it has rested; needs
    /// [`threads`](Self::threads).
    pub metastable: Option<Metastable>,
    /// Where every random draw starts. The n-th service time of a run depends
    /// on this and on n alone, whatever the cores.
    pub seed: u64,
    /// A stop of the whole server, planned in advance.
    pub stall: Option<Stall>,
    /// Stops as long as that one follow it, one in each such interval; needs
    /// [`stall`](Self::stall). `None` (the default) stops once.
    pub stall_every: Option<Duration>,
    /// Every n-th request keeps its worker for ever, as code does that takes a connection of a pool
    /// and loses it on one of its paths; needs [`threads`](Self::threads). The request itself is
    /// answered. `None` (the default) loses none.
    pub leak_every: Option<u64>,
    /// Most streams that a client may have open on a connection of HTTP/2 or HTTP/3. `None` (the default) is
    /// unlimited.
    pub h2_max_streams: Option<u32>,
    /// End a connection of HTTP/2 or HTTP/3 with GOAWAY after this number of requests; those that have come
    /// are answered. `None` (the default) never.
    pub goaway_every: Option<u32>,
    /// Share of the requests that are reset instead of answered, 0 to 1: with HTTP/2 and
    /// HTTP/3 the stream, with HTTP/1.1 the connection. The same requests whatever the cores, by [`seed`](Self::seed).
    pub reset_rate: f64,
    /// Whether to serve TLS, with a certificate made at the start
    /// ([`Lab::certificate`](crate::Lab::certificate)).
    pub tls: bool,
    /// Whether to serve HTTP/3 too, on the same port over UDP, and to say so in answers over TCP
    /// (`Alt-Svc`); needs [`tls`](Self::tls).
    pub http3: bool,
    /// Whether clients that resume a session may send requests with their handshake (TLS 1.3 early
    /// data, 0-RTT); needs [`tls`](Self::tls).
    pub early_data: bool,
    /// Reject what goes with the handshake of every n-th connection, over TCP and QUIC together;
    /// needs [`early_data`](Self::early_data). `None` (the default) rejects nothing.
    pub reject_early_data_every: Option<u64>,
    /// Number of requests, from the first, whose instants of reading are kept; see
    /// [`Lab::arrivals`](crate::Lab::arrivals). 0 (the default) keeps none.
    pub record_arrivals: usize,
}

/// A stop of the whole server: no thread of the lab runs for a while, the
/// kernel goes on completing connections and buffering requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// How long after the first request.
    pub after: Duration,
    /// How long it lasts.
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
    /// Rejects settings of early data that no server can have.
    fn check_early_data(&self) -> Result<(), LabError> {
        let reject = |what: &str| Err(LabError::Config(what.to_owned()));
        match self.reject_early_data_every {
            _ if self.early_data && !self.tls => {
                reject("early_data needs tls: it goes with the handshake")
            }
            Some(0) => reject("reject_early_data_every must be at least 1"),
            Some(_) if !self.early_data => {
                reject("reject_early_data_every needs early_data: there is none")
            }
            _ => Ok(()),
        }
    }

    /// Rejects settings that no server can have.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let reject = |what: &str| Err(LabError::Config(what.to_owned()));
        if self.threads == Some(0) {
            return reject("threads must be at least 1: with none no request is ever served");
        }
        if self.queue.is_some() && self.threads.is_none() {
            return reject("queue needs threads: without a limit nobody waits");
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
            return reject("a pool of no connections serves nobody");
        }
        if self.database.as_ref().is_some_and(|database| database.lose_every == Some(0)) {
            return reject("lose_every must be at least 1");
        }
        if self.leak_every.is_some() && self.threads.is_none() {
            return reject("leak_every needs threads: without a limit nothing runs out");
        }
        if self.leak_every == Some(0) {
            return reject("leak_every must be at least 1");
        }
        self.check_early_data()?;
        if let Some(every) = self.stall_every {
            let Some(stall) = self.stall else {
                return reject("stall_every needs stall: it repeats it");
            };
            if every <= stall.length || every > LONGEST {
                return reject("stall_every must be longer than the stall, and at most 24h");
            }
        }
        // Longer ones are slips, and no clock could hold the instants.
        let stall = self.stall.map(|stall| stall.after.max(stall.length));
        let service = self.service.map(|service| service.mean());
        if [self.connection_timeout, stall, service].into_iter().flatten().any(|d| d > LONGEST) {
            return reject("time-outs, stalls and service times must be at most 24h");
        }
        if let Some(Metastable { wait, factor, rest }) = self.metastable {
            if self.threads.is_none() {
                return reject("metastable needs threads: without a limit nobody waits");
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

    /// The worker threads that these settings come to on this machine.
    pub(crate) fn worker_count(&self) -> usize {
        let cores = match self.cores {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            cores => cores,
        };
        cores.max(self.tables())
    }

    /// The descriptor tables that the connections need; 1 when that of the process is enough, or
    /// none of its size would do. HTTP/3 needs few: its connections share their threads' sockets.
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
    /// A setting makes no sense; the text says which and why.
    #[error("{0}")]
    Config(String),
    /// The TCP address could not be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The Unix socket could not be listened on.
    #[error("cannot listen on {}: {source}", path.display())]
    UnixSocket {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// A thread, an event queue or a timer could not be made.
    #[error("cannot start the lab's threads: {0}")]
    Start(#[from] io::Error),
}
