//! The head of an answer in parts, on its way to a client that speaks HTTP/1.1.

use gake_wire::http1::ResponseHead;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderName, TRAILER, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderValue, StatusCode};

use super::answer_bytes::Answering;
use crate::message::line::{digits, is, list, write_line};

/// The reason phrase of a backend's answer, where it is not the usual one.
#[derive(Debug, Clone)]
pub(super) struct Reason(pub(super) String);

/// The names of an answer's header lines in the case in which they were written.
#[derive(Debug, Clone)]
pub(super) struct WrittenNames(Vec<Box<str>>);

impl WrittenNames {
    pub(super) fn of(head: &ResponseHead<'_>) -> Self {
        Self(head.headers.iter().map(|line| line.name.into()).collect())
    }

    /// A name as its line with this number was written; as ours are where there was none.
    fn nth<'a>(&'a self, name: &'a HeaderName, number: usize) -> &'a [u8] {
        let is_it = |written: &&Box<str>| written.eq_ignore_ascii_case(name.as_str());
        self.0.iter().filter(is_it).nth(number).map_or(name.as_str(), |name| name).as_bytes()
    }
}

/// How the body of an answer is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFraming {
    /// A known number of bytes: all of them, or those that are left.
    Length(u64),
    Chunked,
    /// It ends with the connection.
    Close,
}

/// What is known of an answer's body beside its head.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyFacts {
    pub(super) is_empty: bool,
    /// Bytes of it, where that is known.
    pub(super) length: Option<u64>,
}

/// Writes a head. Returns how the body that follows is framed; the connection may have to end
/// behind it.
pub(super) fn write<'a>(
    out: &mut Vec<u8>,
    head: &'a Parts,
    body: BodyFacts,
    about: &mut Answering<'_>,
) -> AnswerFraming {
    status_line(out, head, about);
    let is_switch = head.status == StatusCode::SWITCHING_PROTOCOLS;
    let is_bare = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let can_body = !about.request_is_head && !is_bare && !is_switch;
    let says = head.headers.get(CONTENT_LENGTH).and_then(|length| digits(length.as_bytes()));
    let length = says.or(body.length);
    let framing = match (can_body && !body.is_empty, length) {
        (false, _) => AnswerFraming::Length(0),
        (true, Some(length)) => AnswerFraming::Length(length),
        (true, None) if about.is_old => AnswerFraming::Close,
        (true, None) => AnswerFraming::Chunked,
    };
    about.closes |= framing == AnswerFraming::Close;
    let names = head.extensions.get::<WrittenNames>();
    let written = |name: &'a HeaderName, number| match names {
        Some(names) => names.nth(name, number),
        None => name.as_str().as_bytes(),
    };
    let mut last = (None, 0);
    for (name, value) in &head.headers {
        last = if last.0 == Some(name) { (Some(name), last.1 + 1) } else { (Some(name), 0) };
        let is_ours = match *name {
            CONTENT_LENGTH | TRANSFER_ENCODING => true,
            CONNECTION if !is_switch => {
                about.closes |= list(value.as_bytes()).any(|one| is(one, "close"));
                true
            }
            TRAILER => !can_body || about.is_old,
            _ => false,
        };
        if !is_ours {
            write_line(out, written(name, last.1), value.as_bytes());
        }
    }
    match framing {
        AnswerFraming::Chunked => write_line(out, b"transfer-encoding", b"chunked"),
        AnswerFraming::Close => {}
        AnswerFraming::Length(_) if is_switch => {}
        AnswerFraming::Length(length) => {
            // To HEAD it is said how long the answer would be; without a body in any case, nothing.
            let said = match about.request_is_head {
                true => says.or(body.length.filter(|_| !body.is_empty)),
                false => can_body.then_some(length),
            };
            if let Some(length) = said {
                let name = written(&CONTENT_LENGTH, 0);
                write_line(out, name, HeaderValue::from(length).as_bytes());
            }
        }
    }
    if !is_switch {
        about.write_connection(framing != AnswerFraming::Close, out);
    }
    if !head.headers.contains_key(DATE) {
        write_line(out, b"date", about.date);
    }
    out.extend_from_slice(b"\r\n");
    framing
}

fn status_line(out: &mut Vec<u8>, head: &Parts, about: &Answering<'_>) {
    out.extend_from_slice(about.version());
    out.push(b' ');
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    let reason = match head.extensions.get::<Reason>() {
        Some(Reason(reason)) => reason,
        None => head.status.canonical_reason().unwrap_or("<none>"),
    };
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}
