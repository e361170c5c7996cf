//! A connection pool with the bounds of Go's `database/sql`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gake_core::clock::nanos;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::DatabaseError;
use super::real::{RealDatabase, UserConnection, UserReply, UserStatement};
use super::{DatabaseConfig, DatabaseKind, model};
use crate::timer::Timer;

#[derive(Debug)]
pub(crate) struct ConnectionPool {
    config: DatabaseConfig,
    server: PoolBackend,
    /// Permits for open connections, when these are bounded.
    permits: Option<Arc<Semaphore>>,
    idle: Mutex<Vec<PooledConnection>>,
    open: Arc<AtomicUsize>,
    in_use: AtomicU64,
    closed_idle: AtomicU64,
    waited_ns: AtomicU64,
    /// Rows requested so far.
    inserts: AtomicU64,
}

#[derive(Debug)]
enum PoolBackend {
    Model(Arc<model::ModelServer>),
    Real(RealDatabase),
}

#[derive(Debug)]
struct PooledConnection {
    connection: PoolConnection,
    born: Instant,
    _open: OpenCount,
}

#[derive(Debug)]
enum PoolConnection {
    Model(model::ModelConnection),
    Real(Box<dyn UserConnection>),
}

/// Counts an open connection; dropping it uncounts it.
#[derive(Debug)]
struct OpenCount(Arc<AtomicUsize>);

/// A connection in use; dropping it returns it to the pool unless it is broken.
#[derive(Debug)]
struct Lease<'a> {
    pool: &'a ConnectionPool,
    connection: Option<PooledConnection>,
    is_whole: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ConnectionPool {
    pub(crate) fn new(config: DatabaseConfig) -> Self {
        let permit = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let server = match &config.kind {
            DatabaseKind::Model(model) => {
                PoolBackend::Model(Arc::new(model::ModelServer::new(*model)))
            }
            DatabaseKind::Real(real) => PoolBackend::Real(real.clone()),
        };
        Self {
            server,
            permits: config.max_open.map(permit),
            config,
            idle: Mutex::default(),
            open: Arc::default(),
            in_use: AtomicU64::new(0),
            closed_idle: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
        }
    }

    /// Executes a statement on an idle connection, else on a new one. Waits at the limit.
    pub(crate) async fn execute(
        &self,
        statement: UserStatement,
        timer: &Arc<Timer>,
    ) -> Result<UserReply, DatabaseError> {
        let permit = self.permit().await?;
        self.in_use.fetch_add(1, Relaxed);
        let mut lease = Lease { pool: self, connection: None, is_whole: true, _permit: permit };
        let connection = match self.reused() {
            Some(connection) => connection,
            None => self.connect(timer).await?,
        };
        let connection = lease.connection.insert(connection);
        match &mut connection.connection {
            PoolConnection::Model(connection) => Ok(connection.execute(statement, timer).await),
            PoolConnection::Real(connection) => {
                // Broken if the statement is abandoned midway.
                lease.is_whole = false;
                let answer = connection.execute(statement).await.map_err(DatabaseError::Server)?;
                lease.is_whole = true;
                Ok(answer)
            }
        }
    }

    /// Whether the next row is acknowledged and lost.
    pub(crate) fn loses(&self) -> bool {
        let nth = self.inserts.fetch_add(1, Relaxed) + 1;
        self.config.lose_every.is_some_and(|every| nth.is_multiple_of(every))
    }

    async fn connect(&self, timer: &Arc<Timer>) -> Result<PooledConnection, DatabaseError> {
        self.open.fetch_add(1, Relaxed);
        let open = OpenCount(Arc::clone(&self.open));
        let born = Instant::now();
        let connection = match &self.server {
            PoolBackend::Model(server) => PoolConnection::Model(server.connect(timer).await?),
            PoolBackend::Real(database) => {
                let connected = database.0.connect().await;
                PoolConnection::Real(connected.map_err(DatabaseError::Server)?)
            }
        };
        Ok(PooledConnection { connection, born, _open: open })
    }

    async fn permit(&self) -> Result<Option<OwnedSemaphorePermit>, DatabaseError> {
        let Some(permits) = &self.permits else { return Ok(None) };
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(Some(permit));
        }
        let begun = Instant::now();
        let wait = Arc::clone(permits).acquire_owned();
        let permit = match self.config.acquire_timeout {
            None => wait.await.ok(),
            Some(limit) => tokio::time::timeout(limit, wait).await.ok().and_then(Result::ok),
        };
        let waited = nanos(begun.elapsed());
        self.waited_ns.fetch_add(waited, Relaxed);
        // The semaphore is never closed: `None` is a timeout.
        permit.map(Some).ok_or(DatabaseError::AcquireTimeout)
    }

    /// The most recently used idle connection that is young enough.
    fn reused(&self) -> Option<PooledConnection> {
        let mut idle = self.idle();
        while let Some(connection) = idle.pop() {
            let old = self.config.lifetime.is_some_and(|most| connection.born.elapsed() >= most);
            if !old {
                return Some(connection);
            }
        }
        None
    }

    fn put_back(&self, connection: PooledConnection) {
        let mut idle = self.idle();
        if idle.len() < self.config.max_idle {
            idle.push(connection);
            return;
        }
        drop(idle);
        self.closed_idle.fetch_add(1, Relaxed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PooledConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the metrics of Go's exporter, which gake recognises.
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
        // A real database has metrics of its own (mysql://, postgres://).
        if let PoolBackend::Model(server) = &self.server {
            server.render(out);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.pool.in_use.fetch_sub(1, Relaxed);
        if let Some(connection) = self.connection.take().filter(|_| self.is_whole) {
            self.pool.put_back(connection);
        }
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
