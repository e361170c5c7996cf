//! The lab on a real database, which may go away and come back; what it had is restored at the end.

use std::thread;
use std::time::{Duration, Instant};

use gake_run::Interrupt;
use gake_session::Failure;
use gake_users::{UserStore, UserStoreSnapshot};

use crate::bench::StepError;
use crate::server::Server;

/// How long a database takes to close the connections of a process that has ended.
pub const CLOSING: Duration = Duration::from_secs(1);
/// How long a database that has gone away is waited for, and how often it is asked.
const RETURNING: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);

/// A real database.
#[derive(Debug)]
pub struct DatabaseGuard<'a> {
    /// As the user wrote it, perhaps with a password.
    written: &'a str,
    store: &'a UserStore,
    before: UserStoreSnapshot,
    /// Ends waiting for it.
    interrupt: Interrupt,
}

impl<'a> DatabaseGuard<'a> {
    /// Looks at what it has.
    pub fn new(
        written: &'a str,
        store: &'a UserStore,
        interrupt: Interrupt,
    ) -> Result<Self, Failure> {
        let before = UserStoreSnapshot::of(store).map_err(|why| {
            Failure::could_not(format!("{why} (without --db the database is a model)"))
        })?;
        Ok(Self { written, store, before, interrupt })
    }

    /// As a source to sample, if it counts its connections.
    pub fn source(&self) -> Option<String> {
        matches!(self.store, UserStore::Server(_)).then(|| self.written.to_owned())
    }

    /// A lab on it, and the rows that there are. Waits for one that has gone away, if `is_patient`.
    pub fn start(&self, flags: &str, is_patient: bool) -> Result<(Server, u64), StepError> {
        let name = match self.store {
            UserStore::Server(dsn) => dsn.database(),
            _ => None,
        };
        let name = name.map_or(String::new(), |name| format!("?dbname={name}"));
        let start = || {
            let shown = format!("'{}{name}'", self.store);
            let server = Server::lab_on(flags, self.written, &shown)?;
            let rows = server.users()?;
            Ok((server, rows))
        };
        let started = if is_patient { self.patiently(start) } else { start() };
        started.map_err(|why| match self.interrupt.came() {
            true => StepError::Interrupted,
            false => StepError::Failed(why),
        })
    }

    /// How many rows there are.
    pub fn rows(&self, server: &Server) -> Result<u64, Failure> {
        self.patiently(|| server.users())
    }

    /// Deletes the rows that were added.
    pub fn restore(&self) -> Result<(), Failure> {
        self.patiently(|| self.before.restore(self.store).map_err(Failure::could_not))
    }

    /// Tries again for some time, for a database that comes back.
    fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        let until = Instant::now() + RETURNING;
        loop {
            match attempt() {
                Err(_) if Instant::now() < until && !self.interrupt.came() => thread::sleep(AGAIN),
                other => return other,
            }
        }
    }
}
