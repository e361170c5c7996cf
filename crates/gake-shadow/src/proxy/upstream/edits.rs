//! Applies a backend's `Host` and header edits to a request's head.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};

use crate::config::HeaderEdits;
use crate::message::head::{FRAMING_NAMES, HeadWriter, RequestHead};
use crate::message::line::{is, is_one_of};
use crate::proxy::upstream::target::BackendTarget;

/// Estimated bytes added by a host and edits.
const ADDED_BYTES: usize = 256;

/// The head for a backend, with `more` lines appended.
pub(crate) fn for_backend(
    head: &RequestHead,
    target: &BackendTarget,
    more: &[(&[u8], &[u8])],
) -> RequestHead {
    let edits = &target.backend.edits;
    let has_host = head.has_host();
    if edits.is_empty() && has_host && target.host.is_none() {
        return head.with(more);
    }
    let mut edited = HeadEditor::new(head, edits, more);
    if !has_host {
        // HTTP/1.0 requests may lack one, HTTP/1.1 requires it.
        edited.line(b"host", target.host.as_ref().unwrap_or(&target.own_host).as_bytes());
    }
    for (name, value) in head.lines() {
        match &target.host {
            Some(host) if is(name, "host") => edited.line(name, host.as_bytes()),
            _ => edited.line(name, value),
        }
    }
    edited.finish().numbered(head.ids)
}

/// Writes a head with a backend's edits applied in order.
struct HeadEditor<'a> {
    writer: HeadWriter,
    edits: &'a HeaderEdits,
    /// Lines to append, replacing existing ones of the same names.
    more: &'a [(&'a [u8], &'a [u8])],
    /// Names whose first value has got a suffix.
    suffixed: Vec<&'a HeaderName>,
    /// Set names that replaced an existing line.
    set: Vec<&'a HeaderName>,
}

impl<'a> HeadEditor<'a> {
    fn new(head: &RequestHead, edits: &'a HeaderEdits, more: &'a [(&'a [u8], &'a [u8])]) -> Self {
        let room = head.bytes().len() + ADDED_BYTES;
        let writer = HeadWriter::new(head.method(), head.target(), room);
        Self { writer, edits, more, suffixed: Vec::new(), set: Vec::new() }
    }

    fn is_more(&self, name: &[u8]) -> bool {
        self.more.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Writes a line, edited. Framing headers are never edited, since the body is unchanged.
    fn line(&mut self, name: &[u8], value: &[u8]) {
        if is_one_of(name, FRAMING_NAMES) {
            return self.writer.line(name, value);
        }
        if self.is_more(name) {
            return;
        }
        let is_it = |known: &HeaderName| is(name, known.as_str());
        if let Some((known, value)) = self.edits.set.iter().rfind(|(known, _)| is_it(known)) {
            if !self.set.contains(&known) {
                self.set.push(known);
                self.writer.line(name, value.as_bytes());
            }
            return;
        }
        if self.edits.remove.iter().any(is_it) {
            return;
        }
        let mut value = Cow::Borrowed(value);
        for (_, old, new) in self.edits.remap.iter().filter(|(known, ..)| is_it(known)) {
            if *value == *old.as_bytes() {
                value = Cow::Borrowed(new.as_bytes());
            }
        }
        let suffixes = self.edits.suffix.iter().filter(|(known, _)| is_it(known));
        let is_first = !self.suffixed.iter().any(|known| is_it(known));
        for (known, suffix) in suffixes.filter(|_| is_first) {
            self.suffixed.push(known);
            let longer = [&value, suffix.as_bytes()].concat();
            if HeaderValue::from_bytes(&longer).is_ok() {
                value = Cow::Owned(longer);
            }
        }
        self.writer.line(name, &value);
    }

    /// Appends set headers that replaced no line, and `more`.
    fn finish(mut self) -> RequestHead {
        for (number, (name, value)) in self.edits.set.iter().enumerate() {
            let again = self.edits.set[number + 1..].iter().any(|(later, _)| later == name);
            let is_written = self.set.contains(&name);
            let name = name.as_str().as_bytes();
            let is_other = is_one_of(name, FRAMING_NAMES) || self.is_more(name);
            if !again && !is_written && !is_other {
                self.writer.line(name, value.as_bytes());
            }
        }
        self.more.iter().for_each(|(name, value)| self.writer.line(name, value));
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(edits: &HeaderEdits, lines: &[(&str, &str)]) -> String {
        let mut writer = HeadWriter::new(&http::Method::GET, "/", 0);
        lines.iter().for_each(|(name, value)| writer.line(name.as_bytes(), value.as_bytes()));
        let head = writer.finish();
        let mut edited = HeadEditor::new(&head, edits, &[(b"x-last", b"1")]);
        head.lines().for_each(|(name, value)| edited.line(name, value));
        let head = edited.finish();
        String::from_utf8(head.bytes().to_vec()).unwrap().replace("\r\n", "\n")
    }

    #[test]
    fn edits_apply_in_order() {
        let name = |text: &str| text.parse::<HeaderName>().unwrap();
        let value = HeaderValue::from_static;
        let edits = HeaderEdits {
            remove: vec![name("cookie"), name("content-length")],
            remap: vec![(name("authorization"), value("Bearer live"), value("Bearer test"))],
            suffix: vec![(name("idempotency-key"), "-shadow".to_owned())],
            set: vec![(name("x-env"), value("test")), (name("x-new"), value("2"))],
        };
        let lines = [
            ("Cookie", "a"),
            ("Authorization", "Bearer live"),
            ("authorization", "Bearer other"),
            ("Idempotency-Key", "k1"),
            ("Idempotency-Key", "k2"),
            ("X-Env", "live"),
            ("x-env", "lives"),
            ("Content-Length", "5"),
        ];
        assert_eq!(
            edited(&edits, &lines),
            "GET / HTTP/1.1\nAuthorization: Bearer test\nauthorization: Bearer other\n\
             Idempotency-Key: k1-shadow\nIdempotency-Key: k2\nX-Env: test\nContent-Length: 5\n\
             x-new: 2\nx-last: 1\n\n"
        );
    }
}
