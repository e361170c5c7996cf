//! The modules `k6/x/sql` and `k6/x/sql/driver/...`: statements to MySQL, PostgreSQL and SQLite.
//!
//! Calls are synchronous for the script, and suspend only its coroutine.

mod driver;
mod mysql_dsn;
mod postgres_dsn;
mod server;
mod sqlite;
mod target;
mod time;
mod transport;
mod values;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gake_go::duration::GoDuration;
use gake_js::errors::{go_error, through_native};
use gake_js::value::{given, number_argument, text};
use gake_k6::check_local;
use gake_k6::user::vu::Vu;
use gake_script::user::HeapCharge;
use gake_sql::{ResultSet, SqlError, SqlKind, SqlValue};
use rquickjs::function::{Func, Opt, Rest};
use rquickjs::{Ctx, Object, Value};

use self::driver::{SqlDriver, read_pem, shared_tls};
pub(crate) use self::driver::{make_mysql, make_postgres, make_sqlite};
use self::server::{LATE, SqlServer};
use self::sqlite::SqliteFile;
use self::values::Times;
use crate::later::within;

/// Idle connections of a pool by default.
const IDLE_MAX: i64 = 2;

/// The frame of methods in stacks.
const NATIVE: &str = "reflect.methodValueCall";

/// Archives and agents have no files of the machine.
const NO_FILES: &str = "a script of an archive has databases in memory only (:memory:)";

/// The error of a database after `close`.
const CLOSED: &str = "sql: database is closed";

/// The options of `open`.
#[derive(Debug, Clone, Copy)]
struct Limits {
    idle_time: Option<Duration>,
    lifetime: Option<Duration>,
    /// Connections that are kept between statements.
    idle_max: i64,
}

struct Database {
    vu: Rc<Vu>,
    store: Store,
    is_closed: Cell<bool>,
}

enum Store {
    Server(Box<SqlServer>),
    File(SqliteFile),
    /// A data source name that is not valid, which the first statement reports.
    Invalid(String),
}

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = &Vu::of(ctx)?;
    let user = Rc::clone(vu);
    let open = move |ctx: Ctx<'js>,
                     driver: Value<'js>,
                     name: Opt<Value<'js>>,
                     options: Opt<Value<'js>>| {
        let opened = || {
            let name = name.0.map_or(Ok(String::new()), |name| text(&ctx, &name))?;
            let limits = limits(&ctx, options.0)?;
            let database = Database::open(&ctx, &user, &driver, &name, limits)?;
            Rc::new(database).shown(&ctx)
        };
        through_native(&ctx, NATIVE, opened())
    };
    let module = Object::new(ctx.clone())?;
    module.set("open", Func::from(open))?;
    Ok(module)
}

fn limits<'js>(ctx: &Ctx<'js>, options: Option<Value<'js>>) -> rquickjs::Result<Limits> {
    let mut limits = Limits { idle_time: None, lifetime: None, idle_max: IDLE_MAX };
    let Some(options) = given(options) else { return Ok(limits) };
    let Some(options) = options.as_object() else { return Ok(limits) };
    let get = |name: &str| options.get::<_, Value<'js>>(name).map(|value| given(Some(value)));
    let time = |name: &str| match get(name)? {
        Some(value) => duration(ctx, &text(ctx, &value)?).map(Some),
        None => Ok(None),
    };
    let positive = |time: Option<Duration>| time.filter(|time| !time.is_zero());
    limits.idle_time = positive(time("conn_max_idle_time")?);
    limits.lifetime = positive(time("conn_max_lifetime")?);
    if let Some(count) = get("max_idle_conns")? {
        limits.idle_max = (number_argument(ctx, Some(count))? as i64).max(0);
    }
    // A script has one statement at a time, so that a bound on connections has no effect.
    Ok(limits)
}

fn duration(ctx: &Ctx<'_>, text: &str) -> rquickjs::Result<Duration> {
    let parsed = GoDuration::parse_go(text).map_err(|error| go_error(ctx, &error.to_string()))?;
    Ok(parsed.to_std())
}

