//! The module `k6/http`.

mod batch;
mod cookies;
mod credentials;
mod debug;
mod digest;
mod error_codes;
mod expected;
mod form;
mod go_value;
mod headers;
mod hop;
mod login;
mod ntlm;
mod redirects;
pub(crate) mod request_headers;
mod response;
mod response_facts;
mod samples;
mod script_request;
mod select;
mod send;
mod target_url;

use gake_js::native::named;
use std::borrow::Cow;
use std::ffi::CStr;
use std::rc::Rc;

use gake_js::errors::{go_error, through_native};
use gake_js::value::{self, given};
use gake_script::user::{LazyList, lazily};
use rquickjs::function::{Opt, Rest};
use rquickjs::{Class, Ctx, Object, Promise, Value};

pub(crate) use self::cookies::{CookieJar, values_for};
pub(super) use self::credentials::masked;
pub(super) use self::error_codes::proxy_error;
pub(crate) use self::form::OpenedBinaries;
pub(crate) use self::go_value::type_name;
use self::response::response_object;
pub(super) use self::response::{LIST as RESPONSE, METHODS as RESPONSE_METHODS, Response};
use self::response_facts::ResponseFacts;
use self::script_request::ScriptRequest;
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// The action in the error of init code.
const IN_INIT: &str = "Making http requests";

/// Constants of OCSP.
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

/// The tag function `http.url`, whose template becomes the name of a request.
const URL: &str = "(strings, ...values) => {
    const name = strings.join('${}');
    const url = strings.reduce((url, part, at) => url + values[at - 1] + part);
    const made = { name, url, clean_url: url, clean: () => url, getURL: () => url };
    return Object.defineProperty(made, 'toString', { value: () => url });
}";

pub(super) static LIST: LazyList = LazyList::new(
    &[
        c"get",
        c"head",
        c"post",
        c"put",
        c"patch",
        c"del",
        c"options",
        c"request",
        c"asyncRequest",
        c"batch",
        c"url",
        c"file",
        c"CookieJar",
        c"cookieJar",
        c"expectedStatuses",
        c"setResponseCallback",
        c"TLS_1_0",
        c"TLS_1_1",
        c"TLS_1_2",
        c"TLS_1_3",
        c"OCSP_STATUS_GOOD",
        c"OCSP_STATUS_REVOKED",
        c"OCSP_STATUS_SERVER_FAILED",
        c"OCSP_STATUS_UNKNOWN",
        c"OCSP_REASON_UNSPECIFIED",
        c"OCSP_REASON_KEY_COMPROMISE",
        c"OCSP_REASON_CA_COMPROMISE",
        c"OCSP_REASON_AFFILIATION_CHANGED",
        c"OCSP_REASON_SUPERSEDED",
        c"OCSP_REASON_CESSATION_OF_OPERATION",
        c"OCSP_REASON_CERTIFICATE_HOLD",
        c"OCSP_REASON_REMOVE_FROM_CRL",
        c"OCSP_REASON_PRIVILEGE_WITHDRAWN",
        c"OCSP_REASON_AA_COMPROMISE",
    ],
    make_property,
);

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    lazily(&module, &LIST)?;
    Ok(module)
}

fn make_property(module: &Object<'_>, name: &'static CStr) -> rquickjs::Result<()> {
    let ctx = module.ctx();
    let vu = Vu::of(ctx)?;
    let name = name.to_str()?;
    match name {
        "get" => module.set(name, named("http", name, bodiless(vu, name, "GET"))),
        "head" => module.set(name, named("http", name, bodiless(vu, name, "HEAD"))),
        "post" => module.set(name, named("http", name, with_body(vu, "POST"))),
        "put" => module.set(name, named("http", name, with_body(vu, "PUT"))),
        "patch" => module.set(name, named("http", name, with_body(vu, "PATCH"))),
        "del" => module.set(name, named("http", name, with_body(vu, "DELETE"))),
        "options" => module.set(name, named("http", name, with_body(vu, "OPTIONS"))),
        "request" => module.set(name, named("http", name, of_method(vu))),
        "asyncRequest" => module.set(name, named("http", name, later(vu))),
        "batch" => module.set(name, named("http", name, of_batch(vu))),
        _ => helper(module, &vu, name),
    }
}

/// `http.get` and `http.head`.
fn bodiless<'js>(
    vu: Rc<Vu>,
    name: &'static str,
    method: &'static str,
) -> impl Fn(
    Ctx<'js>,
    Opt<Value<'js>>,
    Opt<Value<'js>>,
    Rest<Value<'js>>,
) -> rquickjs::Result<Class<'js, Response>>
+ 'js {
    move |ctx, url, params, more| {
        if !more.0.is_empty() {
            let count = more.0.len() + 2;
            let warning = format!(
                "http.{name} only accepts a url and a params argument (2 arguments), but {count} \
                 were given"
            );
            vu.test.log(LogLevel::Warning, &warning, &[]);
        }
        let url = or_undefined(&ctx, url);
        let made = request(&ctx, &vu, method.into(), &url, None, params.0);
        by_method(&ctx, method, made)
    }
}

