//! The module `k6/x/tcp`: sockets with handlers of events.
//!
//! State and events are JavaScript (`tcp.js`), the rest is native.

mod connection;

use std::rc::Rc;
use std::time::Duration;

use gake_core::metric::{MetricKind, MetricUnit};
use gake_js::encoding::base64_bytes;
use gake_js::errors::go_error;
use gake_js::errors::go_value;
use gake_js::native::named;
use gake_js::value::{self, buffer, evaluate};
use gake_k6::metrics::MetricNumber;
use gake_k6::test::LogLevel;
use gake_k6::user::vu::Vu;
use gake_script::user::{Completion, HeapCharge};
use rquickjs::{Ctx, Function, Object, Persistent, Value};
use serde_json::json;

use self::connection::{ReadEnd, TcpConnection};
use crate::later::go_struct;

/// Creates the class from native functions.
const CLASS: &str = include_str!("tcp.js");

const COUNTERS: [&str; 6] =
    ["tcp_sockets", "tcp_reads", "tcp_writes", "tcp_errors", "tcp_timeouts", "tcp_partial_writes"];

const TIMES: [&str; 3] = ["tcp_socket_resolving", "tcp_socket_connecting", "tcp_socket_duration"];

const MODULE: (&str, &str) = ("module", "tcp");

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = &Vu::of(ctx)?;
    let native = Object::new(ctx.clone())?;
    let times = metrics(ctx, vu, &TIMES, MetricKind::Trend, MetricUnit::Time)?;
    metric_functions(ctx, vu, &native, &times)?;
    logging(vu, &native)?;
    let user = Rc::clone(vu);
    let check = move |ctx: Ctx<'js>| user.not_in_init(&ctx, "using a TCP socket");
    native.set("notInInit", named("tcp", "notInInit", check))?;
    let error = |ctx: Ctx<'js>, text: String| go_value(&ctx, &text);
    native.set("error", named("tcp", "error", error))?;
    native.set("tcpError", named("tcp", "tcpError", tcp_error))?;
    native.set("encoded", named("tcp", "encoded", encoded))?;
    let user = Rc::clone(vu);
    let later = move |ctx: Ctx<'js>, callback: Function<'js>| {
        complete(&ctx, &user, callback, async {}, |_, ()| Ok(None))
    };
    native.set("later", named("tcp", "later", later))?;
    let user = Rc::clone(vu);
    let (resolving, connecting) = (times[0], times[1]);
    let connect = move |ctx: Ctx<'js>,
                        host: String,
                        port: f64,
                        is_tls: bool,
                        tags: Value<'js>,
                        callback: Function<'js>| {
        let tags = own_tags(&ctx, tags)?;
        let vu = Rc::clone(&user);
        let opening = async move {
            let number = (0.0..65_536.0).contains(&port).then_some(port as u16);
            let Some(number) = number else {
                return Err(format!("dial tcp: address {port}: invalid port"));
            };
            let mut times = (None, None);
            let opened = TcpConnection::open(&vu, (&host, number, is_tls), &mut times).await;
            for (metric, took) in [(resolving, times.0), (connecting, times.1)] {
                if let Some(took) = took {
                    vu.record_tagged(metric, &tags, took as f64);
                }
            }
            opened
        };
        let vu = Rc::clone(&user);
        complete(&ctx, &user, callback, opening, move |ctx, opened| {
            let result = Object::new(ctx.clone())?;
            match opened {
                Ok(connection) => result.set("connection", shown(ctx, &vu, &connection)?)?,
                Err(why) => result.set("error", why)?,
            }
            Ok(Some(result.into_value()))
        })
    };
    native.set("connectLater", named("tcp", "connectLater", connect))?;
    let socket: Value<'js> = evaluate::<Function<'js>>(ctx, CLASS)?.call((native,))?;
    let module = Object::new(ctx.clone())?;
    module.set("Socket", socket)?;
    Ok(module)
}

