//! A pool of connections with the bounds of Go's `database/sql`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::DatabaseModel;
use super::model::{Connection, DatabaseError, Server};
use crate::timer::Timer;

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool {
    model: DatabaseModel,
    pub(crate) server: Arc<Server>,
    /// Places among those open, when they are bounded.
    places: Option<Arc<Semaphore>>,
    idle: Mutex<Vec<Connection>>,
    in_use: AtomicU64,
    closed_idle: AtomicU64,
    waited_ns: AtomicU64,
}

/// A connection that somebody uses; the pool's again when dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(crate) fn new(model: DatabaseModel) -> Self {
        let place = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            model,
            server: Arc::new(Server::new(model.connect, model.server_max)),
            places: model.max_open.map(place),
            idle: Mutex::default(),
            in_use: AtomicU64::new(0),
            closed_idle: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// Takes a connection: one that idles, else a new one. Waits where the bound is reached.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        timer: &Arc<Timer>,
    ) -> Result<Lease, DatabaseError> {
        let place = self.place().await?;
        let mut lease = Lease { pool: Arc::clone(self), connection: None, _place: place };
        self.in_use.fetch_add(1, Relaxed);
        lease.connection = Some(match self.reused() {
            Some(connection) => connection,
            None => self.server.connect(timer).await?,
        });
        Ok(lease)
    }

    /// Whether the database acknowledges the row `id` and loses it.
    pub(crate) fn loses(&self, id: u64) -> bool {
        self.model.lose_every.is_some_and(|every| id.is_multiple_of(every))
    }

    /// Makes a statement, which takes its time.
    pub(crate) async fn statement(&self, timer: &Arc<Timer>) {
        timer.sleep(self.model.statement).await;
    }

    async fn place(&self) -> Result<Option<OwnedSemaphorePermit>, DatabaseError> {
        let Some(places) = &self.places else { return Ok(None) };
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(Some(place));
        }
        let begun = Instant::now();
        let wait = Arc::clone(places).acquire_owned();
        let place = match self.model.acquire_timeout {
            None => wait.await.ok(),
            Some(limit) => tokio::time::timeout(limit, wait).await.ok().and_then(Result::ok),
        };
        let waited = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waited_ns.fetch_add(waited, Relaxed);
        // The semaphore is never closed: only the time-out leaves none.
        place.map(Some).ok_or(DatabaseError::AcquireTimeout)
    }

    /// The connection that idled last and is young enough.
    fn reused(&self) -> Option<Connection> {
        let mut idle = self.idle();
        while let Some(connection) = idle.pop() {
            let old = self.model.lifetime.is_some_and(|most| connection.born.elapsed() >= most);
            if !old {
                return Some(connection);
            }
        }
        None
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < self.model.max_idle {
            idle.push(connection);
            return;
        }
        drop(idle);
        self.closed_idle.fetch_add(1, Relaxed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its figures under the names of Go's and of MySQL's exporters, which gake knows.
    pub(crate) fn render(&self, out: &mut String) {
        use std::fmt::Write;
        let server = &self.server;
        let max_open = self.model.max_open.unwrap_or(0);
        let waited = self.waited_ns.load(Relaxed) as f64 / 1e9;
        for (name, kind, value) in [
            ("go_sql_in_use_connections", "gauge", self.in_use.load(Relaxed) as f64),
            ("go_sql_open_connections", "gauge", server.open() as f64),
            ("go_sql_max_open_connections", "gauge", max_open as f64),
            ("go_sql_max_idle_closed_total", "counter", self.closed_idle.load(Relaxed) as f64),
            ("go_sql_wait_duration_seconds_total", "counter", waited),
            ("mysql_global_status_threads_connected", "gauge", server.open() as f64),
            ("mysql_global_status_connections", "counter", server.connects.load(Relaxed) as f64),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# TYPE {name} {kind}\n{name} {value}");
        }
        if let Some(most) = server.max() {
            let _ = writeln!(
                out,
                "mysql_global_variables_max_connections {most}\n\
                 mysql_global_status_connection_errors_total{{error=\"max_connections\"}} {}",
                server.refused.load(Relaxed)
            );
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.in_use.fetch_sub(1, Relaxed);
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}
