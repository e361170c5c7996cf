//! A database in a file. Its statements run on threads of their own: SQLite blocks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gake_script::user::aside;
use gake_sql::{ResultSet, SqlError, SqlValue};
use rquickjs::Ctx;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Batch, Connection, OpenFlags, Statement};

use super::server::LATE;

/// Bytes of a result.
const ROOM: usize = 64 << 20;

/// Steps of SQLite's machine between looks at the clock.
const STEPS: i32 = 10_000;

/// A database that is opened by its first statement.
#[derive(Clone)]
pub(super) struct SqliteFile {
    name: String,
    open: Arc<Mutex<Option<Connection>>>,
}

impl SqliteFile {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), open: Arc::default() }
    }

    /// The path of the database, if it is a file.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let name = self.name.strip_prefix("file:").unwrap_or(&self.name);
        let path = name.split('?').next().unwrap_or_default();
        (!path.is_empty() && path != ":memory:").then(|| PathBuf::from(path))
    }

    pub(super) fn close(&self) {
        // Closing may write the last pages: by the last thread that uses it.
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn execute(
        &self,
        ctx: &Ctx<'_>,
        statement: &str,
        arguments: &[SqlValue],
        limit: Option<Duration>,
    ) -> rquickjs::Result<Result<ResultSet, SqlError>> {
        let file = self.clone();
        let (statement, arguments) = (statement.to_owned(), arguments.to_vec());
        aside(ctx, move || {
            let mut open = file.open.lock().unwrap_or_else(PoisonError::into_inner);
            if open.is_none() {
                *open = Some(opened(&file.name, file.path().is_some())?);
            }
            let Some(connection) = &*open else {
                return Err(SqlError::Lost("sql: database is closed".to_owned()));
            };
            let end = limit.map(|limit| Instant::now() + limit);
            let is_late = move || end.is_some_and(|end| Instant::now() >= end);
            // Fails only for a connection of another thread.
            let _ = connection.progress_handler(STEPS, end.map(|_| is_late));
            run(connection, &statement, arguments).map_err(|why| match is_late() {
                true => SqlError::Refused(LATE.to_owned()),
                false => SqlError::Refused(why),
            })
        })
    }
}

/// Opens a database. One in memory attaches no files: its script may have no right to them.
fn opened(name: &str, is_file: bool) -> Result<Connection, SqlError> {
    let (path, parameters) = name.split_once('?').unwrap_or((name, ""));
    let path = if name.starts_with("file:") { name } else { path };
    let flags = OpenFlags::default();
    let connection = Connection::open_with_flags(path, flags);
    let connection = connection.map_err(|error| SqlError::Refused(text(&error)))?;
    if !is_file {
        let hook = connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
            // VACUUM attaches a database without a name.
            AuthAction::Attach { filename } if !filename.is_empty() => Authorization::Deny,
            _ => Authorization::Allow,
        }));
        hook.map_err(|error| SqlError::Refused(text(&error)))?;
    }
    for parameter in parameters.split('&') {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        let pragma = match name {
            "_busy_timeout" | "_timeout" => "busy_timeout",
            "_foreign_keys" | "_fk" => "foreign_keys",
            "_journal_mode" | "_journal" => "journal_mode",
            "_synchronous" | "_sync" => "synchronous",
            "_cache_size" => "cache_size",
            _ => continue,
        };
        let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !is_plain {
            return Err(SqlError::Refused(format!("Invalid {name}: {value}")));
        }
        let set = connection.execute_batch(&format!("PRAGMA {pragma} = {value};"));
        set.map_err(|error| SqlError::Refused(text(&error)))?;
    }
    Ok(connection)
}

/// Runs all statements of a text. Each takes as many of the arguments as it has parameters.
fn run(
    connection: &Connection,
    statements: &str,
    arguments: Vec<SqlValue>,
) -> Result<ResultSet, String> {
    let mut arguments: Vec<Value> = arguments.into_iter().map(argument).collect();
    let (mut result, mut room) = (ResultSet::default(), ROOM);
    let mut batch = Batch::new(connection, statements);
    while let Some(mut statement) = batch.next().map_err(|error| text(&error))? {
        let count = statement.parameter_count();
        if count > arguments.len() {
            let given = arguments.len();
            return Err(format!("not enough args to execute query: want {count} got {given}"));
        }
        let rest = arguments.split_off(count);
        let own = std::mem::replace(&mut arguments, rest);
        let before = connection.total_changes();
        read(&mut statement, own, &mut result, &mut room)?;
        result.affected = connection.total_changes().saturating_sub(before);
    }
    result.last_id = u64::try_from(connection.last_insert_rowid()).ok();
    Ok(result)
}