/// `http.post` and other methods with a body.
fn with_body<'js>(
    vu: Rc<Vu>,
    method: &'static str,
) -> impl Fn(
    Ctx<'js>,
    Opt<Value<'js>>,
    Opt<Value<'js>>,
    Opt<Value<'js>>,
) -> rquickjs::Result<Class<'js, Response>>
+ 'js {
    move |ctx, url, body, params| {
        let url = or_undefined(&ctx, url);
        let made = request(&ctx, &vu, method.into(), &url, body.0, params.0);
        by_method(&ctx, method, made)
    }
}

/// An argument, which may be absent: as in k6, functions are called with fewer, too.
fn or_undefined<'js>(ctx: &Ctx<'js>, argument: Opt<Value<'js>>) -> Value<'js> {
    argument.0.unwrap_or_else(|| Value::new_undefined(ctx.clone()))
}

/// The result of a method's function, which is native in k6's stacks.
fn by_method<T>(ctx: &Ctx<'_>, method: &str, result: rquickjs::Result<T>) -> rquickjs::Result<T> {
    if result.is_ok() {
        return result;
    }
    let function = match method {
        "GET" => "func2",
        "HEAD" => "func3",
        "POST" => "(*Client).getMethodClosure.func4",
        "PUT" => "(*Client).getMethodClosure.func5",
        "PATCH" => "(*Client).getMethodClosure.func6",
        "DELETE" => "(*Client).getMethodClosure.func7",
        _ => "(*Client).getMethodClosure.func8",
    };
    let native =
        format!("go.k6.io/k6/v2/js/modules/k6/http.(*RootModule).NewModuleInstance.{function}");
    through_native(ctx, &native, result)
}

/// An argument that may be left out.
type Argument<'js> = Opt<Value<'js>>;

/// `http.request`.
pub(super) fn of_method<'js>(
    vu: Rc<Vu>,
) -> impl Fn(
    Ctx<'js>,
    Argument<'js>,
    Argument<'js>,
    Argument<'js>,
    Argument<'js>,
) -> rquickjs::Result<Class<'js, Response>>
+ 'js {
    move |ctx, method, url, body, params| {
        let method = value::text(&ctx, &or_undefined(&ctx, method))?;
        // As in Go, no method is GET.
        let method = if method.is_empty() { "GET".to_owned() } else { method };
        let url = or_undefined(&ctx, url);
        let made = request(&ctx, &vu, method.into(), &url, body.0, params.0);
        through_native(&ctx, "go.k6.io/k6/v2/js/modules/k6/http.(*Client).Request-fm", made)
    }
}

/// `http.asyncRequest`.
fn later<'js>(
    vu: Rc<Vu>,
) -> impl Fn(
    Ctx<'js>,
    Value<'js>,
    Value<'js>,
    Opt<Value<'js>>,
    Opt<Value<'js>>,
) -> rquickjs::Result<Promise<'js>>
+ 'js {
    move |ctx, method, url, body, params| {
        let method = value::text(&ctx, &method)?;
        batch::request_later(&ctx, &vu, method, &url, body.0, params.0)
    }
}

/// `http.batch`.
fn of_batch<'js>(
    vu: Rc<Vu>,
) -> impl Fn(Ctx<'js>, Opt<Value<'js>>) -> rquickjs::Result<Value<'js>> + 'js {
    move |ctx, requests| {
        let responses = match &requests.0 {
            Some(requests) => batch::batch(&ctx, &vu, requests),
            None => Err(go_error(&ctx, "no argument was provided to http.batch()")),
        };
        through_native(&ctx, "go.k6.io/k6/v2/js/modules/k6/http.(*Client).Batch-fm", responses)
    }
}

