//! Cookies as Go's client reads and writes them.

use std::borrow::Cow;
use std::str::FromStr;

use cookie_store::{CookieStore, RawCookie};
use url::Url;

/// Bytes of the cookies of a store: a server may set new ones with each response.
const STORE_MAX: usize = 2 << 20;

/// Bytes of a cookie beside its name and value, about.
const OVERHEAD: usize = 512;

/// A `Set-Cookie` header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseCookie<'a> {
    /// A token.
    pub name: &'a str,
    /// Without quotes.
    pub value: &'a str,
    /// Empty without the attribute.
    pub domain: &'a str,
    /// Empty without the attribute.
    pub path: &'a str,
    /// Whether scripts of a page may not read it.
    pub http_only: bool,
    /// Whether it is sent over TLS only.
    pub secure: bool,
    /// In seconds; 0 if unset, -1 if expired.
    pub max_age: i64,
    /// The date as it was written.
    pub expires: Option<&'a str>,
}

/// Whether a name is a token (RFC 9110, section 5.6.2).
#[must_use]
pub fn is_token(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Parses a `Set-Cookie` header; `None` if Go ignores it.
#[must_use]
pub fn read(line: &str) -> Option<ResponseCookie<'_>> {
    let mut attributes = line.trim().split(';').map(str::trim);
    let (name, value) = attributes.next()?.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || !is_token(name) {
        return None;
    }
    let value = plain(value, true)?;
    let mut cookie = ResponseCookie { name, value, ..ResponseCookie::default() };
    for attribute in attributes {
        let (attribute, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let Some(value) = plain(value, false) else { continue };
        match attribute.to_ascii_lowercase().as_str() {
            "secure" => cookie.secure = true,
            "httponly" => cookie.http_only = true,
            "domain" => cookie.domain = value,
            "path" => cookie.path = value,
            "expires" => cookie.expires = Some(value),
            "max-age" => {
                let is_padded = value.starts_with('0') && value.len() > 1;
                match i64::from_str(value) {
                    Ok(seconds) if seconds <= 0 => cookie.max_age = -1,
                    Ok(seconds) if !is_padded => cookie.max_age = seconds,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Some(cookie)
}

impl ResponseCookie<'_> {
    /// The same as a cookie of the cookie library.
    #[must_use]
    pub fn raw(&self) -> RawCookie<'static> {
        let mut text = "n=v".to_owned();
        for (name, value) in [("Domain", self.domain), ("Path", self.path)] {
            if !value.is_empty() {
                text += &format!("; {name}={value}");
            }
        }
        if let Some(expires) = self.expires {
            text += &format!("; Expires={expires}");
        }
        if self.max_age != 0 {
            text += &format!("; Max-Age={}", self.max_age);
        }
        if self.secure {
            text += "; Secure";
        }
        let mut raw = RawCookie::parse(text).unwrap_or_else(|_| RawCookie::new("", ""));
        raw.set_name(self.name.to_owned());
        raw.set_value(self.value.to_owned());
        raw
    }
}

/// Stores a `Set-Cookie` header of a response of `url`; cookies of other hosts are dropped.
pub fn keep(store: &mut CookieStore, line: &str, url: &Url) {
    if let Some(cookie) = read(line) {
        put(store, &cookie.raw(), url);
    }
}

/// Stores a cookie for `url`, unless it is of another host or the store is full.
pub fn put(store: &mut CookieStore, cookie: &RawCookie<'_>, url: &Url) {
    let bytes = |name: &str, value: &str| name.len() + value.len() + OVERHEAD;
    let held: usize = store.iter_any().map(|cookie| bytes(cookie.name(), cookie.value())).sum();
    if held + bytes(cookie.name(), cookie.value()) <= STORE_MAX {
        let _ = store.insert_raw(cookie, url);
    }
}

/// The cookies of a `Cookie` header, as names and values.
pub fn sent(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split(';').filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=').unwrap_or((pair.trim(), ""));
        let name = name.trim();
        let is_name = !name.is_empty() && is_token(name);
        is_name.then(|| Some((name, plain(value, true)?))).flatten()
    })
}

/// A cookie as Go sends it: without invalid bytes, quoted if it contains a blank or comma.
#[must_use]
pub fn written(name: &str, value: &str) -> String {
    let value: Cow<'_, str> = match value.bytes().all(is_plain) {
        true => value.into(),
        false => value.chars().filter(|c| u8::try_from(*c).is_ok_and(is_plain)).collect(),
    };
    match value.contains([' ', ',']) {
        true => format!("{name}=\"{value}\""),
        false => format!("{name}={value}"),
    }
}

/// The default path of a cookie: the folder of the URL's path.
#[must_use]
pub fn default_path(url: &Url) -> &str {
    match url.path().rfind('/') {
        None | Some(0) => "/",
        Some(end) => &url.path()[..end],
    }
}

/// A value without its quotes; `None` if it has invalid bytes.
fn plain(value: &str, may_be_quoted: bool) -> Option<&str> {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let value = inner.filter(|_| may_be_quoted).unwrap_or(value);
    value.bytes().all(is_plain).then_some(value)
}

fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && !b"\";\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_fill_the_memory_with_cookies() {
        let (mut store, url) = (CookieStore::default(), Url::parse("http://h/").unwrap());
        let value = "x".repeat(STORE_MAX / 8);
        for number in 0..20 {
            keep(&mut store, &format!("c{number}={value}"), &url);
        }
        assert_eq!(store.iter_any().count(), 7);
        keep(&mut store, "small=1", &url);
        assert!(store.iter_any().any(|cookie| cookie.name() == "small"));
    }

    #[test]
    fn set_cookie_headers_are_read_as_by_go() {
        let all = "id=\"a b\"; Path=/x; Domain=h.test; Max-Age=0; HttpOnly; SECURE; Odd";
        let cookie = read(all).unwrap();
        assert_eq!((cookie.name, cookie.value, cookie.max_age), ("id", "a b", -1));
        assert_eq!((cookie.path, cookie.domain), ("/x", "h.test"));
        assert!(cookie.http_only && cookie.secure);
        assert_eq!(read("a=1; Max-Age=07").unwrap().max_age, 0);
        assert_eq!(read("a= b").unwrap().value, " b");
        for none in ["", "a", "=1", "a b=1", "a=\u{fffd}", "a=x\"y", "a=x\\y"] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }

    #[test]
    fn cookie_headers_are_written_as_by_go() {
        assert_eq!(written("a", "x"), "a=x");
        assert_eq!(written("a", "x y"), "a=\"x y\"");
        assert_eq!(written("a", "ü\"x;\\y\""), "a=xy");
        let sent: Vec<_> = sent("a=1; b=\"2 3\"; c; =x; d=\"; e=ü").collect();
        assert_eq!(sent, [("a", "1"), ("b", "2 3"), ("c", "")]);
    }

    #[test]
    fn the_default_path_is_the_folder() {
        for (url, path) in [("http://h", "/"), ("http://h/a", "/"), ("http://h/a/b?c", "/a")] {
            assert_eq!(default_path(&Url::parse(url).unwrap()), path);
        }
    }
}
