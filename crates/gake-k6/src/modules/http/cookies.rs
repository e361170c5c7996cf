//! Cookie jars.

use std::cell::RefCell;
use std::rc::Rc;

use cookie_store::{CookieStore, RawCookie};
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Func, Opt, This};
use rquickjs::{Class, Ctx, JsLifetime, Object, Value};
use url::Url;

use crate::errors::go_error;
use crate::modules::value::{self, given};

/// A cookie jar of a script.
pub(crate) struct CookieJar {
    pub(crate) store: Rc<RefCell<CookieStore>>,
}

impl<'js> Trace<'js> for CookieJar {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds nothing of a script.
unsafe impl<'js> JsLifetime<'js> for CookieJar {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for CookieJar {
    const NAME: &'static str = "CookieJar";
    type Mutable = Readable;

    fn prototype(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Object<'js>>> {
        let prototype = Object::new(ctx.clone())?;
        prototype.set("cookiesForURL", Func::from(cookies_for))?;
        prototype.set("set", Func::from(set))?;
        prototype.set("clear", Func::from(clear))?;
        prototype.set("delete", Func::from(delete))?;
        Ok(Some(prototype))
    }

    fn constructor(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        let make = |ctx: Ctx<'js>| Class::instance(ctx, Self { store: Rc::default() });
        Constructor::new_class::<Self, _, _>(ctx.clone(), make).map(Some)
    }
}

type Jar<'js> = This<Class<'js, CookieJar>>;

fn parsed(ctx: &Ctx<'_>, url: &str) -> rquickjs::Result<Url> {
    Url::parse(url).map_err(|error| go_error(ctx, &format!("{url:?} is not a URL: {error}")))
}

/// The values of the cookies that a request to `url` would send, by name.
fn cookies_for<'js>(ctx: Ctx<'js>, this: Jar<'js>, url: String) -> rquickjs::Result<Object<'js>> {
    let url = parsed(&ctx, &url)?;
    let jar = this.0.borrow();
    let store = jar.store.borrow();
    let cookies = Object::new(ctx)?;
    for (name, value) in store.get_request_values(&url) {
        let mut values: Vec<String> =
            cookies.get::<_, Option<Vec<String>>>(name)?.unwrap_or_default();
        values.push(value.to_owned());
        cookies.set(name, values)?;
    }
    Ok(cookies)
}

fn set<'js>(
    ctx: Ctx<'js>,
    this: Jar<'js>,
    url: String,
    name: String,
    value: Value<'js>,
    options: Opt<Value<'js>>,
) -> rquickjs::Result<bool> {
    let url = parsed(&ctx, &url)?;
    let mut text = format!("{name}={}", value::text(&ctx, &value)?);
    let options = given(options.0);
    if let Some(options) = options.as_ref().and_then(Value::as_object) {
        for property in options.props::<String, Value<'js>>() {
            let (key, value) = property?;
            let value = value::text(&ctx, &value)?;
            match key.as_str() {
                "domain" | "path" | "expires" => text += &format!("; {key}={value}"),
                "max_age" => text += &format!("; Max-Age={value}"),
                "secure" if value == "true" => text += "; Secure",
                "http_only" if value == "true" => text += "; HttpOnly",
                _ => {}
            }
        }
    }
    let Ok(cookie) = RawCookie::parse(text) else { return Ok(false) };
    let jar = this.0.borrow();
    let stored = jar.store.borrow_mut().insert_raw(&cookie, &url);
    Ok(stored.is_ok())
}

fn clear<'js>(ctx: Ctx<'js>, this: Jar<'js>, url: String) -> rquickjs::Result<()> {
    remove(&ctx, &this, &url, None)
}

fn delete<'js>(ctx: Ctx<'js>, this: Jar<'js>, url: String, name: String) -> rquickjs::Result<()> {
    remove(&ctx, &this, &url, Some(&name))
}

/// Removes the cookies that a request to `url` would send, or the one of a name.
fn remove<'js>(
    ctx: &Ctx<'js>,
    this: &Jar<'js>,
    url: &str,
    name: Option<&str>,
) -> rquickjs::Result<()> {
    let url = parsed(ctx, url)?;
    let jar = this.0.borrow();
    let mut store = jar.store.borrow_mut();
    let matching = store
        .matches(&url)
        .into_iter()
        .filter(|cookie| name.is_none_or(|name| cookie.name() == name));
    let keys: Vec<(String, String, String)> = matching
        .map(|cookie| {
            let domain = cookie.domain.as_cow().map(|domain| domain.into_owned());
            (domain.unwrap_or_default(), String::from(&cookie.path), cookie.name().to_owned())
        })
        .collect();
    for (domain, path, name) in keys {
        store.remove(&domain, &path, &name);
    }
    Ok(())
}
