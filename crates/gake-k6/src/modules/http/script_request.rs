//! The request of a script: the arguments of `http.request` and similar functions.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cookie_store::CookieStore;
use gake_js::errors::go_error;
use gake_js::value::{self, PAIR, given, truthy};
use gake_script::user::aside_above;
use gake_wire::coding;
use rquickjs::{Class, Ctx, FromJs, Object, Value};
use url::Url;

use super::cookies::{CookieJar, values_for};
use super::expected;
use super::form;
use super::go_value;
use super::request_headers;
use super::target_url::checked;
use crate::duration::GoDuration;
use crate::test::LogLevel;
use crate::user::vu::{StatusExpectation, Vu};

/// The default timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes that are compressed on the worker's thread; more take long.
const COMPRESSED_AT_ONCE: usize = 64 << 10;

const ENCODING: &str = "Content-Encoding";

/// The type of a response's body in the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// A string.
    Text,
    /// An `ArrayBuffer`.
    Binary,
    /// Discarded.
    Dropped,
}

/// The authentication scheme of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authentication {
    /// The URL's user and password, preemptively.
    Basic,
    /// On a server's challenge.
    Digest,
    /// On a server's offer.
    Ntlm,
}

/// The request of a script.
#[derive(Debug, Clone)]
pub(crate) struct ScriptRequest {
    pub(crate) method: Cow<'static, str>,
    /// As Go writes the script's URL.
    pub(crate) url: Rc<str>,
    /// The URL as the script wrote it, which a response without a status has.
    pub(crate) written: Rc<str>,
    /// The tag `name`, if it is not the URL.
    pub(crate) name: Option<String>,
    pub(crate) headers: Rc<Vec<(String, String)>>,
    /// The headers of the arguments, while they are parsed.
    own_headers: Vec<(String, String)>,
    pub(crate) body: Option<Arc<[u8]>>,
    /// The body before it is compressed.
    pub(crate) plain_body: Option<Arc<[u8]>>,
    /// The codings of the body in order, joined by commas.
    compression: String,
    pub(crate) authentication: Authentication,
    pub(crate) redirects: u32,
    /// Whether its arguments set `redirects`.
    pub(crate) bounds_redirects: bool,
    pub(crate) timeout: Duration,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) kind: BodyKind,
    pub(crate) expected: Rc<StatusExpectation>,
    pub(crate) throw: bool,
    pub(crate) jar: Rc<RefCell<CookieStore>>,
    /// Its own cookies: name, value, and whether it replaces the jar's cookie.
    pub(crate) cookies: Vec<(String, String, bool)>,
    /// The jar's cookies for its first hop, if they were taken earlier.
    pub(crate) jar_cookies: Option<Vec<(String, String)>>,
}