/// Calls `callback` when the future is ready, with what `shown` makes of its output.
fn complete<'js, T: 'static>(
    ctx: &Ctx<'js>,
    vu: &Vu,
    callback: Function<'js>,
    future: impl Future<Output = T> + 'static,
    shown: impl for<'a> FnOnce(&Ctx<'a>, T) -> rquickjs::Result<Option<Value<'a>>> + 'static,
) -> rquickjs::Result<()> {
    vu.room_for_task(ctx)?;
    let callback = Persistent::save(ctx, callback);
    vu.tasks.add(async move {
        let output = future.await;
        Box::new(move |ctx: &Ctx<'_>| {
            let argument = shown(ctx, output)?;
            let callback = callback.restore(ctx)?;
            match argument {
                Some(argument) => callback.call((argument,)),
                None => callback.call(()),
            }
        }) as Completion
    });
    Ok(())
}

fn metrics(
    ctx: &Ctx<'_>,
    vu: &Vu,
    names: &[&str],
    kind: MetricKind,
    unit: MetricUnit,
) -> rquickjs::Result<Vec<MetricNumber>> {
    let define = |name: &&str| {
        let metric = vu.series_index.metric(name, kind, unit);
        metric.map_err(|error| go_error(ctx, &error.to_string()))
    };
    names.iter().map(define).collect()
}

fn metric_functions<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    native: &Object<'js>,
    times: &[MetricNumber],
) -> rquickjs::Result<()> {
    let counters = metrics(ctx, vu, &COUNTERS, MetricKind::Counter, MetricUnit::Number)?;
    let user = Rc::clone(vu);
    let count = move |ctx: Ctx<'js>, name: String, tags: Value<'js>| {
        let at = COUNTERS.iter().position(|known| *known == name);
        if let Some(metric) = at.and_then(|at| counters.get(at)) {
            user.record_tagged(*metric, &own_tags(&ctx, tags)?, 1.0);
        }
        Ok::<_, rquickjs::Error>(())
    };
    native.set("count", named("tcp", "count", count))?;
    let user = Rc::clone(vu);
    let duration = times[2];
    let record = move |ctx: Ctx<'js>, nanos: f64, tags: Value<'js>| {
        user.record_tagged(duration, &own_tags(&ctx, tags)?, nanos);
        Ok::<_, rquickjs::Error>(())
    };
    native.set("duration", named("tcp", "duration", record))?;
    let user = Rc::clone(vu);
    native.set("now", named("tcp", "now", move || user.now() as f64))
}

fn logging<'js>(vu: &Rc<Vu>, native: &Object<'js>) -> rquickjs::Result<()> {
    let user = Rc::clone(vu);
    let warn = move |text: String, event: String| {
        user.test.log(LogLevel::Warning, &text, &[("event", &event), MODULE]);
    };
    native.set("warn", named("tcp", "warn", warn))?;
    let user = Rc::clone(vu);
    let log = move |method: String, error: String| {
        let fields = [("error", &*error), ("method", &*method), MODULE];
        user.test.log(LogLevel::Error, "Handling TCP error", &fields);
    };
    native.set("logError", named("tcp", "logError", log))?;
    let user = Rc::clone(vu);
    let log = move |error: String| {
        user.test.log(LogLevel::Error, "TCP write failed", &[("error", &error), MODULE]);
    };
    native.set("logWriteError", named("tcp", "logWriteError", log))
}

fn own_tags<'js>(ctx: &Ctx<'js>, tags: Value<'js>) -> rquickjs::Result<Vec<(String, String)>> {
    value::tags(ctx, Some(tags))?
        .map_err(|why| go_error(ctx, &format!("invalid TCP socket metric tags: {why}")))
}

/// An error of the extension.
fn tcp_error<'js>(ctx: Ctx<'js>, method: String, message: String) -> rquickjs::Result<Value<'js>> {
    let text = format!("TCP error during {method}: {message}");
    let fields =
        [("name", json!("TCPError")), ("method", json!(method)), ("message", json!(message))];
    go_struct(&ctx, &text, &fields)
}

