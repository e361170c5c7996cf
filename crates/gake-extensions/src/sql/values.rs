//! Values of scripts as arguments, and results as values of scripts.

use gake_js::errors::go_error;
use gake_js::value::{bytes, date, text};
use gake_script::user::poll;
use gake_sql::{ResultSet, SqlKind, SqlValue};
use rquickjs::function::Func;
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, IntoJs, Object, Value};

use super::time::GoTime;

/// The bytes of an array of JavaScript, if they are bytes: a column of bytes is one.
const BYTES_MAX: usize = 1 << 20;

/// An argument of a statement, by its number from 1.
pub(super) fn argument<'js>(
    ctx: &Ctx<'js>,
    number: usize,
    value: &Value<'js>,
) -> rquickjs::Result<SqlValue> {
    if value.is_null() || value.is_undefined() {
        return Ok(SqlValue::Null);
    }
    if let Some(truth) = value.as_bool() {
        return Ok(SqlValue::Boolean(truth));
    }
    if let Some(number) = value.as_number() {
        let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
        return Ok(match is_whole {
            true => SqlValue::Integer(number as i64),
            false => SqlValue::Float(number),
        });
    }
    if value.is_string() {
        return text(ctx, value).map(SqlValue::Text);
    }
    let Some(object) = value.as_object() else { return Err(unsupported(ctx, number, "a value")) };
    if let Some(date) = date(ctx, object) {
        return Ok(SqlValue::Time(date.replace('T', " ").trim_end_matches('Z').to_owned()));
    }
    if let Some(bytes) = bytes(ctx, value)? {
        return Ok(SqlValue::Bytes(bytes));
    }
    match object.as_array() {
        Some(array) if array.len() <= BYTES_MAX => {
            let bytes = array.iter::<u8>().collect::<rquickjs::Result<Vec<_>>>();
            bytes.map(SqlValue::Bytes).map_err(|error| {
                if error.is_exception() {
                    let _ = ctx.catch();
                }
                unsupported(ctx, number, "[]interface {}, a slice of interface")
            })
        }
        _ => Err(unsupported(ctx, number, "map[string]interface {}, a map")),
    }
}

fn unsupported(ctx: &Ctx<'_>, number: usize, kind: &str) -> rquickjs::Error {
    let message = format!("sql: converting argument ${number} type: unsupported type {kind}");
    go_error(ctx, &message)
}

/// What becomes of the times of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    /// Bytes.
    Bytes,
    /// Times, by default in UTC.
    Utc,
    /// Times, by default in a zone without a name.
    Local,
}

/// The rows of a result as objects.
pub(super) fn rows<'js>(
    ctx: &Ctx<'js>,
    result: ResultSet,
    times: Times,
) -> rquickjs::Result<Value<'js>> {
    let rows = Array::new(ctx.clone())?;
    for (index, row) in result.rows.into_iter().enumerate() {
        poll(ctx)?;
        let shown = Object::new(ctx.clone())?;
        for (name, value) in result.columns.iter().zip(row) {
            let value = shown_value(ctx, value, times)?;
            // Defined, for a column `__proto__`.
            let property = Property::from(value).writable().enumerable().configurable();
            shown.prop(name.as_str(), property)?;
        }
        rows.set(index, shown)?;
    }
    Ok(rows.into_value())
}

fn shown_value<'js>(ctx: &Ctx<'js>, value: SqlValue, times: Times) -> rquickjs::Result<Value<'js>> {
    match value {
        SqlValue::Null => Ok(Value::new_null(ctx.clone())),
        SqlValue::Integer(number) => (number as f64).into_js(ctx),
        SqlValue::Unsigned(number) => (number as f64).into_js(ctx),
        SqlValue::Float(number) => number.into_js(ctx),
        SqlValue::Boolean(truth) => truth.into_js(ctx),
        SqlValue::Text(text) => text.into_js(ctx),
        SqlValue::Bytes(bytes) => array(ctx, &bytes),
        SqlValue::Time(text) if times == Times::Bytes => array(ctx, text.as_bytes()),
        SqlValue::Time(text) => match GoTime::parse(&text) {
            Some(time) if times == Times::Utc => time.or_utc().shown(ctx),
            Some(time) => time.shown(ctx),
            None => text.into_js(ctx),
        },
    }
}

/// Bytes as k6 shows them: an array of numbers.
fn array<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> rquickjs::Result<Value<'js>> {
    let array = Array::new(ctx.clone())?;
    for (index, byte) in bytes.iter().enumerate() {
        if index % 1024 == 0 {
            poll(ctx)?;
        }
        array.set(index, *byte)?;
    }
    Ok(array.into_value())
}

/// The result of a statement without rows.
pub(super) fn summary<'js>(
    ctx: &Ctx<'js>,
    result: &ResultSet,
    kind: Option<SqlKind>,
) -> rquickjs::Result<Value<'js>> {
    let shown = Object::new(ctx.clone())?;
    let affected = result.affected as f64;
    shown.set("rowsAffected", Func::from(move || affected))?;
    let last = result.last_id.unwrap_or(0) as f64;
    let last = move |ctx: Ctx<'js>| match kind {
        Some(SqlKind::Postgres) => {
            Err(go_error(&ctx, "LastInsertId is not supported by this driver"))
        }
        _ => Ok(last),
    };
    shown.set("lastInsertId", Func::from(last))?;
    Ok(shown.into_value())
}