fn read(
    statement: &mut Statement<'_>,
    arguments: Vec<Value>,
    result: &mut ResultSet,
    room: &mut usize,
) -> Result<(), String> {
    let columns = statement.columns();
    let types: Vec<_> = columns
        .iter()
        .map(|column| column.decl_type().unwrap_or_default().to_ascii_lowercase())
        .collect();
    result.columns = columns.iter().map(|column| column.name().to_owned()).collect();
    drop(columns);
    result.rows.clear();
    let mut rows =
        statement.query(rusqlite::params_from_iter(arguments)).map_err(|error| text(&error))?;
    while let Some(row) = rows.next().map_err(|error| text(&error))? {
        let mut values = Vec::with_capacity(types.len());
        for (index, kind) in types.iter().enumerate() {
            let value = row.get_ref(index).map_err(|error| text(&error))?;
            let (value, bytes) = column(value, kind);
            *room = room
                .checked_sub(bytes + size_of::<SqlValue>())
                .ok_or_else(|| format!("the result has more than {} MiB", ROOM >> 20))?;
            values.push(value);
        }
        result.rows.push(values);
    }
    Ok(())
}

/// A value by its type and that of its column, as Go's driver converts it, and its bytes.
fn column(value: ValueRef<'_>, kind: &str) -> (SqlValue, usize) {
    let is_time = matches!(kind, "timestamp" | "datetime" | "date");
    match value {
        ValueRef::Null => (SqlValue::Null, 0),
        ValueRef::Integer(number) if kind == "boolean" => (SqlValue::Boolean(number > 0), 0),
        ValueRef::Integer(number) => (SqlValue::Integer(number), 0),
        ValueRef::Real(number) => (SqlValue::Float(number), 0),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            (if is_time { SqlValue::Time(text) } else { SqlValue::Text(text) }, bytes.len())
        }
        ValueRef::Blob(bytes) => (SqlValue::Bytes(bytes.to_vec()), bytes.len()),
    }
}

fn argument(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => Value::Integer(number),
        SqlValue::Unsigned(number) => Value::Real(number as f64),
        SqlValue::Float(number) => Value::Real(number),
        SqlValue::Boolean(truth) => Value::Integer(i64::from(truth)),
        SqlValue::Text(text) | SqlValue::Time(text) => Value::Text(text),
        SqlValue::Bytes(bytes) => Value::Blob(bytes),
    }
}

/// SQLite's own message.
fn text(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_statements_of_a_text_run() {
        let connection = opened(":memory:?_foreign_keys=1", false).unwrap();
        for statement in ["ATTACH '/nowhere/a' AS a", "VACUUM INTO '/nowhere/b'"] {
            let error = connection.execute_batch(statement).unwrap_err();
            assert!(error.to_string().contains("authoriz"), "{statement}: {error}");
        }
        connection.execute_batch("VACUUM").unwrap();
        let run = |text: &str, arguments: &[SqlValue]| run(&connection, text, arguments.to_vec());
        let made = run(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, on_ BOOLEAN, at DATETIME, b BLOB);
             INSERT INTO t VALUES (1, 1, '2024-01-02', x'00ff'), (2, ?, NULL, ?)",
            &[SqlValue::Boolean(false), SqlValue::Text("x".to_owned())],
        );
        let made = made.unwrap();
        assert_eq!((made.affected, made.last_id), (2, Some(2)));
        let all = run("SELECT * FROM t ORDER BY id", &[]).unwrap();
        assert_eq!(all.columns, ["id", "on_", "at", "b"]);
        assert_eq!(
            all.rows[0][1..3],
            [SqlValue::Boolean(true), SqlValue::Time("2024-01-02".into())]
        );
        assert_eq!(all.rows[0][3], SqlValue::Bytes(vec![0, 255]));
        assert_eq!(all.rows[1][2..], [SqlValue::Null, SqlValue::Text("x".into())]);
        assert_eq!(run("SELECT * FROM none", &[]).unwrap_err(), "no such table: none");
        let few = run("SELECT ?, ?", &[SqlValue::Null]).unwrap_err();
        assert_eq!(few, "not enough args to execute query: want 2 got 1");
    }
}
