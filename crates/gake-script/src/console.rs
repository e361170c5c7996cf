//! The `console` of scripts.

use std::sync::Arc;

use rquickjs::function::{Func, Rest};
use rquickjs::{Coerced, Ctx, FromJs, Object, Value};

use crate::user::frames;

/// Maximum length of a line, in bytes; longer ones are truncated.
const LINE_MAX: usize = 8192;

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleLevel {
    /// `console.log`, `info` and `debug`.
    Log,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

/// Receives the lines of scripts, from any thread.
pub type ConsoleSink = Arc<dyn Fn(ConsoleLevel, &str) + Send + Sync>;

pub(crate) fn install(ctx: &Ctx<'_>, sink: &ConsoleSink) -> rquickjs::Result<()> {
    let console = Object::new(ctx.clone())?;
    for (name, level) in [
        ("log", ConsoleLevel::Log),
        ("info", ConsoleLevel::Log),
        ("debug", ConsoleLevel::Log),
        ("warn", ConsoleLevel::Warn),
        ("error", ConsoleLevel::Error),
    ] {
        let sink = Arc::clone(sink);
        let write = move |values: Rest<Value<'_>>| {
            if let Some(first) = values.0.first() {
                sink(level, &line(first.ctx(), &values.0));
            } else {
                sink(level, "");
            }
        };
        console.set(name, Func::from(write))?;
    }
    ctx.globals().set("console", console)
}

/// Strings as they are, errors with their stack, objects as JSON.
fn line<'js>(ctx: &Ctx<'js>, values: &[Value<'js>]) -> String {
    let mut line = String::new();
    for value in values {
        if !line.is_empty() {
            line.push(' ');
        }
        line += &shown(ctx, value);
        if line.len() > LINE_MAX {
            line.truncate(line.floor_char_boundary(LINE_MAX));
            return line + " ...";
        }
    }
    line
}

fn shown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let text = || Coerced::<String>::from_js(ctx, value.clone()).map(|text| text.0);
    let shown = if let Some(error) = value.as_exception() {
        let stack = frames(error.as_object());
        text().map(|text| format!("{text}\n{stack}").trim_end().to_owned())
    } else if value.is_object() && !value.is_function() {
        let json = ctx
            .json_stringify(value.clone())
            .and_then(|json| json.map(|json| json.to_string()).transpose());
        json.and_then(|json| json.map_or_else(text, Ok))
    } else if let Some(symbol) = value.as_symbol() {
        symbol
            .description()
            .and_then(|text| Coerced::<String>::from_js(ctx, text))
            .map(|text| text.0)
    } else {
        text()
    };
    shown.unwrap_or_else(|_| {
        // A cycle, or a toJSON that throws: logging never fails.
        let _ = ctx.catch();
        format!("[{}]", value.type_name())
    })
}
