//! A worker: accepts clients and serves them on one thread, with pools of its own.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use super::client;
use super::congestion;
use super::date::Dates;
use super::link::Scratch;
use super::pool::Pool;
use super::shared::{Counters, Shared, count};
use super::target::Target;
use super::watch::Ticker;
use crate::mirror::{Mirror, gate};

/// How long to wait when the system has no descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// How far the proxy's end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Nobody new; those inside may finish.
    Draining,
    /// At once.
    Over,
}

/// What the tasks of one thread share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) ticker: Rc<Ticker>,
    pub(crate) patience: Patience,
    pub(crate) master: Rc<Pool>,
    /// For races alone: copies have connections of their own.
    pub(crate) contenders: Vec<Rc<Pool>>,
    pub(crate) mirror: Rc<Mirror>,
    pub(crate) draws: RefCell<Xoshiro256PlusPlus>,
    /// Plain requests go as bytes: nobody wants to see or change them as maps.
    pub(crate) passes_bytes: bool,
    pub(crate) scratch: Scratch,
    /// What is written to clients goes through it.
    pub(crate) spare: Cell<Vec<u8>>,
    pub(crate) date: Dates,
    phase: Cell<Phase>,
    open: Cell<usize>,
    /// Somebody left.
    leaving: Notify,
}

/// The time-outs in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) head: u64,
    pub(crate) client: u64,
    pub(crate) connect: u64,
    pub(crate) first_byte: u64,
    pub(crate) idle: u64,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: usize,
        acceptor: Option<TlsAcceptor>,
        mirror: Mirror,
        contenders: &[Arc<Target>],
    ) -> Rc<Self> {
        let (timeouts, limits) = (shared.config.timeouts, shared.config.limits);
        let ticker = Ticker::new(timeouts.shortest());
        let patience = Patience {
            head: ticker.ticks(timeouts.head),
            client: ticker.ticks(timeouts.client),
            connect: ticker.ticks(timeouts.connect),
            first_byte: ticker.ticks(timeouts.first_byte),
            idle: ticker.ticks(timeouts.idle),
        };
        let pool = |target: &Arc<Target>| {
            Rc::new(Pool::new(Arc::clone(target), limits.idle, patience.idle))
        };
        Rc::new(Self {
            index,
            acceptor,
            patience,
            master: pool(&shared.master),
            contenders: contenders.iter().map(pool).collect(),
            mirror: Rc::new(mirror),
            draws: RefCell::new(gate::draws(shared.config.seed, index)),
            passes_bytes: shared.passes_bytes(),
            scratch: Scratch::new(),
            spare: Cell::default(),
            date: Dates::new(),
            phase: Cell::new(Phase::Running),
            open: Cell::new(0),
            leaving: Notify::new(),
            ticker,
            shared,
        })
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.phase.get() >= Phase::Draining
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase.get() == Phase::Over
    }

    /// A client has left.
    pub(crate) fn left(&self) {
        self.open.set(self.open.get() - 1);
        self.leaving.notify_one();
    }
}

/// Serves until told to stop, and then until all have left or time is over.
pub(crate) async fn run(
    worker: Rc<Worker>,
    listener: std::net::TcpListener,
    mut phase: watch::Receiver<Phase>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    tokio::task::spawn_local(Rc::clone(&worker.ticker).run());
    tokio::task::spawn_local(Rc::clone(&worker.mirror).post(worker.ticker.watch()));
    {
        let mut accepting = pin!(accept(&worker, &listener));
        let mut told = pin!(phase.wait_for(|phase| *phase != Phase::Running));
        std::future::poll_fn(|cx| match told.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => accepting.as_mut().poll(cx).map(|()| ()),
        })
        .await;
    }
    // New clients are refused from here on, and go elsewhere.
    drop(listener);
    worker.phase.set(Phase::Draining);
    worker.ticker.wake_all();
    while worker.open.get() > 0 {
        let left = worker
            .shared
            .drain_ends()
            .map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = worker.leaving.notified() => {}
            () = tokio::time::sleep(left) => break,
            _ = phase.wait_for(|phase| *phase == Phase::Over) => break,
        }
    }
    Ok(())
}

async fn accept(worker: &Rc<Worker>, listener: &TcpListener) {
    let most = worker.shared.config.limits.connections.div_ceil(worker.shared.workers());
    loop {
        while worker.open.get() >= most {
            worker.leaving.notified().await;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                worker.open.set(worker.open.get() + 1);
                spawn(worker, stream, peer);
            }
            Err(error) => {
                count(&worker.counters().accept_errors);
                // One who gave up in the queue is no reason to wait; a lack of descriptors is.
                let gone = [io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted];
                if !gone.contains(&error.kind()) {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn spawn(worker: &Rc<Worker>, stream: tokio::net::TcpStream, peer: SocketAddr) {
    // An answer is one write; waiting to fill a packet would only delay its end.
    let _ = stream.set_nodelay(true);
    congestion::send_at_once(&stream, peer.ip());
    tokio::task::spawn_local(client::serve(Rc::clone(worker), stream, peer));
}
