//! A live page of the run for browsers, updated by server-sent events.
//!
//! The data is opaque JSON text, embedded in the page and in every event. An event holds all of it,
//! so late, reconnecting or slow viewers miss nothing. Each viewer has its own thread, which holds
//! at most one text; a viewer that does not read is dropped.

mod board;
mod visit;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use board::Board;
use visit::{LiveSite, visit};

use crate::visitor::{accept_until, listen};

/// Maximum number of concurrent visitors.
const VISITORS_MAX: usize = 64;

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
        Ok(Self { listener, address: bound, site })
    }

    /// The address that it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to serve. Its threads inherit the scheduling class of the calling thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(&self) -> io::Result<()> {
        let (listener, site) = (self.listener.try_clone()?, Arc::clone(&self.site));
        let serve = move || {
            let is_closed = || site.board.is_closed();
            accept_until(&listener, is_closed, |visitor| receive(visitor, &site));
        };
        std::thread::Builder::new().name("gake-live".to_owned()).spawn(serve)?;
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
        self.site.board.await_departure(LINGER);
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.site.board.close();
    }
}

/// Starts a thread for a visitor, unless there are too many.
fn receive(visitor: TcpStream, site: &Arc<LiveSite>) {
    let Some(slot) = site.board.enter(VISITORS_MAX) else { return };
    let site = Arc::clone(site);
    let receive = move || {
        // Errors of a visitor are of no interest.
        let _ = visit(visitor, &site);
        drop(slot);
    };
    // Without a thread the connection closes.
    drop(std::thread::Builder::new().name("gake-viewer".to_owned()).spawn(receive));
}

#[cfg(test)]
mod tests;
