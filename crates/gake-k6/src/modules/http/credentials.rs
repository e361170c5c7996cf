//! URLs as they are shown: without user and password.

use std::borrow::Cow;
use std::rc::Rc;

use url::Url;

pub(super) fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// A URL as the script wrote it, without its credentials.
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

/// An invalid URL without what may be its credentials: all between `//` and the last `@` of what
/// would be its authority.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let start = text.find("//").map_or(0, |at| at + 2);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    match text[start..end].rfind('@') {
        Some(at) => format!("{}****:****{}", &text[..start], &text[start + at..]).into(),
        None => text.into(),
    }
}

/// A URL without its credentials.
pub(super) fn shown_url(url: &Url) -> String {
    let mut shown = url.clone();
    if has_credentials(url) {
        let _ = shown.set_username("****");
        let _ = shown.set_password(Some("****"));
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_shows_no_password() {
        for (text, expected) in [
            ("http://me:secret@h:port/a@b", "http://****:****@h:port/a@b"),
            ("http://me:sec@ret@[::1/", "http://****:****@[::1/"),
            ("//me:secret@h/", "//****:****@h/"),
            ("me:secret@h/", "****:****@h/"),
            ("http://h:port/?q=a@b", "http://h:port/?q=a@b"),
            ("http://h", "http://h"),
            ("", ""),
        ] {
            assert_eq!(masked(text), expected);
        }
    }
}