impl ScriptRequest {
    /// Parses the arguments of a request.
    pub(crate) fn read<'js>(
        ctx: &Ctx<'js>,
        vu: &Vu,
        method: Cow<'static, str>,
        url: &Value<'js>,
        body: Option<Value<'js>>,
        params: Option<Value<'js>>,
    ) -> rquickjs::Result<Self> {
        vu.bodies.collect(ctx);
        let settings = vu.test.settings();
        let (url, name) = target(ctx, url)?;
        // An invalid URL stays unchanged, and is refused later.
        let written: Rc<str> = url.into();
        let url = match gake_go::url::normalized(&written) {
            Ok(Cow::Owned(normal)) => normal.into(),
            Ok(Cow::Borrowed(_)) | Err(_) => Rc::clone(&written),
        };
        let kind = match settings.discard_response_bodies {
            true => BodyKind::Dropped,
            false => BodyKind::Text,
        };
        let mut request = Self {
            method,
            url,
            written,
            name,
            headers: Rc::clone(&vu.headers),
            own_headers: Vec::new(),
            body: None,
            plain_body: None,
            compression: String::new(),
            authentication: Authentication::Basic,
            redirects: settings.max_redirects,
            bounds_redirects: false,
            timeout: TIMEOUT,
            tags: Vec::new(),
            kind,
            expected: Rc::clone(&vu.expected.borrow()),
            throw: settings.throw,
            jar: Rc::clone(&vu.jar.borrow()),
            cookies: Vec::new(),
            jar_cookies: None,
        };
        // Before the parameters: of two errors, k6 reports that of the body.
        let body = given(body).map(|body| form::body(ctx, &body)).transpose()?;
        let params = given(params);
        if let Some(params) = params.as_ref().and_then(Value::as_object) {
            request.read_params(ctx, params)?;
        }
        let own = std::mem::take(&mut request.own_headers);
        let mut headers = None;
        if let Some((bytes, content_type)) = body {
            request.plain_body = Some(bytes.into());
            if let Some(content_type) = content_type {
                let headers = headers.get_or_insert_with(|| vu.headers.to_vec());
                request_headers::set(headers, "Content-Type", content_type);
            }
        }
        if !own.is_empty() {
            let headers = headers.get_or_insert_with(|| vu.headers.to_vec());
            request_headers::set_all(headers, own);
        }
        if let Some(headers) = headers {
            request.headers = Rc::new(headers);
        }
        if let Some(plain) = request.plain_body.clone() {
            request.body = Some(request.compressed(ctx, vu, &plain)?);
        }
        request.drop_length(vu);
        Ok(request)
    }

    /// Takes the jar's cookies as they are now, before other requests change them.
    pub(super) fn take_cookies(&mut self) {
        let Ok(url) = checked(&self.url) else { return };
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let cookies = values_for(&self.jar.borrow(), &url).into_iter().map(owned).collect();
        self.jar_cookies = Some(cookies);
    }

    /// Bytes that it takes outside of the script's heap, about.
    pub(crate) fn bytes(&self) -> usize {
        let own = |pairs: &[(String, String)]| -> usize {
            pairs.iter().map(|(name, value)| name.len() + value.len() + PAIR).sum()
        };
        let body = |body: &Option<Arc<[u8]>>| body.as_ref().map_or(0, |body| body.len());
        size_of::<Self>()
            + 2 * (self.url.len() + own(&self.headers) + body(&self.body))
            + body(&self.plain_body)
            + own(&self.tags)
    }

    /// Removes the script's `Content-Length`: the client writes the right one.
    fn drop_length(&mut self, vu: &Vu) {
        const LENGTH: &str = "Content-Length";
        let Some(given) = request_headers::get(&self.headers, LENGTH) else { return };
        let actual = self.body.as_ref().map_or(0, |body| body.len());
        if !given.is_empty() {
            if given.parse() != Ok(actual) {
                let message = format!(
                    "The specified Content-Length header {given:?} in the {} request for {} \
                     doesn't match the actual request body length of {actual}, so it will be \
                     ignored!",
                    self.method, self.url
                );
                vu.test.log(LogLevel::Warning, &message, &[]);
            }
            Rc::make_mut(&mut self.headers).retain(|(name, _)| name != LENGTH);
        }
    }

    /// The body in the requested codings.
    fn compressed(
        &mut self,
        ctx: &Ctx<'_>,
        vu: &Vu,
        plain: &Arc<[u8]>,
    ) -> rquickjs::Result<Arc<[u8]>> {
        if self.compression.is_empty() {
            return Ok(Arc::clone(plain));
        }
        let (bytes, codings) = (plain.to_vec(), self.compression.clone());
        let encode = move || coding::encoded(bytes, &codings);
        let compressed = aside_above(ctx, COMPRESSED_AT_ONCE, plain.len(), encode)?;
        let compressed = compressed.map_err(|why| go_error(ctx, &why))?;
        let own = request_headers::get(&self.headers, ENCODING).filter(|own| !own.is_empty());
        if own.is_some_and(|own| own != self.compression) {
            let message = format!(
                "There's a mismatch between the desired `compression` the manually set \
                 `Content-Encoding` header in the {} request for '{}', the custom header has \
                 precedence and won't be overwritten. This may result in invalid data being sent \
                 to the server.",
                self.method, self.url
            );
            vu.test.log(LogLevel::Warning, &message, &[]);
        }
        if own.is_none() {
            let compression = self.compression.clone();
            request_headers::set(Rc::make_mut(&mut self.headers), ENCODING, compression);
        }
        Ok(compressed.into())
    }

    fn read_params<'js>(&mut self, ctx: &Ctx<'js>, params: &Object<'js>) -> rquickjs::Result<()> {
        for property in params.props::<String, Value<'js>>() {
            let (key, value) = property?;
            if key == "responseCallback" {
                self.expected = Rc::new(expected::of(ctx, &value, "unsupported responseCallback")?);
                continue;
            }
            let Some(value) = given(Some(value)) else { continue };
            match key.as_str() {
                "headers" => self.own_headers = headers(ctx, &value)?,
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
                    self.redirects = value::number_argument(ctx, Some(value))?.max(0.0) as u32;
                    self.bounds_redirects = true;
                }
                "throw" => self.throw = truthy(ctx, value)?,
                "responseType" => self.kind = body_kind(ctx, &value)?,
                "compression" => {
                    self.compression = value::text(ctx, &value)?;
                    // Also without a body, whose compression would be the error.
                    let mut codings = self.compression.split(',').map(str::trim);
                    let unknown =
                        codings.find(|one| !["gzip", "deflate", "zstd", "br"].contains(one));
                    if let Some(unknown) = unknown.filter(|_| !self.compression.is_empty()) {
                        coding::encoded(Vec::new(), unknown).map_err(|why| go_error(ctx, &why))?;
                    }
                }
                "auth" => match value::text(ctx, &value)?.as_str() {
                    "digest" => self.authentication = Authentication::Digest,
                    "ntlm" => self.authentication = Authentication::Ntlm,
                    // As in k6, any other value means basic authentication.
                    _ => {}
                },
                _ => {}
            }
        }
        if let Some(at) = self.tags.iter().position(|(key, _)| key == "name") {
            self.name = Some(self.tags.remove(at).1);
        }
        // As in k6, a URL without a host is a name.
        if let Ok(url) = Url::parse(&self.url)
            && url.host_str().is_none()
        {
            self.name.get_or_insert_with(|| self.url.to_string());
        }
        Ok(())
    }
}

