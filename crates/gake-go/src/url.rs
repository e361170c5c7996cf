//! URLs as `net/url` parses and writes them (RFC 3986, with its own leniency).

use std::borrow::Cow;
use std::fmt::Write;

use url::{Position, Url};

/// A component of a URL with escape rules of its own.
#[derive(Clone, Copy, PartialEq)]
enum Component {
    Path,
    Fragment,
}

/// A URL as Go writes it: the scheme in lower case, path and fragment escaped, the query unchanged.
///
/// # Errors
/// Why Go rejects it, in Go's words.
pub fn normalized(text: &str) -> Result<Cow<'_, str>, String> {
    let (url, fragment) = cut(text, '#');
    if url.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (scheme, rest) = scheme(url)?;
    let (rest, query) = cut(rest, '?');
    let before_path = match (scheme, rest.strip_prefix("//")) {
        (Some(_), _) if !rest.starts_with('/') => return Ok(Cow::Borrowed(text)),
        (None, _) if !rest.starts_with('/') => {
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
            0
        }
        (Some(_), Some(after)) => 2 + authority(after)?,
        (None, Some(after)) if !after.starts_with('/') => 2 + authority(after)?,
        _ => 0,
    };
    let (authority, path) = rest.split_at(before_path);
    let path = escaped(path, Component::Path)?;
    let fragment = fragment.map(|fragment| escaped(fragment, Component::Fragment)).transpose()?;
    let is_same = |component: &Cow<'_, str>| matches!(component, Cow::Borrowed(_));
    let is_lower = scheme.is_none_or(|scheme| !scheme.bytes().any(|b| b.is_ascii_uppercase()));
    // Go drops the `#` of an empty fragment.
    let is_marked = fragment.as_ref().is_none_or(|fragment| !fragment.is_empty());
    if is_lower && is_marked && is_same(&path) && fragment.as_ref().is_none_or(is_same) {
        return Ok(Cow::Borrowed(text));
    }
    let mut written = String::with_capacity(text.len() + 16);
    if let Some(scheme) = scheme {
        written.push_str(&scheme.to_ascii_lowercase());
        written.push(':');
    }
    written.push_str(authority);
    written.push_str(&path);
    for (mark, component) in
        [('?', query), ('#', fragment.as_deref().filter(|text| !text.is_empty()))]
    {
        if let Some(component) = component {
            written.push(mark);
            written.push_str(component);
        }
    }
    Ok(Cow::Owned(written))
}

/// The URL of the request for `text`, parsed as `url`: Go keeps the `.` and `..` segments of its
/// path, and its query as it is written.
#[must_use]
pub fn request_url<'a>(text: &str, url: &'a Url) -> Cow<'a, str> {
    let as_read = Cow::Borrowed(&url[..Position::AfterQuery]);
    let Ok(written) = normalized(text) else { return as_read };
    let Some((_, after)) = written.split_once("://") else { return as_read };
    let (after, query) = cut(cut(after, '#').0, '?');
    let path = after.find('/').map_or(url.path(), |at| &after[at..]);
    if path == url.path() && query == url.query() {
        return as_read;
    }
    let (mark, query) = query.map_or(("", ""), |query| ("?", query));
    Cow::Owned(format!("{}{path}{mark}{query}", &url[..Position::BeforePath]))
}

/// The `Host` header for `text`, parsed as `url`: as it was written, in its case and with a default
/// port.
#[must_use]
pub fn host_header<'a>(text: &'a str, url: &'a Url) -> Cow<'a, str> {
    let written = authority_of(text);
    let written = written.rsplit_once('@').map_or(written, |(_, host)| host);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    match !written.is_empty() && text.contains("://") && written.bytes().all(is_plain) {
        true => written.strip_suffix(':').unwrap_or(written).into(),
        false => url[Position::BeforeHost..Position::AfterPort].into(),
    }
}

/// The authority of a URL (user, host and port), which may be invalid.
#[must_use]
pub fn authority_of(url: &str) -> &str {
    let rest = url.split_once("//").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// The texts before and after a mark; `None` without one.
fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// The scheme, and the text after its colon.
fn scheme(text: &str) -> Result<(Option<&str>, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((Some(&text[..at]), &text[at + 1..])),
            _ => break,
        }
    }
    Ok((None, text))
}

/// The length of the authority at the start of `text`.
fn authority(text: &str) -> Result<usize, String> {
    let length = text.find('/').unwrap_or(text.len());
    let authority = &text[..length];
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let is_known = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(is_known) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            escapes(user)?;
            host
        }
        None => authority,
    };
    let (name, port) = match host.strip_prefix('[') {
        Some(inside) => {
            let end = inside.rfind(']').ok_or("missing ']' in host")?;
            host.split_at(end + 2)
        }
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) || (!port.is_empty() && digits == port) {
        return Err(format!("invalid port {port:?} after host"));
    }
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            // Only non-ASCII bytes may be escaped in a host.
            b'%' => {
                let escape = &name.as_bytes()[at..name.len().min(at + 3)];
                let is_known = matches!(escape, [_, b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', _])
                    || escape == b"%25";
                if !is_known {
                    return Err(bad_escape(escape));
                }
            }
            b' ' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                let byte = char::from(byte).to_string();
                return Err(format!("invalid character {byte:?} in host name"));
            }
            _ => {}
        }
    }
    Ok(length)
}

