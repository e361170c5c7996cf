//! Cookie jars.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use gake_js::native::named;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::rc::Rc;

use cookie_store::{CookieStore, RawCookie};
use gake_js::errors::go_error;
use gake_js::value::{self, given};
use gake_script::user::{HeapCharge, throw_out_of_memory};
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Opt, This};
use rquickjs::{Class, Coerced, Ctx, FromJs, JsLifetime, Object, Value};
use url::Url;

use super::credentials::masked;

pub(crate) struct CookieJar {
    pub(crate) store: Rc<RefCell<CookieStore>>,
    /// The cookies that the script has set.
    held: RefCell<HeapCharge>,
}

impl CookieJar {
    pub(super) fn new(ctx: &Ctx<'_>, store: Rc<RefCell<CookieStore>>) -> rquickjs::Result<Self> {
        Ok(Self { store, held: RefCell::new(HeapCharge::new(ctx, 0)?) })
    }
}

impl<'js> Trace<'js> for CookieJar {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for CookieJar {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for CookieJar {
    const NAME: &'static str = "CookieJar";
    type Mutable = Readable;

    fn prototype(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Object<'js>>> {
        let prototype = Object::new(ctx.clone())?;
        prototype.set("cookiesForURL", named("CookieJar", "cookiesForURL", cookies_for))?;
        prototype.set("set", named("CookieJar", "set", set))?;
        prototype.set("clear", named("CookieJar", "clear", clear))?;
        prototype.set("delete", named("CookieJar", "delete", delete))?;
        Ok(Some(prototype))
    }

    fn constructor(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        let make = |ctx: Ctx<'js>| Class::instance(ctx.clone(), Self::new(&ctx, Rc::default())?);
        Constructor::new_class::<Self, _, _>(ctx.clone(), make).map(Some)
    }
}

type Jar<'js> = This<Class<'js, CookieJar>>;

/// Parses the URL argument of a jar's function; `None` without a host: it has no cookies.
fn parsed(ctx: &Ctx<'_>, url: &str) -> rquickjs::Result<Option<Url>> {
    match Url::parse(url) {
        Ok(url) => Ok(Some(url)),
        Err(url::ParseError::RelativeUrlWithoutBase) if !url.starts_with(':') => Ok(None),
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            Err(go_error(ctx, &format!("parse {url:?}: missing protocol scheme")))
        }
        Err(error) => Err(go_error(ctx, &format!("parse {:?}: {error}", masked(url)))),
    }
}

/// The cookies for a request to `url` as names and values, the longest path first.
pub(crate) fn values_for<'a>(store: &'a CookieStore, url: &Url) -> Vec<(&'a str, &'a str)> {
    let mut cookies = store.matches(url);
    cookies.sort_by_key(|cookie| Reverse(cookie.path.as_ref().len()));
    cookies.into_iter().map(|cookie| cookie.name_value()).collect()
}

/// `cookiesForURL`: values by name.
fn cookies_for<'js>(ctx: Ctx<'js>, this: Jar<'js>, url: String) -> rquickjs::Result<Object<'js>> {
    let url = parsed(&ctx, &url)?;
    let jar = this.0.borrow();
    let store = jar.store.borrow();
    let cookies = Object::new(ctx)?;
    for (name, value) in url.map(|url| values_for(&store, &url)).unwrap_or_default() {
        let mut values: Vec<String> =
            cookies.get::<_, Option<Vec<String>>>(name)?.unwrap_or_default();
        values.push(value.to_owned());
        cookies.set(name, values)?;
    }
    Ok(cookies)
}

/// `set`: stores a cookie. As in k6 it returns `true` even if expired or of another host.
fn set<'js>(
    ctx: Ctx<'js>,
    this: Jar<'js>,
    url: Opt<String>,
    name: Opt<String>,
    value: Opt<Value<'js>>,
    options: Opt<Value<'js>>,
) -> rquickjs::Result<bool> {
    let url = parsed(&ctx, &url.0.unwrap_or_default())?;
    let mut cookie = cookie_of(&ctx, given(options.0))?;
    let value = given(value.0).map(|value| value::text(&ctx, &value)).transpose()?;
    cookie.set_name(name.0.unwrap_or_default());
    cookie.set_value(value.unwrap_or_default());
    if let Some(url) = url {
        let jar = this.0.borrow();
        if !jar.held.borrow_mut().grow(cookie.name().len() + cookie.value().len()) {
            return Err(throw_out_of_memory(&ctx));
        }
        gake_go::cookies::put(&mut jar.store.borrow_mut(), &cookie, &url);
    }
    Ok(true)
}

/// The attributes of a cookie from an object of options.
fn cookie_of<'js>(
    ctx: &Ctx<'js>,
    options: Option<Value<'js>>,
) -> rquickjs::Result<RawCookie<'static>> {
    let mut text = "name=value".to_owned();
    if let Some(options) = options.as_ref().and_then(Value::as_object) {
        for property in options.props::<String, Value<'js>>() {
            let (key, value) = property?;
            match key.to_ascii_lowercase().as_str() {
                "domain" | "path" => {
                    text += &format!("; {}={}", key.to_ascii_lowercase(), value::text(ctx, &value)?)
                }
                "expires" => {
                    let expires = value::text(ctx, &value)?;
                    if !expires.is_empty() {
                        let date = gake_go::date::rfc1123(&expires).map_err(|why| {
                            let why = format!("unable to parse \"expires\" date string {why}");
                            go_error(ctx, &why)
                        })?;
                        text += &format!("; Expires={date}");
                    }
                }
                "max_age" => match Coerced::<f64>::from_js(ctx, value)?.0 as i64 {
                    // As in Go's client, 0 means unset.
                    0 => {}
                    age => text += &format!("; Max-Age={age}"),
                },
                "secure" if value::truthy(ctx, value)? => text += "; Secure",
                _ => {}
            }
        }
    }
    // Invalid attributes are dropped.
    Ok(RawCookie::parse(text).unwrap_or_else(|_| RawCookie::new("", "")))
}

fn clear<'js>(ctx: Ctx<'js>, this: Jar<'js>, url: String) -> rquickjs::Result<()> {
    remove(&ctx, &this, &url, None)
}

fn delete<'js>(ctx: Ctx<'js>, this: Jar<'js>, url: String, name: String) -> rquickjs::Result<()> {
    remove(&ctx, &this, &url, Some(&name))
}

/// Removes the cookie of a name, or all that a request to `url` would send. As in Go, only cookies
/// that this URL would set by default: of its host and of the folder of its path.
fn remove<'js>(
    ctx: &Ctx<'js>,
    this: &Jar<'js>,
    url: &str,
    name: Option<&str>,
) -> rquickjs::Result<()> {
    if name == Some("") {
        return Err(go_error(ctx, "cookie: is null"));
    }
    let Some(url) = parsed(ctx, url)? else { return Ok(()) };
    let Some(host) = url.host_str() else { return Ok(()) };
    let jar = this.0.borrow();
    let mut store = jar.store.borrow_mut();
    let matching = values_for(&store, &url).into_iter().map(|(name, _)| name.to_owned());
    let names: Vec<String> = match name {
        Some(name) => vec![name.to_owned()],
        None => matching.collect(),
    };
    for name in names {
        store.remove(host, gake_go::cookies::default_path(&url), &name);
    }
    Ok(())
}
