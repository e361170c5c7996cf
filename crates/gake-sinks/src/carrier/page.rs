//! A metrics page that serves the last batch.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gake_listen::{Reply, Request, Server, Site};

use super::{Carrier, FigureBatch, LostFigures};

/// How long the end waits for a visitor that is being sent the page.
const PATIENCE: Duration = Duration::from_secs(2);

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) struct PageCarrier {
    /// The listener and its site, until it is served.
    listener: Option<(TcpListener, MetricsSite)>,
    text: Arc<Mutex<Arc<[u8]>>>,
    server: Option<Server>,
    linger: Duration,
    lost: LostFigures,
}

/// The last batch at `/metrics`.
struct MetricsSite {
    text: Arc<Mutex<Arc<[u8]>>>,
    /// The host that it listens at, if that is loopback: no web page may read it there by a name
    /// that it has rebound to this machine. From elsewhere it has names that gake does not know.
    loopback: Option<String>,
}

impl Site for MetricsSite {
    fn accepts(&self, request: &Request<'_>) -> bool {
        self.loopback.as_ref().is_none_or(|host| request.is_for(host))
    }

    fn reply(&self, request: &Request<'_>) -> Reply {
        match (request.method, request.path) {
            ("GET", "/" | "/metrics") => {
                let text = Arc::clone(&self.text.lock().unwrap_or_else(PoisonError::into_inner));
                Reply::new("200 OK", CONTENT_TYPE, "", vec![text])
            }
            _ => Reply::text("404 Not Found", "", "the figures are at /metrics\n"),
        }
    }
}

impl PageCarrier {
    /// Listens at `address`; on loopback without a host.
    pub(crate) fn bind(address: &str, linger: Duration) -> Result<Self, String> {
        let address = match address.strip_prefix(':') {
            Some(port) => format!("127.0.0.1:{port}"),
            None => address.to_owned(),
        };
        let bind = || {
            let listener = gake_listen::listen(&address)?;
            Ok((listener.local_addr()?.ip().is_loopback(), listener))
        };
        let (is_loopback, listener) =
            bind().map_err(|error: std::io::Error| format!("{address}: {error}"))?;
        let host = address.rsplit_once(':').map_or(&*address, |(host, _)| host);
        let text = Arc::<Mutex<Arc<[u8]>>>::default();
        let site =
            MetricsSite { text: Arc::clone(&text), loopback: is_loopback.then(|| host.to_owned()) };
        Ok(Self {
            listener: Some((listener, site)),
            text,
            server: None,
            linger,
            lost: LostFigures::default(),
        })
    }

    /// Starts the serving thread, which inherits the scheduling class of the sink's thread.
    fn serve(&mut self) {
        let Some((listener, site)) = self.listener.take() else { return };
        match Server::start("gake-page", listener, site, || ()) {
            Ok(server) => self.server = Some(server),
            Err(error) => self.lost.add(1, error.to_string()),
        }
    }
}

impl Carrier for PageCarrier {
    fn carry(&mut self, batch: FigureBatch) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = batch.bytes.into();
        self.serve();
    }

    fn finish(&mut self) {
        std::thread::sleep(self.linger);
        if let Some(server) = self.server.take() {
            server.finish(PATIENCE);
        }
    }

    fn lost(&self) -> LostFigures {
        self.lost.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_slow_visitor_does_not_delay_the_end() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // It lingers, so that the visitor is accepted before the end.
        let mut page = PageCarrier::bind(&format!(":{port}"), Duration::from_millis(500)).unwrap();
        let mut visitor = TcpStream::connect(("127.0.0.1", port)).unwrap();
        page.carry(FigureBatch { bytes: b"# EOF\n".to_vec(), rows: 1 });
        let over = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&over);
        // Far longer than the time limit.
        let drips = std::thread::spawn(move || {
            let drip = |_: &u32| {
                std::thread::sleep(Duration::from_millis(100));
                !stopped.load(Ordering::Relaxed) && visitor.write_all(b"x").is_ok()
            };
            (0..600).take_while(drip).count()
        });
        page.finish();
        over.store(true, Ordering::Relaxed);
        assert!(drips.join().unwrap() < 600);
    }
}
