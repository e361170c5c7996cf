//! What a script gets for a request. Its parts are made when they are read.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use std::ffi::CStr;

use gake_script::user::{LazyList, lazily};
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Func, Opt, This};
use rquickjs::object::Property;
use rquickjs::{Array, Class, Ctx, Function, IntoJs, JsLifetime, Object, Value};

use super::ask::BodyKind;
use super::facts::{ResponseFacts, Timings};
use super::go_cookies;
use super::go_url::BAD_URL;
use super::of_method;
use super::request_headers::{self, canonical};
use super::select::select;
use crate::errors::{go_error, go_error_of};
use crate::go_json::GoJsonError;
use crate::modules::html::kit;
use crate::modules::value;
use crate::user::vu::Vu;

/// Nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

/// What k6 shows of a cookie that does not expire: Go's first instant, as far as it can be counted.
const NEVER_MS: f64 = -6_795_364_578_871.0;

/// What k6 calls a method of a response in stacks.
const METHOD: &str = "reflect.methodValueCall";

/// A response of a script.
pub(crate) struct Response(pub(super) ResponseFacts);

impl<'js> Trace<'js> for Response {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds nothing of a script.
unsafe impl<'js> JsLifetime<'js> for Response {
    type Changed<'to> = Self;
}

/// The values of a response, which come before its functions.
const VALUES: usize = 16;

/// What a response has, in k6's order.
pub(in crate::modules) static LIST: LazyList = LazyList::new(
    &[
        c"remote_ip",
        c"remote_port",
        c"url",
        c"status",
        c"status_text",
        c"proto",
        c"headers",
        c"cookies",
        c"body",
        c"timings",
        c"tls_version",
        c"tls_cipher_suite",
        c"ocsp",
        c"error",
        c"error_code",
        c"request",
        c"clickLink",
        c"html",
        c"json",
        c"submitForm",
    ],
    make_property,
);

/// What the prototype of responses has: `JSON.stringify` is to find the parts in their order.
pub(in crate::modules) static METHODS: LazyList =
    LazyList::new(&[c"clickLink", c"html", c"json", c"submitForm", c"toJSON"], make_method);

impl<'js> JsClass<'js> for Response {
    const NAME: &'static str = "Response";
    type Mutable = Readable;

    fn prototype(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Object<'js>>> {
        let prototype = Object::new(ctx.clone())?;
        lazily(&prototype, &METHODS)?;
        Ok(Some(prototype))
    }

    fn constructor(_: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// The response that a script gets. Its properties are made when they are looked up, all of them
/// when they are listed.
pub(super) fn hand_out<'js>(
    ctx: &Ctx<'js>,
    facts: ResponseFacts,
) -> rquickjs::Result<Class<'js, Response>> {
    let response = Class::instance(ctx.clone(), Response(facts))?;
    lazily(&response, &LIST)?;
    Ok(response)
}

fn make_method<'js>(prototype: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let ctx = prototype.ctx();
    let name = name.to_str()?;
    let method = match name {
        "json" => Func::from(json).into_js(ctx)?,
        "toJSON" => Func::from(whole).into_js(ctx)?,
        "html" => Func::from(html).into_js(ctx)?,
        _ => {
            let follow = move |ctx: Ctx<'js>, this: This<Object<'js>>, args: Opt<Value<'js>>| {
                let request = Func::from(of_method(Vu::of(&ctx)?));
                let args = value::given(args.0);
                let function: Function<'js> = kit(&ctx)?.get(name)?;
                function.call::<_, Value<'js>>((request, this.0, args))
            };
            Func::from(follow).into_js(ctx)?
        }
    };
    prototype.prop(name, Property::from(method).writable().configurable())
}

fn make_property<'js>(object: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let ctx = object.ctx();
    let name = name.to_str()?;
    let value = match name {
        "clickLink" | "html" | "json" | "submitForm" => {
            let prototype = object.get_prototype().ok_or(rquickjs::Error::Unknown)?;
            prototype.get(name)?
        }
        _ => {
            let response = Class::<Response>::from_value(object.as_value())?;
            let response = response.borrow();
            read(ctx, &response.0, name)?
        }
    };
    // As in k6, no script takes it away.
    object.prop(name, Property::from(value).writable().enumerable())
}

