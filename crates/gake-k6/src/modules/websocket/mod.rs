//! The modules `k6/ws` and `k6/websockets`.
//!
//! Events, handlers and timers are JavaScript (`ws.js`, `websockets.js`), the rest is native.

mod open;
mod session;
mod socket_params;

use gake_js::native::named;
use std::collections::BTreeMap;
use std::rc::Rc;

use gake_js::errors::{fail, go_error_of};
use gake_js::value;
use gake_script::user::{Completion, bound};
use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Object, Persistent, Value};
use serde_json::json;

use self::open::{ConnectResult, open};
use self::session::SocketSession;
use self::socket_params::SocketParams;
use super::http::request_headers;
use crate::metrics::BuiltinMetric;
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// Creates `k6/ws` from native functions.
const WS: &str = include_str!("ws.js");

/// Creates `k6/websockets` from native functions.
const WEBSOCKETS: &str = include_str!("websockets.js");

/// The action in the error of init code.
const IN_INIT: &str = "using websockets";

/// The module `k6/ws`.
pub(super) fn ws<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    value::evaluate::<Function<'js>>(ctx, WS)?.call((native(ctx, vu)?,))
}

/// The module `k6/websockets`.
pub(super) fn websockets<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    value::evaluate::<Function<'js>>(ctx, WEBSOCKETS)?.call((native(ctx, vu)?,))
}

fn native<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("fail", named("WebSocket", "fail", fail))?;
    let fail_in = |ctx: Ctx<'js>, method: String, message: String| -> rquickjs::Result<()> {
        let native =
            format!("go.k6.io/k6/v2/internal/js/modules/k6/websockets.(*webSocket).{method}-fm");
        Err(go_error_of(&ctx, &native, &message))
    };
    native.set("failIn", named("WebSocket", "failIn", fail_in))?;
    let bind = |ctx: Ctx<'js>, handler: Function<'js>| bound(&ctx, handler);
    native.set("bind", named("WebSocket", "bind", bind))?;
    let user = Rc::clone(vu);
    let warn = move |text: String| user.test.log(LogLevel::Warning, &text, &[]);
    native.set("warn", named("WebSocket", "warn", warn))?;
    let user = Rc::clone(vu);
    native.set("now", named("WebSocket", "now", move || user.now() as f64 / 1e6))?;
    let user = Rc::clone(vu);
    native.set(
        "unixMillis",
        named("WebSocket", "unixMillis", move || (user.test.unix_ns() / 1_000_000) as f64),
    )?;
    let encoded = |ctx: Ctx<'js>, text: String| value::buffer(&ctx, text.into_bytes());
    native.set("encoded", named("WebSocket", "encoded", encoded))?;
    let decoded = |ctx: Ctx<'js>, bytes: Value<'js>| -> rquickjs::Result<String> {
        let bytes = value::bytes(&ctx, &bytes)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    native.set("decoded", named("WebSocket", "decoded", decoded))?;
    let user = Rc::clone(vu);
    native.set("throws", named("WebSocket", "throws", move || user.test.settings().throw))?;
    let user = Rc::clone(vu);
    let check = move |ctx: Ctx<'js>| user.not_in_init(&ctx, IN_INIT);
    native.set("notInInit", named("WebSocket", "notInInit", check))?;
    let user = Rc::clone(vu);
    let now = move |ctx: Ctx<'js>, url: String, params: Opt<Value<'js>>| {
        let params = SocketParams::read(&ctx, &user, url, params.0, &[])?;
        let opened = user.wait(&ctx, open(&user, &params))?;
        if opened.session.is_none() {
            // As in k6, a refused session has a duration.
            let took = user.now().saturating_sub(opened.start);
            user.record(BuiltinMetric::WsSessionDuration, &opened.tags, took as f64);
        }
        shown(&ctx, &user, &params, opened)
    };
    native.set("open", named("WebSocket", "open", now))?;
    let user = Rc::clone(vu);
    let later = move |ctx: Ctx<'js>,
                      url: String,
                      protocols: Vec<String>,
                      params: Value<'js>,
                      callback: Function<'js>| {
        user.room_for_task(&ctx)?;
        let params = SocketParams::read(&ctx, &user, url, Some(params), &protocols)?.named();
        let callback = Persistent::save(&ctx, callback);
        let vu = Rc::clone(&user);
        user.tasks.add(async move {
            let opened = open(&vu, &params).await;
            Box::new(move |ctx: &Ctx<'_>| {
                let opened = shown(ctx, &vu, &params, opened)?;
                callback.restore(ctx)?.call::<_, ()>((opened,))
            }) as Completion
        });
        Ok::<_, rquickjs::Error>(())
    };
    native.set("openLater", named("WebSocket", "openLater", later))?;
    Ok(native)
}

/// The result of an attempt to connect: `session` or `error`, and `response` if there was one.
fn shown<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    params: &SocketParams,
    opened: ConnectResult,
) -> rquickjs::Result<Object<'js>> {
    let result = Object::new(ctx.clone())?;
    let ConnectResult { response, session, error, tags, start } = opened;
    if let Some(response) = response {
        let shown = Object::new(ctx.clone())?;
        // As in k6, a refusal has no URL.
        shown.set("url", if session.is_some() { params.url.as_str() } else { "" })?;
        shown.set("status", response.status)?;
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &response.headers {
            let known = headers.entry(request_headers::canonical(name));
            known.and_modify(|all| *all = format!("{all}, {value}")).or_insert(value.clone());
        }
        // JSON keeps a property `__proto__`.
        shown.set("headers", ctx.json_parse(json!(headers).to_string())?)?;
        shown.set("body", String::from_utf8_lossy(&response.body).as_ref())?;
        shown.set("error", "")?;
        result.set("response", shown)?;
    }
    if let Some(error) = error {
        result.set("error", error)?;
    }
    if let Some(session) = session {
        let session = SocketSession::new(ctx, Rc::clone(vu), session, tags, start)?;
        result.set("session", session.shown(ctx)?)?;
    }
    Ok(result)
}
