//! Credentials in URLs, and URLs without them for display.

use std::borrow::Cow;
use std::rc::Rc;

use url::Url;

pub(super) fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The decoded user and password of a URL.
pub(super) fn decoded(url: &Url) -> (String, String) {
    let decoded = |text: &str| {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes().iter();
        while let Some(&byte) = rest.next() {
            let escape = rest.as_slice().get(..2).filter(|_| byte == b'%');
            let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
            match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(escaped) => {
                    bytes.push(escaped);
                    rest.nth(1);
                }
                None => bytes.push(byte),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (decoded(url.username()), decoded(url.password().unwrap_or_default()))
}

/// A script's URL with its credentials masked.
pub(super) fn without_credentials(text: &Rc<str>) -> Rc<str> {
    if !text.contains('@') {
        return Rc::clone(text);
    }
    match Url::parse(text) {
        Ok(url) if has_credentials(&url) => shown_url(&url).into(),
        Ok(_) => Rc::clone(text),
        Err(_) => masked(text).into(),
    }
}

/// A URL, maybe invalid, with its credentials masked: from `//` to the authority's last `@`.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let start = text.find("//").map_or(0, |at| at + 2);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    // What has blanks, as a template without its values, is no token.
    let is_token = |at: &usize| {
        let user = &text[start..start + at];
        user.contains(':') || !user.contains(char::is_whitespace)
    };
    match text[start..end].rfind('@').filter(is_token) {
        Some(at) => format!("{}****:****{}", &text[..start], &text[start + at..]).into(),
        None => text.into(),
    }
}

/// A URL as Go shows it in errors: the password is masked, as is a lone user (maybe a token).
pub(super) fn without_password(text: &str) -> Cow<'_, str> {
    let start = text.find("//").map_or(0, |at| at + 2);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    let Some(at) = text[start..end].rfind('@') else { return text.into() };
    match text[start..start + at].split_once(':') {
        Some((user, _)) => format!("{}{user}:***{}", &text[..start], &text[start + at..]).into(),
        None => masked(text),
    }
}

/// A URL with its credentials masked.
pub(super) fn shown_url(url: &Url) -> String {
    let mut shown = url.clone();
    if has_credentials(url) {
        let _ = shown.set_username("****");
        // As in k6, `user:` has an empty password, and `user` has none.
        let has_password = url.password().is_some() || url.as_str().contains(":@");
        let _ = shown.set_password(has_password.then_some("****"));
    }
    shown.into()
}

/// A URL without its user and password.
pub(super) fn without_user(url: &Rc<str>) -> Rc<str> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    match url[start..end].rfind('@') {
        Some(at) => format!("{}{}", &url[..start], &url[start + at + 1..]).into(),
        None => Rc::clone(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_decoded() {
        let url = Url::parse("http://a%40b:p%3D1&2+3%25@h/").unwrap();
        assert_eq!(decoded(&url), ("a@b".to_owned(), "p=1&2+3%".to_owned()));
    }

    #[test]
    fn errors_show_no_password() {
        for (text, expected) in [
            ("http://me:se@cret@h/a@b", "http://me:***@h/a@b"),
            ("http://token@h/", "http://****:****@h/"),
            ("http://h:80/?q=a:b@c", "http://h:80/?q=a:b@c"),
        ] {
            assert_eq!(without_password(text), expected);
        }
    }

    #[test]
    fn invalid_urls_show_no_password() {
        for (text, expected) in [
            ("http://me:secret@h:port/a@b", "http://****:****@h:port/a@b"),
            ("http://me:sec@ret@[::1/", "http://****:****@[::1/"),
            ("//me:secret@h/", "//****:****@h/"),
            ("me:secret@h/", "****:****@h/"),
            ("me:my secret@h/", "****:****@h/"),
            ("<%= @url %>", "<%= @url %>"),
            ("http://h:port/?q=a@b", "http://h:port/?q=a@b"),
            ("http://h", "http://h"),
            ("", ""),
        ] {
            assert_eq!(masked(text), expected);
        }
    }
}
