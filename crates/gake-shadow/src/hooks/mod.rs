//! Hooks let a program select the backends of a request, change requests, and see the outcomes.
//!
//! Hooks run on their own threads, never on one that serves clients. Selection and changes, which a
//! request waits for, have a limit on the hook's run time and one on the wait for a free thread.
//! When a limit is exceeded, or the hook fails or panics, the default applies and the failure is
//! counted: only the master is selected (see [`SelectFailure`]), the master gets the request
//! unchanged, a shadow gets no copy. After repeated timeouts a circuit breaker skips the hook.

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

use crate::exchange::{MirroredExchange, RequestIds};
use crate::message::body::ShadowRequest;
use crate::message::head::RequestHead;

/// The error of a hook.
pub type HookError = Box<dyn Error + Send + Sync>;

/// The error of hooks that enforce their own time limit; it is counted as a timeout.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("it took too long")]
pub struct HookTimeout;

/// A JavaScript module with hooks, and its limits.
#[derive(Debug, Clone)]
pub struct HookScript {
    /// The module, which exports at least one of `selectBackends`, `mungeRequest` and
    /// `backendsFinished`.
    pub path: PathBuf,
    /// Threads for the hooks that clients wait for, each with its own module instance.
    pub threads: usize,
    /// Time limit of such a hook per request.
    pub limit: Duration,
    /// Time limit of a request's wait for a thread.
    pub wait: Duration,
    /// The selection when `selectBackends` fails or times out.
    pub on_select_failure: SelectFailure,
}

/// A request's head, as hooks select backends by it.
#[derive(Debug, Clone)]
pub struct HookRequestHead {
    /// The method.
    pub method: Method,
    /// Path and query, as received.
    pub uri: Uri,
    /// The headers, without hop-by-hop ones.
    pub headers: HeaderMap,
    /// The client's address.
    pub client: SocketAddr,
    /// The numbers of the request.
    pub ids: RequestIds,
}

/// The backends that get a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// The master, and the shadows by their policy and percentage.
    #[default]
    All,
    /// The backends of these names. Without the master among them, the shadows race to respond;
    /// an empty selection is a 421. Unknown names are ignored and counted.
    Names(Vec<String>),
    /// All backends; the first response goes to the client.
    Race,
}

/// The selection when the hook fails or times out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelectFailure {
    /// Only the master, so that nothing is copied that the hook might have withheld.
    #[default]
    Master,
    /// As [`Selection::All`].
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
    /// The body if [`Hooks::munges`] returns [`ChangeScope::Body`] for the backend; otherwise `None`,
    /// and the body is unchanged.
    pub body: Option<Bytes>,
    /// The numbers of the request, the same for every backend. Changes have no effect.
    pub ids: RequestIds,
}

/// What hooks change in a backend's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ChangeScope {
    /// Nothing.
    #[default]
    No,
    /// Method, target and headers.
    Head,
    /// The body too. The master's requests are then buffered before they are sent; a body over the
    /// limit is a 413.
    Body,
}

/// A program's hooks. The default methods do nothing.
///
/// The methods may block; they are called concurrently on the hook threads. An implementation
/// bound to one thread forwards the calls to it and waits.
pub trait Hooks: Send + Sync + 'static {
    /// Whether to call [`select`](Self::select). Called once, at the start.
    fn selects(&self) -> bool {
        false
    }

    /// Selects the backends of a request.
    ///
    /// # Errors
    /// [`SelectFailure`] applies.
    fn select(&self, _request: &HookRequestHead) -> Result<Selection, HookError> {
        Ok(Selection::All)
    }

    /// What [`munge`](Self::munge) changes in a backend's requests. Called once per backend, at the
    /// start.
    fn munges(&self, _backend: &str) -> ChangeScope {
        ChangeScope::No
    }

    /// Changes a backend's copy of a request.
    ///
    /// # Errors
    /// The master gets the request unchanged, a shadow does not get it.
    fn munge(&self, _backend: &str, _request: &mut HookRequest) -> Result<(), HookError> {
        Ok(())
    }

    /// Whether to call [`finished`](Self::finished). Called once, at the start.
    fn finishes(&self) -> bool {
        false
    }

    /// Receives the outcomes of a request when all backends have finished. Exchanges that do not fit
    /// into the queue are dropped and counted.
    ///
    /// # Errors
    /// The failure is counted.
    fn finished(&self, _exchange: &MirroredExchange) -> Result<(), HookError> {
        Ok(())
    }
}

impl HookRequest {
    pub(crate) fn of(head: &RequestHead, body: Option<Bytes>) -> Self {
        let (method, uri, headers) = (head.method().clone(), head.uri(), head.map());
        Self { method, uri, headers, body, ids: head.ids }
    }
}

/// The request as changed by a hook for a backend; `None` if the hook failed.
pub(crate) async fn munge_whole(
    hooks: &Arc<HookRunner>,
    backend: &Arc<str>,
    request: &ShadowRequest,
) -> Option<Arc<ShadowRequest>> {
    let with_body = hooks.munges(backend) == ChangeScope::Body;
    let request_copy = HookRequest::of(&request.head, with_body.then(|| request.body.bytes()));
    let HookRequest { method, uri, headers, body: bytes, .. } =
        hooks.munge(backend, request_copy).await?;
    let mut body = request.body.clone();
    if let Some(bytes) = bytes {
        body.replace(bytes);
    }
    let head = request.head.changed(&method, &uri, &headers, body.framing());
    Some(Arc::new(ShadowRequest { head, body }))
}

/// Like [`munge_whole`], with the body unchanged.
pub(crate) async fn munge_head(
    hooks: &Arc<HookRunner>,
    backend: &Arc<str>,
    head: &RequestHead,
) -> Option<RequestHead> {
    let HookRequest { method, uri, headers, .. } =
        hooks.munge(backend, HookRequest::of(head, None)).await?;
    Some(head.changed(&method, &uri, &headers, head.framing()))
}
