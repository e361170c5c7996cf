//! One connection to a shadow: sends copy after copy, and reads no more than is wanted.

use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use gake_core::record::{Fault, Phase};
use http::Request;

use super::copy::{Copy, CopyBody};
use super::ledger::Category;
use super::thread::Station;
use super::{Job, Shade};
use crate::collect::Slot;
use crate::config::MarkerSecret;
use crate::exchange::Failure;
use crate::hooks;
use crate::proxy::fault;
use crate::proxy::headers;
use crate::proxy::send_body::SendBody;
use crate::proxy::upstream::{Unanswered, Upstream, poll_body};
use crate::proxy::watch::{Watch, before};

/// Takes copies for ever.
pub(super) async fn run(station: Rc<Station>) {
    let shared = Arc::clone(&station.shared);
    let shade = &shared.shadows[station.shadow];
    let watch = station.ticker.watch();
    let mut upstream = None;
    let time = station.ticker.ticks(shade.config.timeout);
    loop {
        let Job { copy, mut ticket, mut slot } = station.next().await;
        ticket.turn();
        if shade.gate.is_killed() {
            ticket.end(Category::Killed);
            not_sent(slot, Category::Killed);
            continue;
        }
        let copy = match &shared.hooks {
            Some(hooks) if hooks.munges(&shade.config.backend.name) != hooks::Munge::No => {
                match Box::pin(hooks::munge_copy(hooks, &shade.config.backend.name, &copy)).await {
                    Some(copy) => copy,
                    None => {
                        ticket.end(Category::MungeFailed);
                        not_sent(slot, Category::MungeFailed);
                        continue;
                    }
                }
            }
            _ => copy,
        };
        if let Some(slot) = &mut slot {
            slot.turn();
        }
        watch.set(time);
        let secret = shared.config.marker_secret.as_ref();
        let mut sending = Sending { shade, secret, watch: &watch, slot: slot.as_deref_mut() };
        match sending.send(&copy, &mut upstream, shared.config.limits.answer_body).await {
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
                    slot.failed(Failure::Fault(fault));
                }
            }
        }
        watch.clear();
    }
}

fn not_sent(slot: Option<Box<Slot>>, category: Category) {
    if let Some(slot) = slot {
        slot.failed(Failure::NotSent(category.name()));
    }
}

struct Sent {
    status: u16,
    bytes: u64,
    cut: bool,
}

struct Sending<'a> {
    shade: &'a Shade,
    secret: Option<&'a MarkerSecret>,
    watch: &'a Watch,
    slot: Option<&'a mut Slot>,
}

impl Sending<'_> {
    /// One copy and its answer. The connection is kept when it can be used again.
    async fn send(
        &mut self,
        copy: &Arc<Copy>,
        kept: &mut Option<Upstream>,
        limit: u64,
    ) -> Result<Sent, Fault> {
        let (mut upstream, answer) = self.ask(copy, kept).await?;
        let (head, mut body) = answer.into_parts();
        if let Some(slot) = &mut self.slot {
            let mut kept = head.headers.clone();
            headers::strip_answer(&mut kept);
            slot.head(head.status, &kept);
        }
        let mut bytes = 0;
        loop {
            let next = std::future::poll_fn(|cx| poll_body(&mut body, &mut upstream, cx));
            let frame = before(self.watch, next)
                .await
                .ok_or(Fault::Timeout(Phase::Body))?
                .transpose()
                .map_err(|error| fault::of(&error, Phase::Body))?;
            let Some(frame) = frame else { break };
            let Some(piece) = frame.data_ref() else { continue };
            bytes += piece.len() as u64;
            if let Some(slot) = &mut self.slot {
                slot.piece(piece);
            }
            if bytes > limit {
                // The connection goes with what it still has to say.
                return Ok(Sent { status: head.status.as_u16(), bytes, cut: true });
            }
        }
        *kept = upstream.ready();
        Ok(Sent { status: head.status.as_u16(), bytes, cut: false })
    }

    /// Sends the request, on a new connection if the old one turns out to be closed.
    async fn ask(
        &mut self,
        copy: &Arc<Copy>,
        kept: &mut Option<Upstream>,
    ) -> Result<(Upstream, http::Response<hyper::body::Incoming>), Fault> {
        loop {
            let mut upstream = match kept.take().and_then(Upstream::ready) {
                Some(upstream) => upstream,
                None => Box::pin(self.connect()).await?,
            };
            let stale = upstream.used;
            match upstream.ask(self.request(copy), self.watch).await {
                Ok(answer) => return Ok((upstream, answer)),
                Err(Unanswered::Timeout) => return Err(Fault::Timeout(Phase::FirstByte)),
                Err(Unanswered::Error(error)) => {
                    let again = error.message().is_some() || copy.method.is_idempotent();
                    let fault = fault::of(error.error(), Phase::FirstByte);
                    let closed =
                        matches!(fault, Fault::ClosedEarly(_) | Fault::Reset | Fault::Write);
                    if !(stale && again && closed) {
                        return Err(fault);
                    }
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<Upstream, Fault> {
        let stream = before(self.watch, self.shade.target.connect())
            .await
            .ok_or(Fault::Timeout(Phase::Connect))??;
        if let Some(slot) = &mut self.slot {
            slot.connected();
        }
        Upstream::new(stream).await.map_err(|error| fault::of(&error, Phase::Connect))
    }

    fn request(&self, copy: &Arc<Copy>) -> Request<SendBody> {
        let mut request = Request::new(SendBody::Copy(CopyBody::new(Arc::clone(copy))));
        *request.method_mut() = copy.method.clone();
        *request.uri_mut() = copy.uri.clone();
        *request.headers_mut() = copy.headers.clone();
        headers::for_backend(request.headers_mut(), &self.shade.target);
        if let Some((name, value)) = &self.shade.config.marker {
            let value = match self.secret {
                Some(secret) => {
                    let target = copy.uri.path_and_query().map_or("/", |target| target.as_str());
                    secret.sign(value, SystemTime::now(), &copy.method, target)
                }
                None => value.clone(),
            };
            request.headers_mut().insert(name.clone(), value);
        }
        request
    }
}
