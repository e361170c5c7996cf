//! What a script asks for: the arguments of `http.request` and its kin.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cookie_store::CookieStore;
use rquickjs::{Class, Ctx, Object, Value};
use url::Url;

use super::cookies::CookieJar;
use super::expected;
use super::form;
use crate::duration::GoDuration;
use crate::errors::go_error;
use crate::modules::value::{self, given, truthy};
use crate::user::vu::{Expected, Vu};

/// How long a request may take when nothing says so.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What becomes of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// A string.
    Text,
    /// An `ArrayBuffer`.
    Binary,
    /// It is not kept.
    Dropped,
}

/// A request as a script asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: String,
    /// As it was written.
    pub(crate) url: String,
    /// The tag `name`, when it is not the URL.
    pub(crate) name: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Arc<[u8]>>,
    pub(crate) redirects: u32,
    /// Whether the request itself bounds its redirects.
    pub(crate) bounds_redirects: bool,
    pub(crate) timeout: Duration,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) kind: BodyKind,
    pub(crate) expected: Expected,
    pub(crate) throw: bool,
    pub(crate) jar: Rc<RefCell<CookieStore>>,
    /// Cookies of this request alone: name, value, and whether they replace those of the jar.
    pub(crate) cookies: Vec<(String, String, bool)>,
}

impl Ask {
    /// Reads the arguments of a request.
    pub(crate) fn read<'js>(
        ctx: &Ctx<'js>,
        vu: &Vu,
        method: String,
        url: &Value<'js>,
        body: Option<Value<'js>>,
        params: Option<Value<'js>>,
    ) -> rquickjs::Result<Self> {
        let settings = vu.test.settings();
        let (url, name) = target(ctx, url)?;
        let kind = match settings.discard_response_bodies {
            true => BodyKind::Dropped,
            false => BodyKind::Text,
        };
        let mut ask = Self {
            method,
            url,
            name,
            headers: Vec::new(),
            body: None,
            redirects: settings.max_redirects,
            bounds_redirects: false,
            timeout: TIMEOUT,
            tags: Vec::new(),
            kind,
            expected: vu.expected.borrow().clone(),
            throw: settings.throw,
            jar: Rc::clone(&vu.jar),
            cookies: Vec::new(),
        };
        let params = given(params);
        if let Some(params) = params.as_ref().and_then(Value::as_object) {
            ask.read_params(ctx, params)?;
        }
        if let Some(body) = given(body) {
            let (bytes, content_type) = form::body(ctx, &body)?;
            ask.body = Some(bytes.into());
            if let Some(content_type) = content_type {
                ask.default_header("Content-Type", &content_type);
            }
        }
        let agent = &settings.user_agent;
        if !agent.is_empty() {
            ask.default_header("User-Agent", agent);
        }
        Ok(ask)
    }

    fn default_header(&mut self, name: &str, value: &str) {
        if !self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    fn read_params<'js>(&mut self, ctx: &Ctx<'js>, params: &Object<'js>) -> rquickjs::Result<()> {
        for property in params.props::<String, Value<'js>>() {
            let (key, value) = property?;
            if key == "responseCallback" {
                self.expected = expected::of(ctx, &value)?;
                continue;
            }
            let Some(value) = given(Some(value)) else { continue };
            match key.as_str() {
                "headers" => self.headers = headers(ctx, &value)?,
                "tags" => {
                    self.tags = value::tags(ctx, Some(value))?.map_err(|why| {
                        go_error(ctx, &format!("invalid HTTP request metric tags: {why}"))
                    })?;
                }
                "cookies" => self.cookies = cookies(ctx, &value)?,
                "jar" => {
                    if let Some(jar) = value.as_object().and_then(Class::<CookieJar>::from_object) {
                        self.jar = Rc::clone(&jar.borrow().store);
                    }
                }
                "timeout" => self.timeout = timeout(ctx, &value)?,
                "redirects" => {
                    self.redirects = value.as_number().unwrap_or(0.0).max(0.0) as u32;
                    self.bounds_redirects = true;
                }
                "throw" => self.throw = truthy(ctx, value)?,
                "responseType" => self.kind = body_kind(ctx, &value)?,
                "compression" => {
                    return Err(go_error(ctx, "the parameter compression is not there yet"));
                }
                "auth" => {
                    let how = value::text(ctx, &value)?;
                    if how != "basic" && !how.is_empty() {
                        let message = format!("the authentication {how:?} is not there yet");
                        return Err(go_error(ctx, &message));
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = self.tags.iter().position(|(key, _)| key == "name") {
            self.name = Some(self.tags.remove(at).1);
        }
        // Known to whoever looks at the tags of this request.
        if let Ok(url) = Url::parse(&self.url)
            && url.host_str().is_none()
        {
            self.name.get_or_insert_with(|| self.url.clone());
        }
        Ok(())
    }
}

/// The URL of a request, and its name when it is made by the tag function `http.url`.
fn target<'js>(ctx: &Ctx<'js>, url: &Value<'js>) -> rquickjs::Result<(String, Option<String>)> {
    if let Some(object) = url.as_object()
        && let (Ok(Some(url)), Ok(Some(name))) =
            (object.get::<_, Option<String>>("url"), object.get::<_, Option<String>>("name"))
    {
        return Ok((url, Some(name)));
    }
    value::text(ctx, url).map(|url| (url, None))
}

fn headers<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Vec<(String, String)>> {
    let Some(object) = value.as_object() else { return Ok(Vec::new()) };
    let mut headers = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        let (name, value) = property?;
        headers.push((name, value::text(ctx, &value)?));
    }
    Ok(headers)
}

fn cookies<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
) -> rquickjs::Result<Vec<(String, String, bool)>> {
    let Some(object) = value.as_object() else { return Ok(Vec::new()) };
    let mut cookies = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        let (name, value) = property?;
        match value.as_object() {
            Some(cookie) => {
                let text = value::text(ctx, &cookie.get("value")?)?;
                let replace = truthy(ctx, cookie.get("replace")?)?;
                cookies.push((name, text, replace));
            }
            None => cookies.push((name, value::text(ctx, &value)?, false)),
        }
    }
    Ok(cookies)
}

fn timeout<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Duration> {
    let text = value::text(ctx, value)?;
    GoDuration::parse(&text)
        .map(GoDuration::to_std)
        .map_err(|error| go_error(ctx, &format!("invalid timeout value: {error}")))
}

fn body_kind<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<BodyKind> {
    match value::text(ctx, value)?.as_str() {
        "text" | "" => Ok(BodyKind::Text),
        "binary" => Ok(BodyKind::Binary),
        "none" => Ok(BodyKind::Dropped),
        other => {
            let message = format!("{other} does not belong to ResponseType values");
            Err(go_error(ctx, &message))
        }
    }
}
