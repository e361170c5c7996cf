//! The status of a database, by statements for each kind.

use gake_sql::{Dsn, Row, SqlKind, SqlSession};

const MYSQL_STATUS: &str = "\
SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', \
'Max_used_connections', 'Connection_errors_max_connections', 'Aborted_connects', 'Connections', \
'Questions', 'Innodb_row_lock_current_waits')";
const MYSQL_ALLOWED: &str = "SELECT @@global.max_connections";

/// The connections allowed exclude those reserved for the owner. Users without the privilege see
/// only the database in rows about others.
const POSTGRES_STATUS: &str = "\
SELECT count(*) FILTER (WHERE coalesce(backend_type, 'client backend') = 'client backend' \
           AND datname IS NOT NULL), \
       (SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) \
           FROM pg_settings WHERE name IN ('max_connections', 'superuser_reserved_connections', \
                                           'reserved_connections')), \
       count(*) FILTER (WHERE state = 'active'), \
       count(*) FILTER (WHERE wait_event_type = 'Lock'), \
       count(*) FILTER (WHERE wait_event_type = 'IO'), \
       (SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database) \
FROM pg_stat_activity";

/// Available from PostgreSQL 14 on.
const POSTGRES_SESSIONS: &str = "SELECT sum(sessions) FROM pg_stat_database";

/// The status of a database; `None` where it reports no value.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct DatabaseStatus {
    pub(super) open: Option<f64>,
    /// Connections that an application may have open.
    pub(super) allowed: Option<f64>,
    /// The peak number of open connections since the server was started.
    pub(super) open_max: Option<f64>,
    /// Connections refused because none was free, since the server was started.
    pub(super) refused: Option<f64>,
    /// Failed attempts to connect since the server was started, including refused ones: MariaDB
    /// refuses most before it counts them as `refused`.
    pub(super) aborted: Option<f64>,
    /// Connections opened since the server was started.
    pub(super) connects: Option<f64>,
    /// Connections that run a statement, including this one.
    pub(super) running: Option<f64>,
    pub(super) lock_waits: Option<f64>,
    pub(super) io_waits: Option<f64>,
    /// Statements since the server was started.
    pub(super) statements: Option<f64>,
    /// Transactions since the server was started.
    pub(super) transactions: Option<f64>,
}

#[derive(Debug)]
pub(super) struct StatusSession {
    session: SqlSession,
    kind: SqlKind,
    counts_sessions: bool,
}

impl StatusSession {
    pub(super) async fn open(dsn: &Dsn) -> Result<Self, String> {
        let (mut session, kind) = (SqlSession::open(dsn).await?, dsn.kind());
        // Older servers lack the column.
        let counts_sessions =
            kind == SqlKind::Postgres && session.rows(POSTGRES_SESSIONS).await.is_ok();
        Ok(Self { session, kind, counts_sessions })
    }

    pub(super) async fn status(&mut self) -> Result<DatabaseStatus, String> {
        match self.kind {
            SqlKind::MySql => self.mysql().await,
            SqlKind::Postgres => self.postgres().await,
        }
    }

    async fn mysql(&mut self) -> Result<DatabaseStatus, String> {
        let rows = self.session.rows(MYSQL_STATUS).await?;
        let of = |name: &str| {
            let row = rows.iter().find(|row| matches!(row.first(), Some(Some(n)) if n == name))?;
            number(row, 1)
        };
        let allowed = self.session.rows(MYSQL_ALLOWED).await?;
        Ok(DatabaseStatus {
            open: of("Threads_connected"),
            open_max: of("Max_used_connections"),
            refused: of("Connection_errors_max_connections"),
            aborted: of("Aborted_connects"),
            connects: of("Connections"),
            running: of("Threads_running"),
            lock_waits: of("Innodb_row_lock_current_waits"),
            statements: of("Questions"),
            allowed: allowed.first().and_then(|row| number(row, 0)),
            ..DatabaseStatus::default()
        })
    }

    async fn postgres(&mut self) -> Result<DatabaseStatus, String> {
        let rows = self.session.rows(POSTGRES_STATUS).await?;
        let of = |at: usize| number(rows.first()?, at);
        let connects = match self.counts_sessions {
            true => self.session.rows(POSTGRES_SESSIONS).await?,
            false => Vec::new(),
        };
        Ok(DatabaseStatus {
            open: of(0),
            allowed: of(1),
            running: of(2),
            lock_waits: of(3),
            io_waits: of(4),
            transactions: of(5),
            connects: connects.first().and_then(|row| number(row, 0)),
            ..DatabaseStatus::default()
        })
    }
}

fn number(row: &Row, at: usize) -> Option<f64> {
    row.get(at)?.as_ref()?.parse().ok()
}
