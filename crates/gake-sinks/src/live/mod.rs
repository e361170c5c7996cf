//! A live page of the run for browsers, updated by server-sent events.
//!
//! The data is opaque JSON text, embedded in the page and in every event. An event holds all of it,
//! so late, reconnecting or slow viewers miss nothing. For each viewer at most one text is held; one
//! that does not read is dropped.

mod board;
mod visit;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use board::Board;
use gake_listen::{Server, listen};
use visit::{LiveSite, ServedSite};

/// How long the end of a run waits for viewers to receive the last data.
const LINGER: Duration = Duration::from_secs(3);

/// The page without its data.
#[derive(Debug, Clone)]
pub struct PageFrame {
    /// The text before the data.
    pub before: String,
    /// The text after the data.
    pub after: String,
}

/// Controls of the run for viewers with the token.
pub struct LiveControls {
    /// The token that requests must carry.
    pub token: String,
    /// Ends the run.
    pub stop: Box<dyn Fn() + Send + Sync>,
    /// Sets the rate, if the run has one.
    pub rate: Option<RateSetter>,
}

/// Sets the rate of a run in percent of the plan's; the error is a sentence.
pub type RateSetter = Box<dyn Fn(f64) -> Result<(), String> + Send + Sync>;

impl std::fmt::Debug for LiveControls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveControls").finish_non_exhaustive()
    }
}

/// Serves the page.
#[derive(Debug)]
pub struct LiveServer {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<LiveSite>,
    server: Mutex<Option<Server>>,
}

impl LiveServer {
    /// Listens at `HOST:PORT`; port 0 is any free one. Requests wait until [`LiveServer::start`],
    /// which must follow the first [`LiveServer::show`].
    ///
    /// # Errors
    /// One sentence on why it cannot listen there.
    pub fn bind(
        address: &str,
        frame: PageFrame,
        controls: Option<LiveControls>,
    ) -> Result<Self, String> {
        let bind = || listen(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (bound, listener) = bind().map_err(|error| format!("{address}: {error}"))?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
        let site = Arc::new(LiveSite { frame, host, board: Board::default(), controls });
        Ok(Self { listener, address: bound, site, server: Mutex::default() })
    }

    /// The address that it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to serve. Its thread inherits the scheduling class of the calling thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(&self) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let site = ServedSite(Arc::clone(&self.site));
        let server = Server::start("gake-live", listener, site, || ())?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// Whether there are viewers.
    #[must_use]
    pub fn has_viewers(&self) -> bool {
        self.site.board.viewers() > 0
    }

    /// Shows new data to every viewer.
    pub fn show(&self, data: String) {
        self.site.board.show(data);
    }

    /// Waits up to `first` for a first viewer, shows the last data, and waits up to three seconds
    /// until every viewer has it.
    pub fn finish(&self, data: String, first: Duration) {
        self.site.board.await_viewer(first);
        self.site.board.end(data);
        if let Some(server) = self.server.lock().unwrap_or_else(PoisonError::into_inner).take() {
            server.finish(LINGER);
        }
    }
}

#[cfg(test)]
mod tests;
