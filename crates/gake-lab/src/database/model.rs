//! A database server that does nothing but take its time and count.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::DatabaseModel;
use super::error::DatabaseError;
use super::real::{UserReply, UserRow, UserStatement};
use crate::timer::Timer;

/// Users that are kept with their names; of others only the number is known.
const KEPT: usize = 100_000;

/// The server.
#[derive(Debug)]
pub(super) struct Server {
    model: DatabaseModel,
    open: AtomicUsize,
    connects: AtomicU64,
    refused: AtomicU64,
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    /// The first ones, in order.
    kept: Vec<UserRow>,
    count: u64,
    last_id: u64,
}

/// An open connection; closed when dropped.
#[derive(Debug)]
pub(super) struct Connection {
    server: Arc<Server>,
}

impl Server {
    pub(super) fn new(model: DatabaseModel) -> Self {
        let (connects, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { model, open: AtomicUsize::new(0), connects, refused, rows: Mutex::default() }
    }

    /// Opens a connection, which counts from the start of its handshake on. Over the bound it is
    /// refused at once.
    pub(super) async fn connect(
        self: &Arc<Self>,
        timer: &Arc<Timer>,
    ) -> Result<Connection, DatabaseError> {
        self.connects.fetch_add(1, Relaxed);
        let most = self.model.server_max.unwrap_or(usize::MAX);
        let room = |open: usize| (open < most).then_some(open + 1);
        if self.open.fetch_update(Relaxed, Relaxed, room).is_err() {
            self.refused.fetch_add(1, Relaxed);
            return Err(DatabaseError::TooManyConnections);
        }
        // Open from now on, so that one that is given up in between is closed.
        let connection = Connection { server: Arc::clone(self) };
        timer.sleep(self.model.connect).await;
        Ok(connection)
    }

    /// Its figures under the names of MySQL's exporter, which gake knows.
    pub(super) fn render(&self, out: &mut String) {
        use std::fmt::Write;
        let (open, connects) = (self.open.load(Relaxed), self.connects.load(Relaxed));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "# TYPE mysql_global_status_threads_connected gauge\n\
             mysql_global_status_threads_connected {open}\n\
             # TYPE mysql_global_status_connections counter\n\
             mysql_global_status_connections {connects}"
        );
        if let Some(most) = self.model.server_max {
            let _ = writeln!(
                out,
                "mysql_global_variables_max_connections {most}\n\
                 mysql_global_status_connection_errors_total{{error=\"max_connections\"}} {}",
                self.refused.load(Relaxed)
            );
        }
    }
}

impl Connection {
    pub(super) async fn execute(&self, statement: UserStatement, timer: &Arc<Timer>) -> UserReply {
        timer.sleep(self.server.model.statement).await;
        let mut rows = self.rows();
        match statement {
            UserStatement::Insert { name, mail } => {
                rows.last_id += 1;
                rows.count += 1;
                let user = UserRow { id: rows.last_id, name, mail };
                if rows.kept.len() < KEPT {
                    rows.kept.push(user.clone());
                }
                UserReply::Row(Some(user))
            }
            UserStatement::Get(id) => {
                let at = rows.kept.binary_search_by_key(&id, |user| user.id);
                UserReply::Row(at.ok().map(|at| rows.kept[at].clone()))
            }
            UserStatement::Count => UserReply::Count(rows.count),
            UserStatement::Clear => {
                *rows = Rows { last_id: rows.last_id, ..Rows::default() };
                UserReply::Count(0)
            }
        }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.server.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.open.fetch_sub(1, Relaxed);
    }
}
