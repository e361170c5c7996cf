//! Plain receivers of figures on loopback: they accept everything and count it.
//!
//! They are threads of the bench, on the client's core, and of the lowest scheduling class: senders
//! run before them.

#![expect(
    unsafe_code,
    reason = "sched_setscheduler of the receivers' threads, which must not delay the load"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The response of an HTTP receiver: an empty object is what a collector of OpenTelemetry says.
const TAKEN: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
/// How often the page for Prometheus is asked.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// What one receiver got: messages, in its own sense, since the last question.
type Count = Arc<AtomicU64>;

/// All receivers. Their threads end with the bench.
pub struct Receivers {
    http: SocketAddr,
    graphite: SocketAddr,
    nats: SocketAddr,
    statsd: SocketAddr,
    page: SocketAddr,
    is_scraping: Arc<AtomicBool>,
    counts: Vec<(&'static str, Count)>,
}

impl Receivers {
    /// Starts them.
    pub fn start() -> Result<Self> {
        let mut counts = Vec::new();
        let mut count = |name| {
            let count = Count::default();
            counts.push((name, Arc::clone(&count)));
            count
        };
        let influxdb = count("influxdb");
        let written = count("prometheus-rw");
        let otlp = count("otlp");
        let http = listen(move |stream| {
            let counts = [("/write", &influxdb), ("/api/v1/write", &written), ("/v1/", &otlp)];
            serve_http(stream, &counts)
        })?;
        let lines = count("graphite");
        let graphite = listen(move |stream| {
            for line in BufReader::new(stream).split(b'\n') {
                line?;
                lines.fetch_add(1, Relaxed);
            }
            Ok(())
        })?;
        let messages = count("nats");
        let nats = listen(move |stream| serve_nats(stream, &messages))?;
        let datagrams = count("statsd");
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let statsd = socket.local_addr()?;
        in_background(move || {
            let mut datagram = [0; 2_048];
            while socket.recv(&mut datagram).is_ok() {
                datagrams.fetch_add(1, Relaxed);
            }
        })?;
        // The port is free again; the run listens on it.
        let page = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let is_scraping = Arc::new(AtomicBool::new(false));
        let (pages, asked) = (count("prometheus"), Arc::clone(&is_scraping));
        in_background(move || {
            loop {
                thread::sleep(SCRAPE_EVERY);
                // Before the run listens, and after its end, there is no response.
                if asked.load(Relaxed) && scrape(page).is_ok() {
                    pages.fetch_add(1, Relaxed);
                }
            }
        })?;
        Ok(Self { http, graphite, nats, statsd, page, is_scraping, counts })
    }

    /// The flags of `gake run` for a sink of every kind; files go to `dir`.
    pub fn flags(&self, dir: &std::path::Path) -> Vec<String> {
        let Self { http, graphite, nats, statsd, page, .. } = self;
        let file = |name: &str| dir.join(name).display().to_string();
        let sinks = [
            format!("influxdb=http://{http}/gake"),
            format!("prometheus-rw=http://{http}/api/v1/write"),
            format!("prometheus={page}"),
            format!("otlp=http://{http}"),
            format!("statsd={statsd}"),
            format!("graphite={graphite}"),
            format!("nats=nats://{nats}"),
            format!("json={}", file("figures.json")),
            format!("csv={}", file("figures.csv.zst")),
            format!("parquet={}", file("figures.parquet")),
        ];
        sinks.into_iter().flat_map(|sink| ["--sink".to_owned(), sink]).collect()
    }

    /// Whether the page is asked from now on.
    pub fn scrape(&self, is_scraping: bool) {
        self.is_scraping.store(is_scraping, Relaxed);
    }

    /// What each got since the last question.
    ///
    /// # Errors
    /// When one got nothing.
    pub fn taken(&self) -> Result<String> {
        // All begin anew, also when one got nothing: the next run is counted for itself.
        let taken: Vec<(&str, u64)> =
            self.counts.iter().map(|(name, count)| (*name, count.swap(0, Relaxed))).collect();
        if let Some((name, _)) = taken.iter().find(|(_, count)| *count == 0) {
            bail!("{name} got nothing");
        }
        let text: Vec<String> =
            taken.iter().map(|(name, count)| format!("{name} {count}")).collect();
        Ok(text.join(", "))
    }
}

/// Accepts connections and serves each on a thread of its own.
fn listen(serve: impl Fn(TcpStream) -> Result<()> + Send + Sync + 'static) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let serve = Arc::new(serve);
    in_background(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            // A connection that breaks is the end of a run; what was lost, gake says.
            let _ = in_background(move || drop(serve(stream)));
        }
    })?;
    Ok(address)
}

/// Starts a thread of the lowest scheduling class.
fn in_background(work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().spawn(|| {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters outlive the call; 0 is this thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) };
        work();
    })?;
    Ok(())
}

/// Responds to every request of a connection, and counts it by the beginning of its path.
fn serve_http(stream: TcpStream, counts: &[(&str, &Count)]) -> Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let body = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        let path = first.split(' ').nth(1).context("a request without a path")?;
        let counted = counts.iter().find(|(prefix, _)| path.starts_with(prefix));
        if let (Some((_, count)), true) = (counted, body > 0) {
            count.fetch_add(1, Relaxed);
        }
        reader.get_mut().write_all(TAKEN)?;
    }
}

/// Takes every message of a client of NATS.
fn serve_nats(mut stream: TcpStream, messages: &Count) -> Result<()> {
    stream.write_all(b"INFO {\"max_payload\":1048576}\r\n")?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        if line.starts_with("PING") {
            reader.get_mut().write_all(b"PONG\r\n")?;
        } else if line.starts_with("PUB ") {
            let length: u64 = line.trim().rsplit(' ').next().unwrap_or_default().parse()?;
            let mut message = reader.by_ref().take(length + 2);
            std::io::copy(&mut message, &mut std::io::sink())?;
            messages.fetch_add(1, Relaxed);
        }
        line.clear();
    }
    Ok(())
}

/// Reads the page for Prometheus.
fn scrape(page: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(page)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.contains("gake_requests") { Ok(()) } else { bail!("a page without figures") }
}

/// Removes the files of a run.
pub fn remove_files(dir: &std::path::Path) {
    for name in ["figures.json", "figures.csv.zst", "figures.parquet", "run.hlog", "log.csv"] {
        let _ = fs::remove_file(dir.join(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_and_losses_are_counted() {
        let receivers = Receivers::start().unwrap();
        let mut stream = TcpStream::connect(receivers.http).unwrap();
        for path in ["/write?db=a", "/v1/metrics", "/api/v1/write"] {
            write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc").unwrap();
            stream.read_exact(&mut [0; TAKEN.len()]).unwrap();
        }
        let mut nats = BufReader::new(TcpStream::connect(receivers.nats).unwrap());
        nats.get_mut().write_all(b"PUB gake 8\r\nPING\r\nab\r\nPING\r\n").unwrap();
        let mut lines = String::new();
        nats.read_line(&mut lines).unwrap();
        nats.read_line(&mut lines).unwrap();
        assert!(lines.starts_with("INFO {") && lines.ends_with("PONG\r\n"), "{lines}");
        let counts: Vec<u64> =
            receivers.counts.iter().map(|(_, count)| count.load(Relaxed)).collect();
        assert_eq!(counts, [1, 1, 1, 0, 1, 0, 0]);
        assert_eq!(receivers.taken().unwrap_err().to_string(), "graphite got nothing");
        assert!(receivers.counts.iter().all(|(_, count)| count.load(Relaxed) == 0));
    }
}
