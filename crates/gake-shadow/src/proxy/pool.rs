//! Idle connections of one thread to one backend.

use std::cell::RefCell;
use std::sync::Arc;

use super::link::Link;
use super::send_body::SendBody;
use super::shared_streams::SharedStreams;
use super::target::Target;
use super::upstream::Upstream;

/// A backend and the connections to it that nobody uses.
pub(crate) struct Pool {
    pub(crate) target: Arc<Target>,
    idle: RefCell<Vec<Upstream>>,
    /// Those of plain requests.
    links: RefCell<Vec<Link>>,
    /// Those of a backend that speaks HTTP/2.
    pub(crate) streams: SharedStreams<SendBody>,
    most: usize,
    /// Ticks after which an idle connection is not trusted any more.
    keep: u64,
}

impl Pool {
    pub(crate) fn new(target: Arc<Target>, most: usize, keep: u64) -> Self {
        let streams = SharedStreams::new(keep);
        Self { target, idle: RefCell::default(), links: RefCell::default(), streams, most, keep }
    }

    /// The connection that was used last, which is the likeliest to be open still.
    pub(crate) fn take(&self, now: u64) -> Option<Upstream> {
        if self.target.backend.http2 {
            return self.streams.take(now).map(Upstream::shared);
        }
        loop {
            let upstream = self.idle.borrow_mut().pop()?;
            if now.saturating_sub(upstream.since) <= self.keep
                && let Some(upstream) = upstream.ready()
            {
                return Some(upstream);
            }
        }
    }

    /// Keeps a connection for the next request, if it can take one.
    pub(crate) fn give_back(&self, upstream: Upstream, now: u64) {
        if let Some(mut upstream) = upstream.ready() {
            upstream.since = now;
            let mut idle = self.idle.borrow_mut();
            if idle.len() + self.links.borrow().len() < self.most {
                idle.push(upstream);
            }
        }
    }

    /// The same for a plain request.
    pub(crate) fn take_link(&self, now: u64) -> Option<Link> {
        loop {
            let link = self.links.borrow_mut().pop()?;
            if now.saturating_sub(link.since) <= self.keep
                && let Some(link) = link.ready()
            {
                return Some(link);
            }
        }
    }

    /// Keeps a connection for the next plain request.
    pub(crate) fn keep_link(&self, mut link: Link, now: u64) {
        link.since = now;
        let mut links = self.links.borrow_mut();
        if links.len() + self.idle.borrow().len() < self.most {
            links.push(link);
        }
    }
}