/// Gives an object a property of its own.
fn keep<'js>(object: &Object<'js>, name: &str, value: Value<'js>) -> rquickjs::Result<()> {
    object.prop(name, Property::from(value).writable().enumerable().configurable())
}

fn read<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts, name: &str) -> rquickjs::Result<Value<'js>> {
    match name {
        "url" => (&*facts.url).into_js(ctx),
        "status" => facts.status.into_js(ctx),
        "status_text" => match facts.status {
            0 => "".into_js(ctx),
            status => format!("{status} {}", facts.reason).into_js(ctx),
        },
        "proto" => facts.proto.into_js(ctx),
        "error" => facts.error.as_str().into_js(ctx),
        "error_code" => facts.error_code.into_js(ctx),
        "tls_cipher_suite" => {
            facts.tls.map_or_else(String::new, |tls| tls.cipher_suite()).into_js(ctx)
        }
        "remote_ip" => {
            let ip = facts.peer.map(|peer| peer.ip().to_string());
            ip.unwrap_or_default().into_js(ctx)
        }
        "remote_port" => facts.peer.map_or(0, |peer| peer.port()).into_js(ctx),
        "tls_version" => facts.tls_version().unwrap_or_default().into_js(ctx),
        "headers" => headers(ctx, facts)?.into_js(ctx),
        "cookies" => cookies(ctx, facts)?.into_js(ctx),
        "body" if facts.has_no_request() => Array::new(ctx.clone())?.into_js(ctx),
        "body" => body(ctx, facts),
        "timings" => timings(ctx, &facts.timings)?.into_js(ctx),
        "ocsp" => ocsp(ctx)?.into_js(ctx),
        _ if facts.has_no_request() => Ok(Value::new_null(ctx.clone())),
        _ => request(ctx, facts)?.into_js(ctx),
    }
}

impl ResponseFacts {
    /// Whether what the script gave makes no request.
    fn has_no_request(&self) -> bool {
        !self.is_made || self.error_code == BAD_URL
    }
}

/// The whole response as a plain object.
fn whole<'js>(ctx: Ctx<'js>, this: This<Class<'js, Response>>) -> rquickjs::Result<Object<'js>> {
    let whole = Object::new(ctx)?;
    for name in &LIST.names()[..VALUES] {
        let name = name.to_str()?;
        whole.set(name, this.0.get::<_, Value<'js>>(name)?)?;
    }
    Ok(whole)
}

fn headers<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts) -> rquickjs::Result<Object<'js>> {
    let mut joined: Vec<(String, String)> = Vec::with_capacity(facts.headers.len());
    for (name, value) in facts.headers.iter() {
        let name = canonical(name);
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => *values += &format!(", {value}"),
            None => joined.push((name, value.to_owned())),
        }
    }
    let headers = Object::new(ctx.clone())?;
    for (name, value) in joined {
        keep(&headers, &name, value.into_js(ctx)?)?;
    }
    Ok(headers)
}

fn cookies<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts) -> rquickjs::Result<Object<'js>> {
    let cookies = Object::new(ctx.clone())?;
    let set = facts.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    for (_, value) in set {
        let Some(cookie) = go_cookies::read(value) else { continue };
        let entry = Object::new(ctx.clone())?;
        entry.set("name", cookie.name)?;
        entry.set("value", cookie.value)?;
        entry.set("domain", cookie.domain)?;
        entry.set("path", cookie.path)?;
        entry.set("http_only", cookie.http_only)?;
        entry.set("secure", cookie.secure)?;
        entry.set("max_age", cookie.max_age as f64)?;
        let expires = cookie.raw().expires_datetime();
        let expires = expires.map_or(NEVER_MS, |at| at.unix_timestamp() as f64 * 1e3);
        entry.set("expires", expires)?;
        let name = cookie.name;
        let mut all: Vec<Object<'js>> = cookies.get::<_, Option<_>>(name)?.unwrap_or_default();
        all.push(entry);
        cookies.set(name, all)?;
    }
    Ok(cookies)
}