/// Functions and constants that send nothing.
fn helper<'js>(module: &Object<'js>, vu: &Rc<Vu>, name: &'static str) -> rquickjs::Result<()> {
    let ctx = module.ctx();
    let user = Rc::clone(vu);
    match name {
        "url" => module.set(name, value::evaluate::<Value<'js>>(ctx, URL)?),
        "file" => module.set(name, named("http", name, file)),
        "CookieJar" => module.set(name, Class::<CookieJar>::create_constructor(ctx)?),
        "cookieJar" => {
            let jar = move |ctx: Ctx<'js>| {
                let native =
                    "go.k6.io/k6/v2/js/modules/k6/http.(*ModuleInstance).getVUCookieJar-fm";
                through_native(&ctx, native, user.not_in_init(&ctx, "Making cookie jars"))?;
                let store = Rc::clone(&user.jar.borrow());
                Class::instance(ctx.clone(), CookieJar::new(&ctx, store)?)
            };
            module.set(name, named("http", name, jar))
        }
        "expectedStatuses" => {
            let expect =
                |ctx: Ctx<'js>, statuses: Rest<Value<'js>>| expected::make(&ctx, &statuses.0);
            module.set(name, named("http", name, expect))
        }
        "setResponseCallback" => {
            let set = move |ctx: Ctx<'js>, callback: Value<'js>| -> rquickjs::Result<()> {
                let refused = "unsupported argument, expected http.expectedStatuses";
                *user.expected.borrow_mut() = Rc::new(expected::of(&ctx, &callback, refused)?);
                Ok(())
            };
            module.set(name, named("http", name, set))
        }
        "TLS_1_0" => module.set(name, "tls1.0"),
        "TLS_1_1" => module.set(name, "tls1.1"),
        "TLS_1_2" => module.set(name, "tls1.2"),
        "TLS_1_3" => module.set(name, "tls1.3"),
        _ => match OCSP.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => module.set(name, *value),
            None => Ok(()),
        },
    }
}

/// `http.file`: a file of a form; its default name is the time.
fn file<'js>(
    ctx: Ctx<'js>,
    data: Opt<Value<'js>>,
    filename: Opt<Value<'js>>,
    content_type: Opt<Value<'js>>,
) -> rquickjs::Result<Object<'js>> {
    let data = or_undefined(&ctx, data);
    if !data.is_string() && data.as_object().is_none_or(|object| object.as_array_buffer().is_none())
    {
        // A view has the Go type of its elements: `[]uint8` for `Uint8Array`.
        let view = data.as_object().filter(|_| !data.is_array());
        let class = view.and_then(|view| view.get::<_, Object<'js>>("constructor").ok());
        let class = class.and_then(|class| class.get::<_, String>("name").ok());
        let elements = class.as_deref().and_then(|name| name.strip_suffix("Array"));
        let name = match elements {
            Some(kind) => format!("[]{}", kind.trim_end_matches("Clamped").to_lowercase()),
            None => type_name(&ctx, &data).to_owned(),
        };
        let message = format!("invalid type {name}, expected string or ArrayBuffer");
        return Err(go_error(&ctx, &message));
    }
    let text = |value: Option<Value<'js>>, default: &str| match given(value) {
        Some(value) => value::text(&ctx, &value),
        None => Ok(default.to_owned()),
    };
    let now = Vu::of(&ctx)?.test.unix_ns().to_string();
    let file = Object::new(ctx.clone())?;
    file.set("data", data)?;
    file.set("filename", text(filename.0, &now)?)?;
    file.set("content_type", text(content_type.0, "application/octet-stream")?)?;
    Ok(file)
}

/// Sends a request and awaits its response.
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
    match ScriptRequest::read(ctx, vu, method, url, body, params) {
        Ok(request) => {
            let facts = vu.wait(ctx, send::send(vu, &request))?;
            give(ctx, facts, request.throw)
        }
        Err(error) => refused(ctx, vu, name, error),
    }
}

/// Invalid arguments: as in k6 a warning and a failed response, unless errors are thrown.
fn refused<'js>(
    ctx: &Ctx<'js>,
    vu: &Vu,
    method: Cow<'static, str>,
    error: rquickjs::Error,
) -> rquickjs::Result<Class<'js, Response>> {
    if vu.test.settings().throw || !error.is_exception() {
        return Err(error);
    }
    let thrown = ctx.catch();
    let why = thrown.as_exception().and_then(rquickjs::Exception::message).unwrap_or_default();
    vu.test.log(LogLevel::Warning, "Request Failed", &[("error", why.as_str())]);
    response_object(ctx, unmade(method, &why))
}

/// The response to arguments that make no request.
fn unmade(method: Cow<'static, str>, why: &str) -> ResponseFacts {
    let error_code = if why.starts_with("invalid URL") { target_url::BAD_URL } else { 0 };
    let is_made = false;
    let facts = ResponseFacts::refused(method, Rc::default(), why.to_owned());
    ResponseFacts { error_code, is_made, ..facts }
}

/// A response for the script; without a status it throws if `throw` is set.
fn give<'js>(
    ctx: &Ctx<'js>,
    facts: ResponseFacts,
    throw: bool,
) -> rquickjs::Result<Class<'js, Response>> {
    if throw && facts.status == 0 {
        return Err(go_error(ctx, &facts.cause));
    }
    response_object(ctx, facts)
}