/// The URL of a request, and its name if the tag function `http.url` created it.
fn target<'js>(ctx: &Ctx<'js>, url: &Value<'js>) -> rquickjs::Result<(String, Option<String>)> {
    // A result of `http.url`; other objects with these properties are not URLs.
    if let Some(object) = url.as_object()
        && object.contains_key("clean_url")?
        && let (Ok(Some(url)), Ok(Some(name))) =
            (object.get::<_, Option<String>>("url"), object.get::<_, Option<String>>("name"))
    {
        return Ok((url, Some(name)));
    }
    if url.is_string() {
        return Ok((value::text(ctx, url)?, None));
    }
    // As in k6, `toString()` of other objects is not a URL.
    let text = go_value::printed(ctx, url)?;
    Err(go_error(ctx, &format!("invalid URL: '#{text}'")))
}

fn headers<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Vec<(String, String)>> {
    let Some(object) = value.as_object() else {
        // As in k6, the properties of a text are its characters.
        let text = value.as_string().map(|_| value::text(ctx, value)).transpose()?;
        let characters = text.unwrap_or_default();
        let characters = characters.chars().enumerate();
        return Ok(characters.map(|(at, c)| (at.to_string(), c.to_string())).collect());
    };
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
    // As in k6, which sees the functions of a jar as cookies.
    if Class::<CookieJar>::from_js(ctx, value.clone()).is_ok() {
        let function = "function reflect.methodValueCall() { [native code] }";
        let names = ["clear", "cookiesForURL", "delete", "set"];
        return Ok(names.map(|name| (name.to_owned(), function.to_owned(), false)).to_vec());
    }
    let mut cookies = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        let (name, value) = property?;
        match value.as_object() {
            Some(cookie) => {
                let (mut text, mut replace) = (String::new(), false);
                for property in cookie.props::<String, Value<'js>>() {
                    let (key, value) = property?;
                    match key.to_ascii_lowercase().as_str() {
                        "value" => text = value::text(ctx, &value)?,
                        "replace" => replace = truthy(ctx, value)?,
                        _ => {}
                    }
                }
                cookies.push((name, text, replace));
            }
            None if value.is_null() || value.is_undefined() => {}
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
