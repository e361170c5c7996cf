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
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};

pub use runner::HookCounts;
pub(crate) use runner::{HookLimits, HookRunner};
pub use set::HookSet;

use crate::exchange::MirroredExchange;
use crate::message::body::ShadowRequest;
use crate::message::head::RequestHead;

/// Why a hook could not do its part.
pub type HookError = Box<dyn Error + Send + Sync>;

/// The error of hooks that keep their own time; it is counted as their limit is.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("it took too long")]
pub struct HookTimeout;

/// A script with hooks, and how it runs.
#[derive(Debug, Clone)]
pub struct HookScript {
    /// The module, which exports one of `selectBackends`, `mungeRequest` and `backendsFinished`.
    pub path: PathBuf,
    /// Threads for the hooks that clients wait for, each with its own variables.
    pub threads: usize,
    /// How long such a hook may run for a request.
    pub limit: Duration,
    /// How long a request may wait for a thread.
    pub wait: Duration,
    /// Who gets a request when `selectBackends` fails or takes too long.
    pub on_select_failure: SelectFailure,
}

/// What is known of a request before its body.
#[derive(Debug, Clone)]
pub struct HookRequestHead {
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
pub struct HookRequest {
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
    fn select(&self, _request: &HookRequestHead) -> Result<Selection, HookError> {
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
    fn munge(&self, _backend: &str, _request: &mut HookRequest) -> Result<(), HookError> {
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

impl HookRequest {
    /// A request as hooks are asked to change it.
    pub(crate) fn of(head: &RequestHead, body: Option<Bytes>) -> Self {
        let (method, uri, headers) = (head.method().clone(), head.uri(), head.map());
        Self { method, uri, headers, body }
    }
}

/// The request as a hook wants it for a backend; `None` when the hook did not do its part.
pub(crate) async fn munge_whole(
    hooks: &Arc<HookRunner>,
    backend: &Arc<str>,
    request: &ShadowRequest,
) -> Option<Arc<ShadowRequest>> {
    let with_body = hooks.munges(backend) == ChangeScope::Body;
    let asked = HookRequest::of(&request.head, with_body.then(|| request.body.bytes()));
    let HookRequest { method, uri, headers, body: bytes } = hooks.munge(backend, asked).await?;
    let mut body = request.body.clone();
    if let Some(bytes) = bytes {
        body.replace(bytes);
    }
    let head = request.head.changed(&method, &uri, &headers, body.framing());
    Some(Arc::new(ShadowRequest { head, body }))
}

/// The head as a hook wants it for a backend, in front of the same body; `None` when the hook did
/// not do its part.
pub(crate) async fn munge_head(
    hooks: &Arc<HookRunner>,
    backend: &Arc<str>,
    head: &RequestHead,
) -> Option<RequestHead> {
    let HookRequest { method, uri, headers, .. } =
        hooks.munge(backend, HookRequest::of(head, None)).await?;
    Some(head.changed(&method, &uri, &headers, head.framing()))
}
