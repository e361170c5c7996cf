//! The handle of a running lab.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::unbounded_channel;

use crate::listen::{self, UnixPath};
use crate::shared::Shared;
use crate::stats::Stats;
use crate::thread::PreparedThread;
use crate::tls::TlsIdentity;
use crate::{LabCertificate, LabConfig, LabError};

/// A running lab. Dropping it stops it.
#[derive(Debug)]
pub struct Lab {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    _unix_path: Option<UnixPath>,
}

impl Lab {
    /// Listens and starts the threads, named `gake-lab-0` and up. Clients can connect when it
    /// returns. Needs no runtime.
    ///
    /// # Errors
    /// [`LabError`] when a setting is invalid, an address cannot be listened on, or the system has
    /// no descriptors or threads left.
    pub fn start(config: LabConfig) -> Result<Lab, LabError> {
        config.check()?;
        let has_own_tables = config.tables() > 1;
        let (tcp, udp) = match (config.http3, has_own_tables) {
            (true, _) => {
                let threads = config.worker_count();
                listen::tcp_and_udp(config.listen, config.accept_count, threads)?
            }
            (false, false) => (listen::tcp(config.listen, config.accept_count)?, Vec::new()),
            (false, true) => (listen::reserve(config.listen)?, Vec::new()),
        };
        let mut udp = udp.into_iter();
        let addr = tcp.local_addr()?.as_socket().unwrap_or(config.listen);
        let (mut sockets, mut reserved) = (Vec::new(), None);
        if has_own_tables {
            reserved = Some(tcp);
        } else {
            sockets.push(tcp);
        }
        let mut unix_path = None;
        if let Some(path) = &config.unix_socket {
            sockets.push(listen::unix(path, config.accept_count)?);
            unix_path = Some(UnixPath(path.clone()));
        }

        let mut ready = Vec::new();
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..config.worker_count() {
            // The first thread takes the listeners. Threads with their own descriptor tables are
            // woken through the descriptors of their runtimes, which must be in every table.
            ready.push(PreparedThread::new(std::mem::take(&mut sockets), udp.next())?);
            let (sender, receiver) = unbounded_channel();
            senders.push(sender);
            receivers.push(receiver);
        }
        let identity = config.tls.then(|| TlsIdentity::new(addr, &config)).transpose()?;
        let shared = Arc::new(Shared::new(config, addr, identity, senders));
        // Made first: if a thread cannot be started, dropping the handle stops the others.
        let mut lab = Lab { shared, threads: Vec::new(), _unix_path: unix_path };
        let (listening, listeners) = channel();
        for (index, (ready, commands)) in ready.into_iter().zip(receivers).enumerate() {
            let (shared, listening) = (Arc::clone(&lab.shared), listening.clone());
            lab.threads.push(ready.start(shared, index, commands, listening)?);
        }
        drop(listening);
        // Threads without a listener of their own drop their sender.
        listeners.into_iter().collect::<Result<(), _>>()?;
        drop(reserved);
        Ok(lab)
    }

    /// The TCP address, with the actual port.
    pub fn addr(&self) -> SocketAddr {
        self.shared.addr
    }

    /// The certificate that clients must trust, when the lab serves TLS.
    pub fn certificate(&self) -> Option<&LabCertificate> {
        self.shared.identity.as_ref().map(|identity| &identity.certificate)
    }

    /// The settings of the lab.
    pub fn config(&self) -> &LabConfig {
        &self.shared.config
    }

    /// What the lab has served so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Stalls the whole server for `length`, from now on: none of its threads runs, while the
    /// kernel keeps completing connections and buffering requests. Returns without waiting. A pause
    /// during another one extends it if it ends later.
    pub fn pause(&self, length: Duration) {
        let now = Instant::now();
        self.shared.pause(now.checked_add(length).unwrap_or(now + crate::duration::LONGEST));
    }

    /// The instants at which ordinary requests were read, in ascending order, up to
    /// `record_arrivals` of them.
    pub fn arrivals(&self) -> Vec<Instant> {
        self.shared.arrivals.sorted()
    }

    /// Stops accepting, closes every connection whatever its state, ends the threads and returns
    /// the statistics. Takes milliseconds.
    pub fn shutdown(mut self) -> Stats {
        self.stop();
        self.stats()
    }

    fn stop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A panicked thread has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn connections_are_spread_evenly_over_the_threads() {
        let lab = Lab::start(LabConfig { cores: 4, ..LabConfig::default() }).unwrap();
        let connect = || TcpStream::connect(lab.addr()).unwrap();
        let _clients: Vec<_> = (0..8).map(|_| connect()).collect();
        while lab.stats().connections.open < 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let loads: Vec<_> = lab.shared.loads.iter().map(|load| load.load(Relaxed)).collect();
        assert_eq!(loads, [2, 2, 2, 2]);
    }
}
