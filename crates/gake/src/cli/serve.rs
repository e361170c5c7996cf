//! The flags of `gake serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gake_lab::{DatabaseConfig, DatabaseKind, Metastable, ServiceTime, Stall};

use super::values;
use gake_session::Failure;
use gake_users::UserStore;

/// The default port.
const PORT: u16 = 8080;

/// Start the lab: a target server whose behaviour is known.
///
/// It counts exactly what it served, can behave as a thread-per-request server, and can be slow,
/// broken or stopped on purpose. The first line on standard output is its URL. On SIGINT or SIGTERM
/// it prints the counts and exits.
#[derive(Debug, Args)]
#[command(after_help = "\
Routes: /fast /slow /delay/20ms /echo /status/503 /bytes/1000 /stream/10 /events?n=10
/error?rate=0.1 /reset /close /hang, and its own /metrics /config /stall?for=1s. / describes them.

Examples:
  gake serve                                       no limits, on 127.0.0.1:8080
  gake serve --threads 200 --max-connections 8192 --accept-count 100 --service const:5s
                                                   Tomcat with its defaults, 5 s a request
  gake serve --threads 1 --service exp:20ms        the M/M/1 queue, at most 50 requests a second
  gake serve --listen :0 --stall 3s+1s             a free port; stops for 1 s, 3 s into the load
  gake serve --db sqlite:users.db                  /users, a row in SQLite for each POST
  gake serve --tls self                            HTTPS; writes the certificate to trust
  gake serve --tls self --http3                    HTTP/3, too
  gake serve --listen 0.0.0.0:8080                 for clients on other machines")]
pub struct ServeArgs {
    /// Where to listen: ADDRESS:PORT, or PORT on loopback; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = listen, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Listen on this Unix socket as well
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,

    /// Number of the server's own threads (default: the number of cores)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub cores: Option<usize>,

    /// Serve HTTPS with a certificate made at the start: `self`
    #[arg(long, value_enum, value_name = "self")]
    pub tls: Option<TlsArg>,

    /// Where to write the certificate, for clients to trust (default: gake-lab-UID-PORT.pem in the
    /// folder for temporary files)
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub tls_out: Option<PathBuf>,

    /// Serve HTTP/3 as well, on the same port over UDP, and advertise it (Alt-Svc)
    #[arg(long, requires = "tls")]
    pub http3: bool,

    /// Let clients that resume a session send requests with their handshake (TLS 1.3 early data,
    /// 0-RTT)
    #[arg(long, requires = "tls")]
    pub early_data: bool,

    /// Reject what comes with the handshake of every N-th connection (default: never)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "early_data"
    )]
    pub reject_early_data_every: Option<u64>,

    /// Print nothing but the URL and, at the end, the counts
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub database: DatabaseArgs,

    /// End with the process that started it, whose number this is
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<u32>,

    #[command(flatten)]
    pub model: ModelArgs,
}

/// The users service, `/users`: rows behind a pool of connections to a database.
#[derive(Debug, Args)]
#[command(next_help_heading = "Users service")]
pub struct DatabaseArgs {
    /// The database: model:CONNECT,STATEMENT takes this time to connect and this for a statement;
    /// sqlite:FILE, sqlite::memory:, mysql://USER:PASSWORD@HOST/DATABASE and postgres:// are real,
    /// and have the rows in the table gake_users. env:NAME or file:PATH holds the value
    #[arg(long, value_name = "DATABASE", value_parser = values::store)]
    pub db: Option<values::StoreArg>,

    /// Connections that the model allows; it refuses further ones (default: no limit)
    #[arg(long, value_name = "N", requires = "db", value_parser = values::connections)]
    pub db_server_max: Option<usize>,

    /// Connections that the pool opens at most; 0 is no limit, as in Go's database/sql
    #[arg(long, value_name = "N", requires = "db", default_value_t = 0)]
    pub db_max_open: usize,

    /// Idle connections that the pool keeps, as in Go's database/sql
    #[arg(long, value_name = "N", requires = "db", default_value_t = 2)]
    pub db_max_idle: usize,

    /// How long a request waits for a connection of the pool (default: for ever)
    #[arg(long, value_name = "TIME", requires = "db", value_parser = values::positive_duration)]
    pub db_acquire_timeout: Option<Duration>,

    /// Close a connection of the pool that is older (default: never)
    #[arg(long, value_name = "TIME", requires = "db", value_parser = values::positive_duration)]
    pub db_lifetime: Option<Duration>,

    /// Acknowledge every N-th row and lose it (default: none)
    #[arg(long, value_name = "N", requires = "db", value_parser = clap::value_parser!(u64).range(1..))]
    pub db_lose_every: Option<u64>,
}

impl DatabaseArgs {
    /// Opens the database, if there is one.
    ///
    /// # Errors
    /// When it is not a database, or cannot be opened; the message leaves out its password.
    pub fn open(&self) -> Result<Option<DatabaseConfig>, Failure> {
        let Some(arg) = &self.db else { return Ok(None) };
        let store = arg.store()?;
        if self.db_server_max.is_some() && !matches!(store, UserStore::Model(_)) {
            let why = "--db-server-max is a bound of model:, and a real database has its own \
                        (max_connections)";
            return Err(Failure::usage(why));
        }
        let mut kind = store.open().map_err(Failure::could_not)?;
        if let DatabaseKind::Model(model) = &mut kind {
            model.server_max = self.db_server_max;
        }
        Ok(Some(DatabaseConfig {
            max_open: Some(self.db_max_open).filter(|most| *most > 0),
            max_idle: self.db_max_idle,
            acquire_timeout: self.db_acquire_timeout,
            lifetime: self.db_lifetime,
            lose_every: self.db_lose_every,
            ..kind.into()
        }))
    }
}