impl Database {
    fn open<'js>(
        ctx: &Ctx<'js>,
        vu: &Rc<Vu>,
        driver: &Value<'js>,
        name: &str,
        limits: Limits,
    ) -> rquickjs::Result<Self> {
        let store = match SqlDriver::of(ctx, driver)? {
            SqlDriver::MySql => {
                let target = mysql_dsn::parse(name, shared_tls(vu).borrow().as_ref());
                let target = target.map_err(|why| go_error(ctx, &why))?;
                Store::Server(Box::new(SqlServer::new(vu, target, limits)))
            }
            // As Go's driver, it parses the name when it connects.
            SqlDriver::Postgres => match postgres_dsn::parse(name, &|path| read_pem(vu, path)) {
                Ok(target) => Store::Server(Box::new(SqlServer::new(vu, target, limits))),
                Err(why) => Store::Invalid(why),
            },
            SqlDriver::Sqlite => {
                let file = SqliteFile::new(name);
                if let Some(path) = file.path() {
                    check_local(ctx, &path.display().to_string())?;
                    if vu.test.files.are_closed() {
                        return Err(go_error(ctx, NO_FILES));
                    }
                }
                Store::File(file)
            }
        };
        Ok(Self { vu: Rc::clone(vu), store, is_closed: Cell::new(false) })
    }

    fn kind(&self) -> Option<SqlKind> {
        match &self.store {
            Store::Server(server) => Some(server.kind()),
            Store::File(_) | Store::Invalid(_) => None,
        }
    }

    fn times(&self) -> Times {
        match &self.store {
            Store::Server(server) => server.times(),
            Store::File(_) | Store::Invalid(_) => Times::Utc,
        }
    }

    fn shown<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        for (name, has_rows, has_limit) in [
            ("query", true, false),
            ("queryWithTimeout", true, true),
            ("exec", false, false),
            ("execWithTimeout", false, true),
        ] {
            let database = Rc::clone(self);
            let call = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
                let result = database.call(&ctx, has_rows, has_limit, &arguments.0);
                through_native(&ctx, NATIVE, result)
            };
            shown.set(name, Func::from(call))?;
        }
        let database = Rc::clone(self);
        let close = move || {
            database.is_closed.set(true);
            match &database.store {
                Store::Server(server) => server.close(),
                Store::File(file) => file.close(),
                Store::Invalid(_) => {}
            }
        };
        shown.set("close", Func::from(close))?;
        Ok(shown)
    }

    /// A call of a method: a time-out if `has_limit`, a statement, its arguments.
    fn call<'js>(
        &self,
        ctx: &Ctx<'js>,
        has_rows: bool,
        has_limit: bool,
        arguments: &[Value<'js>],
    ) -> rquickjs::Result<Value<'js>> {
        let mut arguments = arguments.iter();
        let mut next_text = || arguments.next().map_or(Ok(String::new()), |one| text(ctx, one));
        let limit = match has_limit {
            true => Some(duration(ctx, &next_text()?)?),
            false => None,
        };
        let statement = next_text()?;
        let values = arguments.enumerate().map(|(at, one)| values::argument(ctx, at + 1, one));
        let values = values.collect::<rquickjs::Result<Vec<_>>>()?;
        if self.is_closed.get() {
            return Err(go_error(ctx, CLOSED));
        }
        let size = values.iter().map(size).sum::<usize>().saturating_add(statement.len());
        let mut charge = HeapCharge::new(ctx, size)?;
        match self.execute(ctx, &statement, &values, limit, &mut charge)? {
            Ok(result) if has_rows => values::rows(ctx, result, self.times()),
            Ok(result) => values::summary(ctx, &result, self.kind()),
            Err(SqlError::NoRoom) => Err(gake_script::user::throw_out_of_memory(ctx)),
            Err(error) => Err(go_error(ctx, &error.to_string())),
        }
    }

    fn execute(
        &self,
        ctx: &Ctx<'_>,
        statement: &str,
        arguments: &[SqlValue],
        limit: Option<Duration>,
        charge: &mut HeapCharge,
    ) -> rquickjs::Result<Result<ResultSet, SqlError>> {
        let server = match &self.store {
            Store::Server(server) => server,
            Store::File(file) => return file.execute(ctx, statement, arguments, limit),
            Store::Invalid(why) => return Ok(Err(SqlError::Refused(why.clone()))),
        };
        // Init code and `handleSummary` have no connections.
        if self.vu.grpc.borrow().is_none() {
            return server.execute_in_init(ctx, statement, arguments, limit);
        }
        let executing = server.execute(statement, arguments, charge);
        self.vu.wait(ctx, async {
            match limit {
                None => executing.await,
                Some(limit) => within(&self.vu, limit, executing)
                    .await
                    .unwrap_or_else(|| Err(SqlError::Lost(LATE.to_owned()))),
            }
        })
    }
}

/// Bytes of an argument.
fn size(value: &SqlValue) -> usize {
    size_of::<SqlValue>()
        + match value {
            SqlValue::Text(text) | SqlValue::Time(text) => text.len(),
            SqlValue::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
}
