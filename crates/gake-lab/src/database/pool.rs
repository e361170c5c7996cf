//! A pool of connections with the bounds of Go's `database/sql`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gake_core::clock::nanos;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::DatabaseError;
use super::real::{RealDatabase, UserConnection, UserReply, UserStatement};
use super::{DatabaseConfig, DatabaseKind, model};
use crate::timer::Timer;

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool {
    config: DatabaseConfig,
    server: Server,
    /// Places among those open, when they are bounded.
    places: Option<Arc<Semaphore>>,
    idle: Mutex<Vec<Pooled>>,
    open: Arc<AtomicUsize>,
    in_use: AtomicU64,
    closed_idle: AtomicU64,
    waited_ns: AtomicU64,
    /// Rows that were asked for.
    inserts: AtomicU64,
}

/// What the pool leads to.
#[derive(Debug)]
enum Server {
    Model(Arc<model::Server>),
    Real(RealDatabase),
}

/// A connection of the pool.
#[derive(Debug)]
struct Pooled {
    connection: Connection,
    born: Instant,
    _open: Open,
}

#[derive(Debug)]
enum Connection {
    Model(model::Connection),
    Real(Box<dyn UserConnection>),
}

/// One of those that are open; no longer when dropped.
#[derive(Debug)]
struct Open(Arc<AtomicUsize>);

/// A connection that somebody uses; the pool's again when dropped, unless it is broken.
#[derive(Debug)]
struct Lease<'a> {
    pool: &'a Pool,
    connection: Option<Pooled>,
    is_whole: bool,
    _place: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(crate) fn new(config: DatabaseConfig) -> Self {
        let place = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let server = match &config.kind {
            DatabaseKind::Model(model) => Server::Model(Arc::new(model::Server::new(*model))),
            DatabaseKind::Real(real) => Server::Real(real.clone()),
        };
        Self {
            server,
            places: config.max_open.map(place),
            config,
            idle: Mutex::default(),
            open: Arc::default(),
            in_use: AtomicU64::new(0),
            closed_idle: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
        }
    }

    /// Executes a statement on a connection that idles, else on a new one. Waits where the bound is
    /// reached.
    pub(crate) async fn execute(
        &self,
        statement: UserStatement,
        timer: &Arc<Timer>,
    ) -> Result<UserReply, DatabaseError> {
        let place = self.place().await?;
        self.in_use.fetch_add(1, Relaxed);
        let mut lease = Lease { pool: self, connection: None, is_whole: true, _place: place };
        let connection = match self.reused() {
            Some(connection) => connection,
            None => self.connect(timer).await?,
        };
        let connection = lease.connection.insert(connection);
        match &mut connection.connection {
            Connection::Model(connection) => Ok(connection.execute(statement, timer).await),
            Connection::Real(connection) => {
                // Broken, should it be given up in between.
                lease.is_whole = false;
                let answer = connection.execute(statement).await.map_err(DatabaseError::Said)?;
                lease.is_whole = true;
                Ok(answer)
            }
        }
    }

    /// Whether the row that is asked for now is to be acknowledged and lost.
    pub(crate) fn loses(&self) -> bool {
        let nth = self.inserts.fetch_add(1, Relaxed) + 1;
        self.config.lose_every.is_some_and(|every| nth.is_multiple_of(every))
    }

    async fn connect(&self, timer: &Arc<Timer>) -> Result<Pooled, DatabaseError> {
        self.open.fetch_add(1, Relaxed);
        let open = Open(Arc::clone(&self.open));
        let born = Instant::now();
        let connection = match &self.server {
            Server::Model(server) => Connection::Model(server.connect(timer).await?),
            Server::Real(database) => {
                let connected = database.0.connect().await;
                Connection::Real(connected.map_err(DatabaseError::Said)?)
            }
        };
        Ok(Pooled { connection, born, _open: open })
    }

    async fn place(&self) -> Result<Option<OwnedSemaphorePermit>, DatabaseError> {
        let Some(places) = &self.places else { return Ok(None) };
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(Some(place));
        }
        let begun = Instant::now();
        let wait = Arc::clone(places).acquire_owned();
        let place = match self.config.acquire_timeout {
            None => wait.await.ok(),
            Some(limit) => tokio::time::timeout(limit, wait).await.ok().and_then(Result::ok),
        };
        let waited = nanos(begun.elapsed());
        self.waited_ns.fetch_add(waited, Relaxed);
        // The semaphore is never closed: only the time-out leaves none.
        place.map(Some).ok_or(DatabaseError::AcquireTimeout)
    }

    /// The connection that idled last and is young enough.
    fn reused(&self) -> Option<Pooled> {
        let mut idle = self.idle();
        while let Some(connection) = idle.pop() {
            let old = self.config.lifetime.is_some_and(|most| connection.born.elapsed() >= most);
            if !old {
                return Some(connection);
            }
        }
        None
    }

    fn give_back(&self, connection: Pooled) {
        let mut idle = self.idle();
        if idle.len() < self.config.max_idle {
            idle.push(connection);
            return;
        }
        drop(idle);
        self.closed_idle.fetch_add(1, Relaxed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pooled>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its figures under the names of Go's exporter, which gake knows.
    pub(crate) fn render(&self, out: &mut String) {
        use std::fmt::Write;
        let max_open = self.config.max_open.unwrap_or(0);
        let waited = self.waited_ns.load(Relaxed) as f64 / 1e9;
        for (name, kind, value) in [
            ("go_sql_in_use_connections", "gauge", self.in_use.load(Relaxed) as f64),
            ("go_sql_open_connections", "gauge", self.open.load(Relaxed) as f64),
            ("go_sql_max_open_connections", "gauge", max_open as f64),
            ("go_sql_max_idle_closed_total", "counter", self.closed_idle.load(Relaxed) as f64),
            ("go_sql_wait_duration_seconds_total", "counter", waited),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# TYPE {name} {kind}\n{name} {value}");
        }
        // A real database is asked itself: gake watches mysql:// and postgres:// too.
        if let Server::Model(server) = &self.server {
            server.render(out);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.pool.in_use.fetch_sub(1, Relaxed);
        if let Some(connection) = self.connection.take().filter(|_| self.is_whole) {
            self.pool.give_back(connection);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