/// Which certificate the server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TlsArg {
    /// One of its own
    #[value(name = "self")]
    Own,
}

/// How the server behaves.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Maximum number of requests served at once; the rest wait (default: no limit)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub threads: Option<usize>,

    /// Requests that may wait for a thread; further ones get a 503 at once (default: all)
    #[arg(long, value_name = "N", requires = "threads")]
    pub queue: Option<usize>,

    /// Connections that the kernel completes beyond those accepted: the listen backlog
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub accept_count: u32,

    /// Connections accepted and open at once; the rest wait in the backlog (default: no limit)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub max_connections: Option<usize>,

    /// Close a connection without a whole request head after this time (default: never)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub connection_timeout: Option<Duration>,

    /// Service time of each request: const:5s, exp:20ms, lognormal:20ms,1.0 or uniform:10ms,50ms
    #[arg(long, value_name = "LAW", value_parser = service)]
    pub service: Option<ServiceTime>,

    /// Overload leaves the server slower: once a request has waited WAIT for a thread, service
    /// takes FACTOR times as long until no request has waited for REST, as in 200ms,1.6,5s
    #[arg(long, value_name = "WAIT,FACTOR,REST", value_parser = metastable, requires = "threads")]
    pub metastable: Option<Metastable>,

    /// Maximum number of streams on a connection of HTTP/2 (default: no limit) or HTTP/3 (at
    /// most 1,024)
    #[arg(long, value_name = "N")]
    pub h2_max_streams: Option<u32>,

    /// End a connection of HTTP/2 or HTTP/3 with GOAWAY after N requests, all of which get a response (default:
    /// never)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub goaway_every: Option<u32>,

    /// Reset this share of the requests, 0 to 1: the stream with HTTP/2 and HTTP/3, else the
    /// connection
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true)]
    pub reset_rate: f64,

    /// Make the random draws repeatable
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Stop the whole server once: AFTER the first request, for LENGTH, as in 3s+1s
    #[arg(long, value_name = "AFTER+LENGTH", value_parser = stall)]
    pub stall: Option<Stall>,

    /// Repeat the stall: one in each such interval, as garbage collection does
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, requires = "stall")]
    pub stall_every: Option<Duration>,

    /// Lose a thread with every N-th request, as a leaking pool does (default: never)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "threads"
    )]
    pub leak_every: Option<u64>,
}

/// An address to listen on.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        format!(
            "{text:?} is not an address to listen on: write PORT, ADDRESS:PORT or [ADDRESS]:PORT, \
             with an IP address or localhost"
        )
    };
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT));
    }
    let port = match text.strip_prefix("localhost") {
        Some("") => return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))),
        Some(rest) => rest.strip_prefix(':').ok_or_else(wrong)?,
        None => text.strip_prefix(':').unwrap_or(text),
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let port = port.parse::<u16>().map_err(|_| wrong())?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn service(text: &str) -> Result<ServiceTime, String> {
    text.parse().map_err(|error: gake_lab::ServiceTimeError| error.to_string())
}

fn metastable(text: &str) -> Result<Metastable, String> {
    let parts: Vec<_> = text.split(',').collect();
    let [wait, factor, rest] = parts[..] else {
        return Err(format!(
            "{text:?} is not a valid rule: write WAIT,FACTOR,REST, as in 200ms,1.6,5s"
        ));
    };
    let factor = factor.trim().parse().ok().filter(|factor| (1.0..=1_000.0).contains(factor));
    Ok(Metastable {
        wait: values::positive_duration(wait.trim())?,
        factor: factor.ok_or_else(|| format!("{text:?}: the factor is a number over 1"))?,
        rest: values::duration(rest.trim())?,
    })
}

fn stall(text: &str) -> Result<Stall, String> {
    let (after, length) = text.split_once('+').ok_or_else(|| {
        format!(
            "{text:?} is not a stall: write AFTER+LENGTH, as in 3s+1s (3 s after the first \
             request, for 1 s)"
        )
    })?;
    Ok(Stall { after: values::duration(after)?, length: values::positive_duration(length)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_port_means_loopback() {
        for (text, address) in [
            ("8081", "127.0.0.1:8081"),
            (":0", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("localhost", "127.0.0.1:8080"),
            ("0.0.0.0:9", "0.0.0.0:9"),
            ("10.0.0.1", "10.0.0.1:8080"),
            ("[::1]:80", "[::1]:80"),
            ("::1", "[::1]:8080"),
        ] {
            assert_eq!(listen(text), Ok(address.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_an_error() {
        for text in ["", ":", "65536", "host:80", "http://x/", "localhost80", "+80", "1.2.3.4:x"] {
            assert!(listen(text).unwrap_err().contains("is not an address"), "{text}");
        }
    }

    #[test]
    fn a_stall_has_two_parts() {
        let (after, length) = (Duration::from_secs(3), Duration::from_millis(500));
        assert_eq!(stall("3s+500ms"), Ok(Stall { after, length }));
        assert!(stall("0s+1s").is_ok());
        for text in ["", "3s", "3s+", "+1s", "3s+0s", "x+1s"] {
            assert!(stall(text).is_err(), "{text}");
        }
    }
}