/// A component as Go writes it: unchanged if all of its bytes are allowed, else unescaped and
/// escaped again.
fn escaped(text: &str, component: Component) -> Result<Cow<'_, str>, String> {
    escapes(text)?;
    let is_allowed = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-_.~!$&'()*+,;=:@/%[]".contains(&byte)
            || (component == Component::Fragment && byte == b'?')
    };
    if text.bytes().all(is_allowed) {
        return Ok(Cow::Borrowed(text));
    }
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-_.~$&+,/:;=@".contains(&byte)
            || (component == Component::Fragment && b"!()*?".contains(&byte))
    };
    let mut written = String::with_capacity(text.len() + 16);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next()), digit(bytes.next()));
                // `escapes` has checked both digits.
                u8::try_from(high.unwrap_or(0) * 16 + low.unwrap_or(0)).unwrap_or(b'%')
            }
            byte => byte,
        };
        if is_plain(byte) {
            written.push(char::from(byte));
        } else {
            let _ = write!(written, "%{byte:02X}");
        }
    }
    Ok(Cow::Owned(written))
}

/// Checks that two hexadecimal digits follow each `%`.
fn escapes(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    for at in (0..bytes.len()).filter(|&at| bytes[at] == b'%') {
        let escape = &bytes[at..bytes.len().min(at + 3)];
        if escape.len() < 3 || !escape[1..].iter().all(u8::is_ascii_hexdigit) {
            return Err(bad_escape(escape));
        }
    }
    Ok(())
}

fn bad_escape(escape: &[u8]) -> String {
    format!("invalid URL escape {:?}", String::from_utf8_lossy(escape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_written_as_go_writes_them() {
        for (text, written) in [
            ("http://h/a b/c", "http://h/a%20b/c"),
            ("http://h/ü", "http://h/%C3%BC"),
            ("http://h/q?x=a b&y=ü", "http://h/q?x=a b&y=ü"),
            ("http://h/p|q{r}^`", "http://h/p%7Cq%7Br%7D%5E%60"),
            ("http://h/a\\b", "http://h/a%5Cb"),
            ("http://h/it's", "http://h/it's"),
            // With one byte to escape, all others are escaped as well.
            ("http://h/it's a%2Fb", "http://h/it%27s%20a/b"),
            ("http://h/%2Fa", "http://h/%2Fa"),
            ("http://h/f#frag ment", "http://h/f#frag%20ment"),
            ("http://h/f#", "http://h/f"),
            ("http://h/q?x=ü#ü?", "http://h/q?x=ü#%C3%BC?"),
            ("HTTP://h/Up", "http://h/Up"),
            ("http://h?x=1", "http://h?x=1"),
            ("http://h", "http://h"),
            ("http://[::1]:8080/a b", "http://[::1]:8080/a%20b"),
            ("http://user:p%40ss@h/x", "http://user:p%40ss@h/x"),
            ("http://a<b/", "http://a<b/"),
            ("http://h:99999/", "http://h:99999/"),
            ("ftp://x/", "ftp://x/"),
            ("/rel", "/rel"),
            ("a:b c", "a:b c"),
            ("", ""),
        ] {
            assert_eq!(normalized(text).as_deref(), Ok(written), "{text:?}");
        }
    }

    #[test]
    fn requests_keep_the_dots_of_a_path() {
        for (text, expected) in [
            ("http://h/a/../b?q=../c#f", "http://h/a/../b?q=../c"),
            ("http://h/./a/%2e%2E/b", "http://h/./a/%2e%2E/b"),
            ("http://h/..", "http://h/.."),
            ("HTTP://H:80/a\\b", "http://h/a%5Cb"),
            ("http://h/p|q?x=a b&\"é", "http://h/p%7Cq?x=a b&\"é"),
            ("http://user:pass@h/a/../b", "http://user:pass@h/a/../b"),
            ("http://h?x=/../y", "http://h/?x=/../y"),
            ("http://h", "http://h/"),
            ("https://[::1]:8443/a/b", "https://[::1]:8443/a/b"),
        ] {
            assert_eq!(request_url(text, &Url::parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn the_host_header_is_as_written() {
        for (text, expected) in [
            ("http://LocalHost:80/a", "LocalHost:80"),
            ("http://me:secret@h/", "h"),
            ("http://h:/", "h"),
            ("http://[::1]:81/", "[::1]:81"),
            ("http://bücher.test/", "xn--bcher-kva.test"),
        ] {
            assert_eq!(host_header(text, &Url::parse(text).unwrap()), expected);
        }
    }

    #[test]
    fn invalid_urls_are_refused_in_gos_words() {
        for (text, why) in [
            ("http://h/a%zzb", "invalid URL escape \"%zz\""),
            ("http://h/a%", "invalid URL escape \"%\""),
            ("http://h/a%4", "invalid URL escape \"%4\""),
            ("http://h/#%zz", "invalid URL escape \"%zz\""),
            ("http://%41/", "invalid URL escape \"%41\""),
            ("http:// bad", "invalid character \" \" in host name"),
            ("http://[::1", "missing ']' in host"),
            ("http://[::1]x/", "invalid port \"x\" after host"),
            ("http://h/tab\there", "net/url: invalid control character in URL"),
            (" http://h/", "first path segment in URL cannot contain colon"),
            ("1http://x/", "first path segment in URL cannot contain colon"),
            ("http://h:x/", "invalid port \":x\" after host"),
            (":", "missing protocol scheme"),
            ("://x", "missing protocol scheme"),
            ("http://user name@h/", "net/url: invalid userinfo"),
        ] {
            assert_eq!(normalized(text), Err(why.to_owned()), "{text:?}");
        }
    }
}