/// What `write` sends: `bytes`, or `error`.
fn encoded<'js>(
    ctx: Ctx<'js>,
    data: Value<'js>,
    encoding: String,
) -> rquickjs::Result<Object<'js>> {
    let result = Object::new(ctx.clone())?;
    let bytes = match value::bytes(&ctx, &data)? {
        None => Err("invalid type: String or ArrayBuffer expected".to_owned()),
        Some(bytes) if data.is_string() => decoded(bytes, &encoding),
        Some(bytes) => Ok(bytes),
    };
    match bytes {
        Ok(bytes) => result.set("bytes", buffer(&ctx, bytes)?)?,
        Err(why) => result.set("error", why)?,
    }
    Ok(result)
}

fn decoded(text: Vec<u8>, encoding: &str) -> Result<Vec<u8>, String> {
    let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    match &*encoding.to_lowercase() {
        "" | "utf8" | "utf-8" | "ascii" => Ok(text),
        "base64" => base64_bytes(&lossy(&text), "std"),
        "base64url" => {
            let text = lossy(&text);
            base64_bytes(&text, "rawurl").or_else(|_| base64_bytes(&text, "url"))
        }
        "hex" => hex(&text),
        _ => Err(format!("unsupported encoding {encoding:?}")),
    }
}

/// The bytes of hexadecimal digits, with Go's errors.
fn hex(text: &[u8]) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| {
        let digit = char::from(byte).to_digit(16);
        digit.map(|digit| digit as u8).ok_or_else(|| {
            format!("encoding/hex: invalid byte: U+{byte:04X} {:?}", char::from(byte))
        })
    };
    let pairs = text.chunks(2).map(|pair| match *pair {
        [high, low] => Ok(digit(high)? << 4 | digit(low)?),
        [only] => digit(only).and(Err("encoding/hex: odd length hex string".to_owned())),
        _ => Err("encoding/hex: odd length hex string".to_owned()),
    });
    pairs.collect()
}

/// A connection with its functions.
fn shown<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    connection: &Rc<TcpConnection>,
) -> rquickjs::Result<Object<'js>> {
    let shown = Object::new(ctx.clone())?;
    let ends = [("local", connection.local), ("remote", connection.peer)];
    for (end, address) in ends {
        if let Some(address) = address {
            shown.set(format!("{end}_ip"), address.ip().to_string())?;
            shown.set(format!("{end}_port"), address.port())?;
        }
    }
    let own = Rc::clone(connection);
    let timeout = move |milliseconds: f64| {
        let timeout = (milliseconds > 0.0).then(|| Duration::from_millis(milliseconds as u64));
        own.set_timeout(timeout);
    };
    shown.set("setTimeout", named("tcp", "setTimeout", timeout))?;
    let own = Rc::clone(connection);
    shown.set("close", named("tcp", "close", move || own.close()))?;
    let (own, user) = (Rc::clone(connection), Rc::clone(vu));
    let read = move |ctx: Ctx<'js>, callback: Function<'js>| {
        let own = Rc::clone(&own);
        complete(&ctx, &user, callback, async move { own.read().await }, |ctx, end| {
            let event = Object::new(ctx.clone())?;
            match end {
                ReadEnd::Data(bytes) => event.set("data", buffer(ctx, bytes)?)?,
                ReadEnd::Timeout => event.set("isTimeout", true)?,
                ReadEnd::Failed(why) => event.set("error", why)?,
                ReadEnd::End => {}
            }
            Ok(Some(event.into_value()))
        })
    };
    shown.set("readLater", named("tcp", "readLater", read))?;
    let (own, user) = (Rc::clone(connection), Rc::clone(vu));
    let write = move |ctx: Ctx<'js>, bytes: Value<'js>, callback: Function<'js>| {
        let bytes = value::bytes(&ctx, &bytes)?.unwrap_or_default();
        let charge = HeapCharge::new(&ctx, bytes.len())?;
        let own = Rc::clone(&own);
        let writing = async move {
            let end = own.write(&bytes).await;
            drop(charge);
            end
        };
        complete(&ctx, &user, callback, writing, |ctx, (written, why)| {
            let event = Object::new(ctx.clone())?;
            event.set("written", written as f64)?;
            if let Some(why) = why {
                event.set("error", why)?;
            }
            Ok(Some(event.into_value()))
        })
    };
    shown.set("writeLater", named("tcp", "writeLater", write))?;
    Ok(shown)
}