fn body<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts) -> rquickjs::Result<Value<'js>> {
    match (&facts.body, facts.kind) {
        (None, _) | (_, BodyKind::Dropped) => Ok(Value::new_null(ctx.clone())),
        (Some(body), _) if !body.count_copy() => Err(go_error(ctx, &body.refusal())),
        (Some(bytes), BodyKind::Binary) => value::buffer(ctx, bytes.to_vec())?.into_js(ctx),
        (Some(bytes), BodyKind::Text) => String::from_utf8_lossy(bytes).into_js(ctx),
    }
}

fn timings<'js>(ctx: &Ctx<'js>, timings: &Timings) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, span) in [
        ("duration", timings.duration()),
        ("blocked", timings.blocked),
        ("looking_up", 0),
        ("connecting", timings.connecting),
        ("tls_handshaking", timings.tls),
        ("sending", timings.sending),
        ("waiting", timings.waiting),
        ("receiving", timings.receiving),
    ] {
        object.set(name, span as f64 / MILLISECOND)?;
    }
    Ok(object)
}

/// The stapled status of the server's certificate, which is not looked at.
fn ocsp<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for name in ["produced_at", "this_update", "next_update", "revoked_at"] {
        object.set(name, 0)?;
    }
    object.set("revocation_reason", "")?;
    object.set("status", "")?;
    Ok(object)
}

/// What was sent, as k6 tells it.
fn request<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts) -> rquickjs::Result<Object<'js>> {
    let request = Object::new(ctx.clone())?;
    request.set("method", &*facts.asked_method)?;
    request.set("url", &*facts.asked)?;
    let headers = Object::new(ctx.clone())?;
    for (name, value) in &*facts.sent_headers {
        headers.set(name.as_str(), vec![value.as_str()])?;
    }
    request.set("headers", headers)?;
    let sent = facts.sent_body.as_deref().unwrap_or_default();
    request.set("body", String::from_utf8_lossy(sent).into_owned())?;
    request.set("cookies", sent_cookies(ctx, facts)?)?;
    Ok(request)
}

fn sent_cookies<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts) -> rquickjs::Result<Object<'js>> {
    let cookies = Object::new(ctx.clone())?;
    let header = request_headers::get(&facts.sent_headers, "Cookie").unwrap_or_default();
    for (name, value) in go_cookies::sent(header) {
        let cookie = Object::new(ctx.clone())?;
        cookie.set("name", name)?;
        cookie.set("value", value)?;
        cookie.set("replace", false)?;
        let mut all: Vec<Object<'js>> = cookies.get::<_, Option<_>>(name)?.unwrap_or_default();
        all.push(cookie);
        cookies.set(name, all)?;
    }
    Ok(cookies)
}

/// The body as HTML, or the elements that a selector finds in it.
fn html<'js>(
    ctx: Ctx<'js>,
    this: This<Object<'js>>,
    selector: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let function: Function<'js> = kit(&ctx)?.get("html")?;
    function.call((this.0, value::given(selector.0)))
}

/// The body as JSON, or the part of it that a path selects.
fn json<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, Response>>,
    path: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let response = this.0.borrow();
    let Some(bytes) = &response.0.body else {
        let message = "the body is null so we can't transform it to JSON - this likely was because \
                       of a request error getting the response";
        return Err(go_error_of(&ctx, METHOD, message));
    };
    let path = value::given(path.0);
    let parsed: Value<'js> = match ctx.json_parse(&**bytes) {
        Ok(parsed) => parsed,
        Err(_) => {
            let thrown = ctx.catch();
            // As k6: a body that is not JSON has nothing at any path.
            if path.is_some() {
                return Ok(Value::new_undefined(ctx));
            }
            let why = match GoJsonError::of(bytes) {
                Some(error) => error.in_text(bytes),
                None => format!(": {}", value::text(&ctx, &thrown).unwrap_or_default()),
            };
            let message = format!("cannot parse json due to an error {why}");
            return Err(go_error_of(&ctx, METHOD, &message));
        }
    };
    match path {
        None => Ok(parsed),
        Some(path) => select(&ctx, parsed, &value::text(&ctx, &path)?),
    }
}
