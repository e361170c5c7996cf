//! A response, before it becomes a JavaScript object.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::record::Exchange;
use gake_wire::{TlsFacts, TlsVersion, coding};

use super::headers::HeaderList;
use super::script_request::{BodyKind, ScriptRequest};
use crate::bodies::ResponseBody;

/// Maximum bytes of a decoded body, against decompression bombs.
const DECODED_MAX: u64 = 256 << 20;

/// The phases of a request in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Timings {
    pub(super) blocked: Nanos,
    pub(super) connecting: Nanos,
    pub(super) tls: Nanos,
    pub(super) sending: Nanos,
    pub(super) waiting: Nanos,
    pub(super) receiving: Nanos,
}

/// Instants of a request that its exchange lacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestInstants {
    /// When it began to wait for a connection.
    pub(super) asked: Nanos,
    /// When it was completely sent, if known.
    pub(super) sent: Option<Nanos>,
    /// When its response was completely received.
    pub(super) received: Nanos,
}

impl Timings {
    pub(super) fn of(exchange: &Exchange, instants: RequestInstants) -> Self {
        let RequestInstants { asked, sent, received } = instants;
        let has_connection = exchange.bytes_out > 0;
        let sent = sent.unwrap_or(exchange.write);
        let (waiting, receiving) = match exchange.first_byte {
            Some(first) => (first.saturating_sub(sent), received.saturating_sub(first)),
            None if has_connection => (exchange.done.saturating_sub(sent), 0),
            None => (0, 0),
        };
        Self {
            // As in k6 it includes opening the connection.
            blocked: if has_connection { exchange.write.saturating_sub(asked) } else { 0 },
            connecting: exchange.connect.unwrap_or(0),
            tls: exchange.tls.unwrap_or(0),
            sending: if has_connection { sent.saturating_sub(exchange.write) } else { 0 },
            waiting,
            receiving,
        }
    }

    pub(super) fn duration(&self) -> Nanos {
        self.sending + self.waiting + self.receiving
    }
}

/// A response, or why there is none.
#[derive(Debug)]
pub(crate) struct ResponseFacts {
    /// The URL of the first request.
    pub(super) asked: Rc<str>,
    /// The URL of the last request, after redirects.
    pub(super) url: Rc<str>,
    /// 0 without a response.
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) proto: &'static str,
    pub(super) headers: HeaderList,
    pub(super) body: Option<ResponseBody>,
    pub(super) kind: BodyKind,
    pub(super) timings: Timings,
    pub(super) tls: Option<TlsFacts>,
    /// The error that scripts see.
    pub(super) error: String,
    /// The full error of Go, for the log.
    pub(super) cause: String,
    pub(super) error_code: u32,
    /// The method of the last request.
    pub(super) method: Cow<'static, str>,
    /// The method of the first request, which scripts see even after redirects.
    pub(super) asked_method: Cow<'static, str>,
    pub(super) sent_headers: Rc<Vec<(String, String)>>,
    pub(super) sent_body: Option<Arc<[u8]>>,
    /// Whether its status is expected, where the authentication decides that.
    pub(super) expected: Option<bool>,
    pub(super) peer: Option<SocketAddr>,
    /// Whether the arguments made a request.
    pub(super) is_made: bool,
}

impl ResponseFacts {
    /// A request without a response.
    pub(super) fn failed(request: &ScriptRequest, error_code: u32, error: String) -> Self {
        Self {
            kind: request.kind,
            sent_headers: Rc::clone(&request.headers),
            sent_body: request.body.clone(),
            error_code,
            ..Self::refused(request.method.clone(), Rc::clone(&request.url), error)
        }
    }

    /// Arguments that make no request.
    pub(super) fn refused(method: Cow<'static, str>, url: Rc<str>, error: String) -> Self {
        Self {
            asked: Rc::clone(&url),
            url,
            status: 0,
            reason: String::new(),
            proto: "",
            headers: HeaderList::default(),
            body: None,
            kind: BodyKind::Text,
            timings: Timings::default(),
            tls: None,
            cause: error.clone(),
            error,
            error_code: 1000,
            asked_method: method.clone(),
            method,
            sent_headers: Rc::default(),
            sent_body: None,
            expected: None,
            peer: None,
            is_made: true,
        }
    }

    /// Decodes the body; on an error there is no response.
    pub(super) fn decode(&mut self) {
        let Some(encoding) = self.header("content-encoding").map(str::to_owned) else { return };
        let Some(body) = self.body.as_mut().filter(|body| !body.is_empty()) else { return };
        match coding::decoded(&body.take(), &encoding, DECODED_MAX) {
            Ok(plain) => body.put(plain),
            Err(why) => {
                self.error = format!("error decompressing response body ({why})");
                (self.error_code, self.status) = (1701, 0);
            }
        }
    }

    /// Makes it a failure if its body did not fit within the bound; returns whether it did so.
    pub(super) fn refuse_body(&mut self) -> bool {
        let Some(body) = self.body.take_if(|body| body.is_refused()) else { return false };
        self.error = body.refusal();
        (self.error_code, self.status) = (1000, 0);
        true
    }

    /// The TLS version in k6's words.
    pub(super) fn tls_version(&self) -> Option<&'static str> {
        self.tls.map(|tls| match tls.version {
            TlsVersion::Tls12 => "tls1.2",
            TlsVersion::Tls13 => "tls1.3",
        })
    }

    /// The value of the first header of a name, ignoring case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(found.1)
    }
}
