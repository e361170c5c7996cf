//! One connection to a shadow: sends copy after copy, and reads no more than is wanted.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::SystemTime;

use bytes::Bytes;
use gake_core::record::{Fault, Phase};
use gake_wire::http1::{ResponseHead, Visitor};
use http::{Method, StatusCode};

use super::ledger::Category;
use super::outgoing::Outgoing;
use super::thread::Station;
use super::{Job, ShadowBackend, http2};
use crate::collect::Slot;
use crate::config::MarkerSecret;
use crate::exchange::BackendFailure;
use crate::hooks;
use crate::message::body::ShadowRequest;
use crate::message::head::RequestHead;
use crate::proxy::link::{Link, Scratch, is_stale};
use crate::proxy::stream::Stream;
use crate::proxy::watch::{Watch, before};
use crate::proxy::{edits, headers};

/// How often a connection is read in one turn: others wait for theirs.
const READS: usize = 16;

/// Takes copies for ever.
pub(super) async fn run(station: Rc<Station>) {
    let shared = Arc::clone(&station.shared);
    let backend = &shared.shadows[station.shadow];
    let watch = station.ticker.watch();
    let mut link = None;
    let time = station.ticker.ticks(backend.config.timeout);
    loop {
        let Job { mut request, mut ticket, mut slot } = station.next().await;
        ticket.turn();
        if backend.gate.is_killed() {
            ticket.end(Category::Killed);
            not_sent(slot, Category::Killed);
            continue;
        }
        if let Some(hooks) = &shared.hooks
            && hooks.munges(&backend.config.backend.name) != hooks::ChangeScope::No
        {
            let name = &backend.config.backend.name;
            match Box::pin(hooks::munge_whole(hooks, name, &request)).await {
                Some(changed) => request = unmarked(changed, backend),
                None => {
                    ticket.end(Category::MungeFailed);
                    not_sent(slot, Category::MungeFailed);
                    continue;
                }
            }
        }
        if let Some(slot) = &mut slot {
            slot.turn();
        }
        watch.set(time);
        let secret = shared.config.marker_secret.as_ref();
        let mut sending = Sending {
            backend,
            secret,
            watch: &watch,
            scratch: &station.scratch,
            limit: shared.config.limits.answer_body,
            slot: slot.as_deref_mut(),
        };
        let sent = if backend.target.backend.http2 {
            let now = station.ticker.now();
            Box::pin(http2::send(&mut sending, &request, &station.streams, now)).await
        } else {
            sending.send(&request, &mut link).await
        };
        match sent {
            Ok(Sent { status, bytes, cut }) => {
                ticket.answered(status, bytes);
                ticket.end(if cut { Category::Cut } else { Category::Ok });
                if let Some(slot) = slot {
                    slot.done(cut);
                }
            }
            Err(fault) => {
                let late = matches!(fault, Fault::Timeout(_) | Fault::ConnectTimeout);
                ticket.end(if late { Category::Timeout } else { Category::ConnErr });
                if let Some(slot) = slot {
                    slot.failed(BackendFailure::Fault(fault));
                }
            }
        }
        watch.clear();
    }
}

/// A request that a hook has changed, without a marker of the hook's own.
fn unmarked(request: Arc<ShadowRequest>, backend: &ShadowBackend) -> Arc<ShadowRequest> {
    match &backend.config.marker {
        Some((name, _)) if request.head.has(name.as_str()) => {
            let ShadowRequest { head, body } = &*request;
            let (head, body) = (head.without(name.as_str()), body.clone());
            Arc::new(ShadowRequest { head, body })
        }
        _ => request,
    }
}

fn not_sent(slot: Option<Box<Slot>>, category: Category) {
    if let Some(slot) = slot {
        slot.failed(BackendFailure::NotSent(category.name()));
    }
}

/// The answer to a copy.
pub(super) struct Sent {
    pub(super) status: u16,
    pub(super) bytes: u64,
    /// It went over the limit.
    pub(super) cut: bool,
}

/// What a copy is sent with.
pub(super) struct Sending<'a> {
    pub(super) backend: &'a ShadowBackend,
    secret: Option<&'a MarkerSecret>,
    pub(super) watch: &'a Watch,
    scratch: &'a Scratch,
    /// Bytes of an answer's body that are read, more or less.
    pub(super) limit: u64,
    pub(super) slot: Option<&'a mut Slot>,
}

