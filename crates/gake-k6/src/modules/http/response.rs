//! The response object of scripts, whose properties are created on first use.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use gake_js::native::named;
use std::ffi::CStr;

use gake_go::cookies;
use gake_js::errors::{go_error, go_error_of};
use gake_js::html::kit;
use gake_js::value;
use gake_script::user::{LazyList, lazily};
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Opt, This};
use rquickjs::object::Property;
use rquickjs::{Array, Class, Ctx, Function, IntoJs, JsLifetime, Object, Value};

use super::of_method;
use super::request_headers::{self, canonical};
use super::response_facts::{ResponseFacts, Timings};
use super::script_request::BodyKind;
use super::select::select;
use super::target_url::BAD_URL;
use crate::user::vu::Vu;
use gake_go::json::{GoJsonError, number_out_of_range};

const MILLISECOND: f64 = 1e6;

/// k6's `expires` of a session cookie: Go's zero time, clamped to an `int64` of nanoseconds.
const NEVER_MS: f64 = -6_795_364_578_871.0;

/// k6's name of a response's method in stacks.
const METHOD: &str = "reflect.methodValueCall";

pub(crate) struct Response(pub(super) ResponseFacts);

impl<'js> Trace<'js> for Response {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for Response {
    type Changed<'to> = Self;
}

/// The number of values in [`LIST`], before its functions.
const VALUES: usize = 16;

/// The properties of a response in k6's order.
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

/// The methods of the prototype; `toJSON` keeps the order of the properties.
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

/// The response object of a script. Enumerating it creates all properties.
pub(super) fn response_object<'js>(
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
        "json" => named("Response", "json", json).into_js(ctx)?,
        "toJSON" => named("Response", "toJSON", whole).into_js(ctx)?,
        "html" => named("Response", "html", html).into_js(ctx)?,
        _ => {
            let follow = move |ctx: Ctx<'js>, this: This<Object<'js>>, args: Opt<Value<'js>>| {
                let request = named("http", "request", of_method(Vu::of(&ctx)?));
                let args = value::given(args.0);
                let function: Function<'js> = kit(&ctx)?.get(name)?;
                function.call::<_, Value<'js>>((request, this.0, args))
            };
            named("Response", name, follow).into_js(ctx)?
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
    // As in k6, it cannot be deleted.
    object.prop(name, Property::from(value).writable().enumerable())
}

/// Defines an own property.
fn define<'js>(object: &Object<'js>, name: &str, value: Value<'js>) -> rquickjs::Result<()> {
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
        "ocsp" => ocsp(ctx, facts.tls.is_some())?.into_js(ctx),
        _ if facts.has_no_request() => Ok(Value::new_null(ctx.clone())),
        _ => request(ctx, facts)?.into_js(ctx),
    }
}

impl ResponseFacts {
    /// Whether the arguments make no request.
    fn has_no_request(&self) -> bool {
        !self.is_made || self.error_code == BAD_URL
    }
}

/// `toJSON`: the response as a plain object.
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
        define(&headers, &name, value.into_js(ctx)?)?;
    }
    Ok(headers)
}

fn cookies<'js>(ctx: &Ctx<'js>, facts: &ResponseFacts) -> rquickjs::Result<Object<'js>> {
    let cookies = Object::new(ctx.clone())?;
    let set = facts.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    for (_, value) in set {
        let Some(cookie) = cookies::read(value) else { continue };
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

/// The stapled OCSP status, which gake does not read: as k6 shows a response without one.
fn ocsp<'js>(ctx: &Ctx<'js>, has_tls: bool) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for name in ["produced_at", "this_update", "next_update", "revoked_at"] {
        object.set(name, 0)?;
    }
    object.set("revocation_reason", "")?;
    object.set("status", if has_tls { "unknown" } else { "" })?;
    Ok(object)
}

/// The `request` of a response.
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
    for (name, value) in cookies::sent(header) {
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

/// `html`: the body as HTML, or the elements of a selector.
fn html<'js>(
    ctx: Ctx<'js>,
    this: This<Object<'js>>,
    selector: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let function: Function<'js> = kit(&ctx)?.get("html")?;
    function.call((this.0, value::given(selector.0)))
}

/// `json`: the body as JSON, or its value at a path.
fn json<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, Response>>,
    path: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let response = this.0.borrow();
    let bytes: &[u8] = match &response.0.body {
        Some(bytes) => bytes,
        // As in k6, without a request the body is an empty one here.
        None if !response.0.is_made => &[],
        None => {
            let message = "the body is null so we can't transform it to JSON - this likely was \
                           because of a request error getting the response";
            return Err(go_error_of(&ctx, METHOD, message));
        }
    };
    let path = value::given(path.0);
    // As in Go, bytes that are not UTF-8 become U+FFFD.
    let text = String::from_utf8_lossy(bytes);
    let parsed: Value<'js> = match ctx.json_parse(text.as_bytes()) {
        Ok(parsed) => parsed,
        Err(_) => {
            let thrown = ctx.catch();
            // As in k6, an invalid body has no value at any path.
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
        None => match number_out_of_range(&text) {
            Some(number) => {
                let message =
                    format!("json: cannot unmarshal number {number} into Go value of type float64");
                Err(go_error_of(&ctx, METHOD, &message))
            }
            None => Ok(parsed),
        },
        Some(path) => select(&ctx, parsed, &value::text(&ctx, &path)?),
    }
}
