//! The module `k6/http`.

mod ask;
mod batch;
mod codes;
mod compress;
mod cookies;
mod credentials;
mod debug;
mod decode;
mod digest;
mod expected;
mod form;
mod go_date;
mod headers;
mod login;
mod ntlm;
mod response;
mod samples;
mod select;
mod send;

use std::borrow::Cow;
use std::rc::Rc;

use rquickjs::function::{Func, Opt, Rest};
use rquickjs::object::Property;
use rquickjs::{Class, Ctx, Object, Value};

use self::ask::Ask;
pub(super) use self::cookies::{CookieJar, values_for};
pub(super) use self::credentials::masked;
pub(super) use self::response::Response;
use self::response::ResponseFacts;
use super::value::{self, given};
use crate::errors::go_error;
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// What a script must not do while it is loaded.
const IN_INIT: &str = "Making http requests";

/// The words of a certificate's status.
const OCSP: [(&str, &str); 14] = [
    ("OCSP_STATUS_GOOD", "good"),
    ("OCSP_STATUS_REVOKED", "revoked"),
    ("OCSP_STATUS_SERVER_FAILED", "server_failed"),
    ("OCSP_STATUS_UNKNOWN", "unknown"),
    ("OCSP_REASON_UNSPECIFIED", "unspecified"),
    ("OCSP_REASON_KEY_COMPROMISE", "key_compromise"),
    ("OCSP_REASON_CA_COMPROMISE", "ca_compromise"),
    ("OCSP_REASON_AFFILIATION_CHANGED", "affiliation_changed"),
    ("OCSP_REASON_SUPERSEDED", "superseded"),
    ("OCSP_REASON_CESSATION_OF_OPERATION", "cessation_of_operation"),
    ("OCSP_REASON_CERTIFICATE_HOLD", "certificate_hold"),
    ("OCSP_REASON_REMOVE_FROM_CRL", "remove_from_crl"),
    ("OCSP_REASON_PRIVILEGE_WITHDRAWN", "privilege_withdrawn"),
    ("OCSP_REASON_AA_COMPROMISE", "aa_compromise"),
];

/// Makes the tag function `http.url`, whose template is the name of a request.
const URL: &str = "(strings, ...values) => {
    const name = strings.join('${}');
    const url = strings.reduce((url, part, at) => url + values[at - 1] + part);
    return { name, url, clean_url: url, toString: () => url };
}";

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    for (name, method) in [("get", "GET"), ("head", "HEAD")] {
        let vu = Rc::clone(vu);
        let send = move |ctx: Ctx<'js>,
                         url: Value<'js>,
                         params: Opt<Value<'js>>,
                         more: Rest<Value<'js>>| {
            if !more.0.is_empty() {
                let count = more.0.len() + 2;
                let warning = format!(
                    "http.{name} only accepts a url and a params argument (2 arguments), but \
                     {count} were given"
                );
                vu.test.log(LogLevel::Warning, &warning, &[]);
            }
            request(&ctx, &vu, method.into(), &url, None, params.0)
        };
        module.set(name, Func::from(send))?;
    }
    for (name, method) in [
        ("post", "POST"),
        ("put", "PUT"),
        ("patch", "PATCH"),
        ("del", "DELETE"),
        ("options", "OPTIONS"),
    ] {
        let vu = Rc::clone(vu);
        let send = move |ctx: Ctx<'js>,
                         url: Value<'js>,
                         body: Opt<Value<'js>>,
                         params: Opt<Value<'js>>| {
            request(&ctx, &vu, method.into(), &url, body.0, params.0)
        };
        module.set(name, Func::from(send))?;
    }
    let user = Rc::clone(vu);
    let send = move |ctx: Ctx<'js>,
                     method: Value<'js>,
                     url: Value<'js>,
                     body: Opt<Value<'js>>,
                     params: Opt<Value<'js>>| {
        let method = value::text(&ctx, &method)?;
        request(&ctx, &user, method.into(), &url, body.0, params.0)
    };
    module.set("request", Func::from(send))?;
    // What forms and links of a response are sent with.
    if let Some(prototype) = Class::<Response>::prototype(ctx)? {
        let request: Value<'js> = module.get("request")?;
        prototype.prop(response::REQUEST, Property::from(request))?;
    }
    let user = Rc::clone(vu);
    module.set(
        "asyncRequest",
        Func::from(
            move |ctx: Ctx<'js>,
                  method: Value<'js>,
                  url: Value<'js>,
                  body: Opt<Value<'js>>,
                  params: Opt<Value<'js>>| {
                let method = value::text(&ctx, &method)?;
                batch::request_later(&ctx, &user, method, &url, body.0, params.0)
            },
        ),
    )?;
    let user = Rc::clone(vu);
    module.set(
        "batch",
        Func::from(move |ctx: Ctx<'js>, requests: Value<'js>| batch::batch(&ctx, &user, &requests)),
    )?;
    helpers(ctx, vu, &module)?;
    Ok(module)
}

