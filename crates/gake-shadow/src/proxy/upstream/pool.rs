//! One thread's idle connections to one backend.

use std::cell::RefCell;
use std::sync::Arc;

use crate::proxy::http2::shared_streams::SharedStreams;
use crate::proxy::upstream::link::BackendLink;
use crate::proxy::upstream::target::BackendTarget;

pub(crate) struct BackendPool {
    pub(crate) target: Arc<BackendTarget>,
    links: RefCell<Vec<BackendLink>>,
    /// Connections, if the backend speaks HTTP/2.
    pub(crate) streams: SharedStreams,
    most: usize,
    /// Ticks after which an idle connection is discarded.
    keep: u64,
}

impl BackendPool {
    pub(crate) fn new(target: Arc<BackendTarget>, most: usize, keep: u64) -> Self {
        Self { target, links: RefCell::default(), streams: SharedStreams::new(keep), most, keep }
    }

    /// The most recently used connection, which is the most likely to be open.
    pub(crate) fn take_link(&self, now: u64) -> Option<BackendLink> {
        loop {
            let link = self.links.borrow_mut().pop()?;
            if now.saturating_sub(link.since) <= self.keep
                && let Some(link) = link.ready()
            {
                return Some(link);
            }
        }
    }

    pub(crate) fn keep_link(&self, mut link: BackendLink, now: u64) {
        link.since = now;
        let mut links = self.links.borrow_mut();
        if links.len() < self.most {
            links.push(link);
        }
    }
}
