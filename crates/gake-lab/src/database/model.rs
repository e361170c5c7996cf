//! A modelled database server: it takes time and counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::DatabaseModel;
use super::error::DatabaseError;
use super::real::{UserReply, UserRow, UserStatement};
use crate::timer::Timer;

/// Users stored in full; of later ones only the number is known.
const STORED_MAX: usize = 100_000;

#[derive(Debug)]
pub(super) struct ModelServer {
    model: DatabaseModel,
    open: AtomicUsize,
    connects: AtomicU64,
    refused: AtomicU64,
    rows: Mutex<UserTable>,
}

#[derive(Debug, Default)]
struct UserTable {
    /// The first rows, in order of id.
    kept: Vec<UserRow>,
    count: u64,
    last_id: u64,
}

/// An open connection; dropping it closes it.
#[derive(Debug)]
pub(super) struct ModelConnection {
    server: Arc<ModelServer>,
}

impl ModelServer {
    pub(super) fn new(model: DatabaseModel) -> Self {
        let (connects, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { model, open: AtomicUsize::new(0), connects, refused, rows: Mutex::default() }
    }

    /// Opens a connection, which counts from the start of its handshake. Refused at the limit.
    pub(super) async fn connect(
        self: &Arc<Self>,
        timer: &Arc<Timer>,
    ) -> Result<ModelConnection, DatabaseError> {
        self.connects.fetch_add(1, Relaxed);
        let most = self.model.server_max.unwrap_or(usize::MAX);
        let room = |open: usize| (open < most).then_some(open + 1);
        if self.open.fetch_update(Relaxed, Relaxed, room).is_err() {
            self.refused.fetch_add(1, Relaxed);
            return Err(DatabaseError::TooManyConnections);
        }
        // Counted from here, so that an abandoned handshake is closed too.
        let connection = ModelConnection { server: Arc::clone(self) };
        timer.sleep(self.model.connect).await;
        Ok(connection)
    }

    /// Writes the metrics of MySQL's exporter, which gake recognises.
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

impl ModelConnection {
    pub(super) async fn execute(&self, statement: UserStatement, timer: &Arc<Timer>) -> UserReply {
        timer.sleep(self.server.model.statement).await;
        let mut rows = self.rows();
        match statement {
            UserStatement::Insert { name, mail } => {
                rows.last_id += 1;
                rows.count += 1;
                let user = UserRow { id: rows.last_id, name, mail };
                if rows.kept.len() < STORED_MAX {
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
                *rows = UserTable { last_id: rows.last_id, ..UserTable::default() };
                UserReply::Count(0)
            }
        }
    }

    fn rows(&self) -> MutexGuard<'_, UserTable> {
        self.server.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ModelConnection {
    fn drop(&mut self) {
        self.server.open.fetch_sub(1, Relaxed);
    }
}