/// Everything that sends nothing.
fn helpers<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>, module: &Object<'js>) -> rquickjs::Result<()> {
    module.set("url", value::evaluate::<Value<'js>>(ctx, URL)?)?;
    module.set("file", Func::from(file))?;
    let jar = Class::<CookieJar>::create_constructor(ctx)?;
    module.set("CookieJar", jar)?;
    let user = Rc::clone(vu);
    let jar = move |ctx: Ctx<'js>| Class::instance(ctx, CookieJar { store: Rc::clone(&user.jar) });
    module.set("cookieJar", Func::from(jar))?;
    let expect = |ctx: Ctx<'js>, statuses: Rest<Value<'js>>| expected::make(&ctx, &statuses.0);
    module.set("expectedStatuses", Func::from(expect))?;
    let user = Rc::clone(vu);
    let set = move |ctx: Ctx<'js>, callback: Value<'js>| -> rquickjs::Result<()> {
        *user.expected.borrow_mut() = Rc::new(expected::of(&ctx, &callback)?);
        Ok(())
    };
    module.set("setResponseCallback", Func::from(set))?;
    for (name, value) in
        [("TLS_1_0", "tls1.0"), ("TLS_1_1", "tls1.1"), ("TLS_1_2", "tls1.2"), ("TLS_1_3", "tls1.3")]
    {
        module.set(name, value)?;
    }
    for (name, value) in OCSP {
        module.set(name, value)?;
    }
    Ok(())
}

/// A file of a form.
fn file<'js>(
    ctx: Ctx<'js>,
    data: Value<'js>,
    filename: Opt<Value<'js>>,
    content_type: Opt<Value<'js>>,
) -> rquickjs::Result<Object<'js>> {
    let text = |value: Option<Value<'js>>, default: &str| match given(value) {
        Some(value) => value::text(&ctx, &value),
        None => Ok(default.to_owned()),
    };
    let file = Object::new(ctx.clone())?;
    file.set("data", data)?;
    file.set("filename", text(filename.0, "file")?)?;
    file.set("content_type", text(content_type.0, "application/octet-stream")?)?;
    Ok(file)
}

/// Sends a request and waits for its response.
fn request<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    method: Cow<'static, str>,
    url: &Value<'js>,
    body: Option<Value<'js>>,
    params: Option<Value<'js>>,
) -> rquickjs::Result<Class<'js, Response>> {
    vu.not_in_init(ctx, IN_INIT)?;
    let name = method.clone();
    match Ask::read(ctx, vu, method, url, body, params) {
        Ok(ask) => {
            let facts = vu.wait(ctx, send::send(vu, &ask))?;
            give(ctx, facts, ask.throw)
        }
        Err(error) => refused(ctx, vu, name, url, error),
    }
}

/// What a script gets whose arguments make no request: as k6, a warning and no response, unless
/// errors are to be thrown.
fn refused<'js>(
    ctx: &Ctx<'js>,
    vu: &Vu,
    method: Cow<'static, str>,
    url: &Value<'js>,
    error: rquickjs::Error,
) -> rquickjs::Result<Class<'js, Response>> {
    if vu.test.settings().throw || !error.is_exception() {
        return Err(error);
    }
    let thrown = ctx.catch();
    let why = thrown.as_exception().and_then(rquickjs::Exception::message).unwrap_or_default();
    vu.test.log(LogLevel::Warning, "Request Failed", &[("error", why.as_str())]);
    let text = if url.is_string() { value::text(ctx, url)? } else { String::new() };
    let mut facts = ResponseFacts::refused(method, text.into(), why);
    if !url.is_string() {
        facts.error_code = send::BAD_URL;
    }
    Class::instance(ctx.clone(), Response(facts))
}

/// Gives a response to the script; one without a status throws when that is asked for.
fn give<'js>(
    ctx: &Ctx<'js>,
    facts: ResponseFacts,
    throw: bool,
) -> rquickjs::Result<Class<'js, Response>> {
    if throw && facts.status == 0 {
        let error = send::told(&facts.method, &facts.url, &facts.error);
        return Err(go_error(ctx, &error));
    }
    Class::instance(ctx.clone(), Response(facts))
}
