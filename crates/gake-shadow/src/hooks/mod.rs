//! Hooks: a program's say in who gets a request, what they get, and what came of it.
//!
//! No hook runs on a thread that serves clients. What must be known before a request goes on
//! (selection, changes) is asked of threads kept for hooks, with a limit on how long a hook runs
//! and another on how long a request waits for a thread. When one is passed, when the hook fails
//! or panics, the default applies and is counted: the master alone is selected (or everybody,
//! where that was asked for), the master gets the request as it came, and a shadow whose copy was
//! to be changed gets none. A hook that never answers in time is not even asked for a while.

mod runner;
mod set;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};

pub use runner::HookCounts;
pub(crate) use runner::{HookLimits, Runner};
pub use set::HookSet;

use crate::exchange::MirroredExchange;
use crate::mirror::copy::Copy;

/// Why a hook could not do its part.
pub type HookError = Box<dyn Error + Send + Sync>;

/// The error of hooks that keep their own time; it is counted as their limit is.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("it took too long")]
pub struct TookTooLong;

/// What is known of a request before its body.
#[derive(Debug, Clone)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// Path and query, as they came.
    pub uri: Uri,
    /// The headers, without the hop-by-hop ones.
    pub headers: HeaderMap,
    /// Who sent it.
    pub client: SocketAddr,
}

/// Who gets a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// The master, and the shadows as their policy and percentage say.
    #[default]
    All,
    /// These. With the master among them it answers; shadows alone race for the client; nobody,
    /// or nobody who may have it, is a 421. Names that no backend has are left out and counted.
    Names(Vec<String>),
    /// Everybody, and the first to answer answers the client.
    Race,
}

/// Who gets a request when the hook that selects fails or takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelectFailure {
    /// The master alone: what the hook would have kept from a shadow is not copied to it.
    #[default]
    Master,
    /// Everybody, as [`Selection::All`].
    All,
}

/// A request that a hook may change.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The headers. Length and transfer encoding are set by the proxy.
    pub headers: HeaderMap,
    /// The body, for backends for which [`Hooks::munges`] says [`ChangeScope::Body`]; else `None`, and
    /// the body stays what it is.
    pub body: Option<Bytes>,
}

/// What of a backend's requests is changed by hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ChangeScope {
    /// Nothing.
    #[default]
    No,
    /// Method, target and headers.
    Head,
    /// The body too. The master's requests are then read whole before they are sent; a body over
    /// the limit is a 413.
    Body,
}

/// What a program adds. Every method has a default that does nothing.
///
/// The methods block: they are called on threads kept for hooks, several at once. An
/// implementation that is bound to one thread passes what it is asked to it and waits.
pub trait Hooks: Send + Sync + 'static {
    /// Whether [`select`](Self::select) is to be asked. Asked once, at the start.
    fn selects(&self) -> bool {
        false
    }

    /// Who gets the request.
    ///
    /// # Errors
    /// The master alone gets it then, unless [`SelectFailure::All`] was asked for.
    fn select(&self, _request: &RequestHead) -> Result<Selection, HookError> {
        Ok(Selection::All)
    }

    /// What of a backend's requests is changed. Asked once for each backend, at the start.
    fn munges(&self, _backend: &str) -> ChangeScope {
        ChangeScope::No
    }

    /// Changes a request on its way to a backend. Each backend has its own.
    ///
    /// # Errors
    /// The master gets it unchanged then, a shadow does not get it.
    fn munge(&self, _backend: &str, _request: &mut Request) -> Result<(), HookError> {
        Ok(())
    }

    /// Whether [`finished`](Self::finished) is to be told. Asked once, at the start.
    fn finishes(&self) -> bool {
        false
    }

    /// What came of a request at every backend, once all are done with it. Those that find the
    /// queue full are dropped and counted.
    ///
    /// # Errors
    /// It is counted.
    fn finished(&self, _exchange: &MirroredExchange) -> Result<(), HookError> {
        Ok(())
    }
}

/// The copy as a hook wants it for a backend; `None` when the hook did not do its part.
pub(crate) async fn munge_copy(
    hooks: &Arc<Runner>,
    backend: &Arc<str>,
    copy: &Arc<Copy>,
) -> Option<Arc<Copy>> {
    let with_body = hooks.munges(backend) == ChangeScope::Body;
    let request = Request {
        method: copy.method.clone(),
        uri: copy.uri.clone(),
        headers: copy.headers.clone(),
        body: with_body.then(|| copy.body.bytes()),
    };
    let changed = hooks.munge(backend, request).await?;
    let mut body = copy.body.clone();
    if let Some(bytes) = changed.body {
        body.replace(bytes);
    }
    let headers = framed(changed.headers, &body);
    Some(Arc::new(Copy { method: changed.method, uri: origin_form(changed.uri), headers, body }))
}

/// Headers whose framing says what the body is.
pub(crate) fn framed(mut headers: HeaderMap, body: &crate::mirror::copy::Kept) -> HeaderMap {
    crate::proxy::headers::strip_hop_by_hop(&mut headers);
    headers.remove(http::header::CONTENT_LENGTH);
    headers.remove(http::header::TRANSFER_ENCODING);
    if body.chunked {
        headers.insert(http::header::TRANSFER_ENCODING, http::HeaderValue::from_static("chunked"));
    } else if body.len > 0 {
        headers.insert(http::header::CONTENT_LENGTH, body.len.into());
    }
    headers
}

/// A target without scheme and host, which a hook may have added.
pub(crate) fn origin_form(uri: Uri) -> Uri {
    match uri.into_parts().path_and_query {
        // An empty path calls itself "/", but writes nothing.
        Some(path) if path.as_str() != "/" => Uri::from(path),
        _ => Uri::from_static("/"),
    }
}
