//! A page that shows a run in browsers during the run, kept up to date by server-sent events.
//!
//! What is shown is opaque here: a JSON text that goes into the page and into every event. An
//! event holds all of it, so a viewer that comes late, comes back or is slow misses nothing. Each
//! viewer has a thread of its own, which holds one text at most; one that does not read is dropped.

mod board;
mod visit;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use board::Board;
use visit::{Site, visit};

/// Visitors at the same time.
const VISITORS_MAX: usize = 64;

/// Pause between two looks whether somebody came.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the end of a run waits for viewers to receive it.
const LINGER: Duration = Duration::from_secs(3);

/// The page without its data.
#[derive(Debug, Clone)]
pub struct PageFrame {
    /// What stands before the data.
    pub before: String,
    /// What stands after it.
    pub after: String,
}

/// What a viewer who knows the token can do with the run.
pub struct LiveControls {
    /// What the viewer must know.
    pub token: String,
    /// Ends the run.
    pub stop: Box<dyn Fn() + Send + Sync>,
    /// Sets the rate, in percent of the plan's, or says why it cannot.
    pub rate: Option<RateSetter>,
}

/// Sets the rate of a run, in percent of the plan's, or says why it cannot.
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
    site: Arc<Site>,
}

impl LiveServer {
    /// Listens at `HOST:PORT`; port 0 is any. Nobody is answered before [`LiveServer::start`],
    /// which comes after the first [`LiveServer::show`].
    ///
    /// # Errors
    /// Why it cannot listen there, in a sentence.
    pub fn bind(
        address: &str,
        frame: PageFrame,
        controls: Option<LiveControls>,
    ) -> Result<Self, String> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (bound, listener) = bind().map_err(|error: io::Error| format!("{address}: {error}"))?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
        let site = Arc::new(Site { frame, host, board: Board::default(), controls });
        Ok(Self { listener, address: bound, site })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to serve. Its threads have the scheduling class of the calling thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(&self) -> io::Result<()> {
        let (listener, site) = (self.listener.try_clone()?, Arc::clone(&self.site));
        let serve = move || serve(&listener, &site);
        std::thread::Builder::new().name("gake-live".to_owned()).spawn(serve)?;
        Ok(())
    }

    /// Whether anybody follows the run.
    #[must_use]
    pub fn has_viewers(&self) -> bool {
        self.site.board.viewers() > 0
    }

    /// Shows new data to every viewer.
    pub fn show(&self, data: String) {
        self.site.board.show(data);
    }

    /// Shows the last data. Waits until every viewer has it, for three seconds at most; before
    /// that, up to `first` for a first viewer.
    pub fn finish(&self, data: String, first: Duration) {
        self.site.board.await_viewer(first);
        self.site.board.end(data);
        self.site.board.await_nobody(LINGER);
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.site.board.close();
    }
}

fn serve(listener: &TcpListener, site: &Arc<Site>) {
    while !site.board.is_closed() {
        match listener.accept() {
            Ok((visitor, _)) => receive(visitor, site),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Gives a visitor a thread, if there are not too many.
fn receive(visitor: TcpStream, site: &Arc<Site>) {
    let Some(place) = site.board.enter(VISITORS_MAX) else { return };
    let site = Arc::clone(site);
    let receive = move || {
        // A visitor that breaks off, or does not read, is no news.
        let _ = visit(visitor, &site);
        drop(place);
    };
    // Without a thread the visitor is turned away: the connection closes.
    drop(std::thread::Builder::new().name("gake-viewer".to_owned()).spawn(receive));
}

#[cfg(test)]
mod tests;
