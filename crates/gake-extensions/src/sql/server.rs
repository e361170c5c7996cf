//! A database behind a network: one connection of a user, kept between statements.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_k6::user::dial::{dial, is_blocked, tls_settings};
use gake_k6::user::vu::Vu;
use gake_script::user::{HeapCharge, aside};
use gake_sql::{LoginTls, ResultSet, SqlError, SqlKind, SqlValue, TypedSession};
use gake_wire::StreamTls;
use rquickjs::Ctx;

use super::Limits;
use super::target::SqlTarget;
use super::transport::UserTransport;
use super::values::Times;
use crate::later::within;

/// The time that connecting and the login may take by default.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a result in init code, which is read on another thread.
const INIT_ROOM: usize = 64 << 20;

/// The error of init code whose connection needs certificates of its own.
const OWN_ROOTS: &str = "init code cannot connect with certificates of its own: execute the statement \
                         in setup() or later";

/// The error of a statement that takes too long.
pub(super) const LATE: &str = "context deadline exceeded";

pub(super) struct SqlServer {
    vu: Rc<Vu>,
    target: SqlTarget,
    limits: Limits,
    tls: OnceCell<Result<StreamTls, String>>,
    idle: RefCell<Option<OpenSession>>,
}

struct OpenSession {
    session: TypedSession<UserTransport>,
    opened: Nanos,
    used: Nanos,
}

impl SqlServer {
    pub(super) fn new(vu: &Rc<Vu>, target: SqlTarget, limits: Limits) -> Self {
        let (tls, idle) = (OnceCell::new(), RefCell::default());
        Self { vu: Rc::clone(vu), target, limits, tls, idle }
    }

    pub(super) fn kind(&self) -> SqlKind {
        self.target.kind
    }

    pub(super) fn times(&self) -> Times {
        match self.target.kind {
            SqlKind::Postgres => Times::Local,
            SqlKind::MySql if self.target.parses_time => Times::Utc,
            SqlKind::MySql => Times::Bytes,
        }
    }

    pub(super) fn close(&self) {
        drop(self.idle.take());
    }

    /// Executes a statement of an iteration.
    pub(super) async fn execute(
        &self,
        statement: &str,
        arguments: &[SqlValue],
        charge: &mut HeapCharge,
    ) -> Result<ResultSet, SqlError> {
        let mut room = |bytes: usize| charge.grow(bytes);
        let kept = self.idle.take().filter(|kept| !self.is_stale(kept));
        let kept = kept.and_then(|mut kept| (!kept.session.has_ended()).then_some(kept));
        let mut open = match kept {
            Some(kept) => kept,
            None => self.open(&mut room).await?,
        };
        let result = open.session.execute(statement, arguments, &mut room).await;
        if matches!(result, Ok(_) | Err(SqlError::Refused(_))) && self.limits.idle_max != 0 {
            open.used = self.vu.now();
            self.idle.replace(Some(open));
        }
        result
    }

    fn is_stale(&self, kept: &OpenSession) -> bool {
        let now = self.vu.now();
        let is_over = |limit: Option<Duration>, since: Nanos| {
            limit.is_some_and(|limit| Duration::from_nanos(now.saturating_sub(since)) >= limit)
        };
        is_over(self.limits.idle_time, kept.used) || is_over(self.limits.lifetime, kept.opened)
    }

    async fn open(&self, room: &mut dyn FnMut(usize) -> bool) -> Result<OpenSession, SqlError> {
        let timeout = self.target.timeout.unwrap_or(OPEN_TIMEOUT);
        let opening = async {
            let SqlTarget { host, port, first, .. } = &self.target;
            let tls = self.tls()?;
            let stream = dial(&self.vu, host, *port, timeout).await;
            let stream = stream.map_err(|error| SqlError::Refused(error.message))?;
            let transport = UserTransport::new(stream, tls);
            let mut session = TypedSession::start(transport, &self.target.dsn()).await?;
            for statement in first {
                session.execute(statement, &[], &mut *room).await?;
            }
            let now = self.vu.now();
            Ok(OpenSession { session, opened: now, used: now })
        };
        within(&self.vu, timeout, opening).await.unwrap_or_else(|| {
            let SqlTarget { host, port, .. } = &self.target;
            Err(SqlError::Lost(format!("dial tcp {host}:{port}: i/o timeout")))
        })
    }

    fn tls(&self) -> Result<Option<StreamTls>, SqlError> {
        if self.target.login.tls.is_none() {
            return Ok(None);
        }
        let make = || tls_settings(&self.vu, &self.target.host, &self.target.tls);
        let made = self.tls.get_or_init(make);
        made.clone().map(Some).map_err(SqlError::Lost)
    }

    /// Executes a statement of init code, which has no connections: on a thread of its own, over a
    /// connection for this statement.
    pub(super) fn execute_in_init(
        &self,
        ctx: &Ctx<'_>,
        statement: &str,
        arguments: &[SqlValue],
        limit: Option<Duration>,
    ) -> rquickjs::Result<Result<ResultSet, SqlError>> {
        if let Some(why) = is_blocked(&self.vu, &self.target.host) {
            return Ok(Err(SqlError::Refused(why)));
        }
        let mut target = self.target.clone();
        if target.login.tls.is_some() && !target.tls.insecure {
            if !target.tls.authorities.is_empty() {
                return Ok(Err(SqlError::Refused(OWN_ROOTS.to_owned())));
            }
            target.login.tls = Some(LoginTls::Verified);
        }
        let (statement, arguments) = (statement.to_owned(), arguments.to_vec());
        let limit = limit.unwrap_or(OPEN_TIMEOUT);
        aside(ctx, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| SqlError::Lost(error.to_string()))?;
            let executed = runtime.block_on(async {
                tokio::time::timeout(limit, once(&target, &statement, &arguments)).await
            });
            executed.unwrap_or_else(|_| Err(SqlError::Lost(LATE.to_owned())))
        })
    }
}

/// Opens a connection, and executes a statement.
async fn once(
    target: &SqlTarget,
    statement: &str,
    arguments: &[SqlValue],
) -> Result<ResultSet, SqlError> {
    let mut left = INIT_ROOM;
    let mut room = |bytes: usize| {
        let enough = left.checked_sub(bytes);
        left = enough.unwrap_or(left);
        enough.is_some()
    };
    let mut session = TypedSession::open(&target.dsn()).await?;
    for first in &target.first {
        session.execute(first, &[], &mut room).await?;
    }
    session.execute(statement, arguments, &mut room).await
}