impl Sending<'_> {
    /// One copy and its answer, on a new connection if the old one turns out to be closed. The
    /// connection is kept when it can be used again.
    async fn send(
        &mut self,
        request: &ShadowRequest,
        kept: &mut Option<Link>,
    ) -> Result<Sent, Fault> {
        loop {
            let mut link = match kept.take().and_then(Link::ready) {
                Some(link) => link,
                None => Box::pin(self.connect()).await?,
            };
            let stale = link.used;
            let mut outgoing = Outgoing::new(&self.head(request), &request.body);
            let method = request.head.method();
            link.start(*method == Method::HEAD);
            let mut answer = Answer { status: 0, bytes: 0, slot: self.slot.as_deref_mut() };
            let asking = ask(&mut link, &mut outgoing, &mut answer, self.scratch, self.limit);
            let asked = before(self.watch, asking).await;
            let Answer { status, bytes, .. } = answer;
            return match asked {
                None if status == 0 => Err(Fault::Timeout(Phase::FirstByte)),
                None => Err(Fault::Timeout(Phase::Body)),
                Some(Ok(Asked::Whole { reusable })) => {
                    *kept = Some(link).filter(|_| reusable);
                    Ok(Sent { status, bytes, cut: false })
                }
                // The connection goes with what it still has to say.
                Some(Ok(Asked::Cut)) => Ok(Sent { status, bytes, cut: true }),
                Some(Err(fault)) => {
                    let again = outgoing.is_untouched() || method.is_idempotent();
                    if stale && again && status == 0 && is_stale(fault) {
                        continue;
                    }
                    Err(fault)
                }
            };
        }
    }

    async fn connect(&mut self) -> Result<Link, Fault> {
        self.stream().await.map(Link::new)
    }

    /// A new stream to the shadow.
    pub(super) async fn stream(&mut self) -> Result<Stream, Fault> {
        let stream = before(self.watch, self.backend.target.connect())
            .await
            .ok_or(Fault::Timeout(Phase::Connect))??;
        if let Some(slot) = &mut self.slot {
            slot.connected();
        }
        Ok(stream)
    }

    /// The head of a copy as this shadow gets it, with what marks it as one.
    pub(super) fn head(&self, request: &ShadowRequest) -> RequestHead {
        let (head, target) = (&request.head, &self.backend.target);
        let Some((name, value)) = &self.backend.config.marker else {
            return edits::for_backend(head, target, &[]);
        };
        let signed = self
            .secret
            .map(|secret| secret.sign(value, SystemTime::now(), head.method(), head.target()));
        let marker = (name.as_str().as_bytes(), signed.as_ref().unwrap_or(value).as_bytes());
        edits::for_backend(head, target, &[marker])
    }
}

/// How an answer ended.
enum Asked {
    Whole {
        /// The connection can take another copy.
        reusable: bool,
    },
    /// It went over the limit.
    Cut,
}

/// Writes a copy, and reads its answer meanwhile.
async fn ask(
    link: &mut Link,
    outgoing: &mut Outgoing,
    answer: &mut Answer<'_>,
    scratch: &Scratch,
    limit: u64,
) -> Result<Asked, Fault> {
    let (mut is_written, mut broken) = (false, None);
    poll_fn(|cx| {
        if !is_written && broken.is_none() {
            match outgoing.poll(link, cx) {
                Poll::Ready(Ok(())) => is_written = true,
                // An answer may have come before.
                Poll::Ready(Err(fault)) => broken = Some(fault),
                Poll::Pending => {}
            }
        }
        for _ in 0..READS {
            match link.poll_read(cx, scratch, answer) {
                Poll::Ready(Ok(Some(response))) => {
                    let reusable = response.reusable() && is_written;
                    let cut = answer.bytes > limit;
                    let asked = if cut { Asked::Cut } else { Asked::Whole { reusable } };
                    return Poll::Ready(Ok(asked));
                }
                Poll::Ready(Ok(None)) if answer.bytes > limit => {
                    return Poll::Ready(Ok(Asked::Cut));
                }
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(broken.unwrap_or(fault))),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Takes note of an answer as it comes.
struct Answer<'a> {
    /// 0 before the head.
    status: u16,
    bytes: u64,
    slot: Option<&'a mut Slot>,
}

impl Visitor for Answer<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        if let Some(slot) = &mut self.slot
            && let Ok(status) = StatusCode::from_u16(head.status)
        {
            slot.head(status, &headers::of_answer(head));
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(slot) = &mut self.slot {
            slot.piece(&Bytes::copy_from_slice(bytes));
        }
    }
}
