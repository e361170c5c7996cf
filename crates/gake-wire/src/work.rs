//! What one lane fires: one HTTP request, and those that its redirects lead to.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{End, Exchange};
use gake_core::work::{Ended, Exhausted, Iteration, Work};

use crate::client::Client;
use crate::deadline::Deadline;
use crate::feed::Feed;
use crate::kept::KeepVisitor;
use crate::wire::{Labelled, Wire};

/// What the works of one worker share.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) wire: Arc<Wire>,
    /// Responses still to be kept.
    pub(crate) keep: Cell<u64>,
}

/// Sends requests for one lane.
#[derive(Debug)]
pub struct HttpWork<C> {
    load: Rc<Load>,
    client: Client<C>,
    /// What is known of the request under way.
    exchange: Exchange,
    /// Whether one is under way.
    is_fired: bool,
}

impl<C: Clock + Clone + 'static> HttpWork<C> {
    pub(crate) fn new(load: Rc<Load>, client: Client<C>) -> Self {
        Self { load, client, exchange: Exchange::unfinished(0), is_fired: false }
    }

    /// Sends the request with this number at `now` and says what came of it; `None` when there is
    /// no more to send. When its future is dropped before the end, [`HttpWork::interrupt`] says what
    /// is known.
    pub async fn send(&mut self, number: u64, now: Nanos) -> Option<Exchange> {
        let load = Rc::clone(&self.load);
        self.is_fired = true;
        self.exchange = Exchange::unfinished(now);
        match &load.wire.network.settings.feed {
            None => self.exchange(load.wire.request(number), now).await,
            Some(feed) => Box::pin(self.send_made(feed.as_ref(), number)).await?,
        }
        self.is_fired = false;
        Some(self.take_exchange())
    }

    /// Sends a request that is made now; `None` when there are no more.
    async fn send_made(&mut self, feed: &dyn Feed, number: u64) -> Option<()> {
        let load = Rc::clone(&self.load);
        match load.wire.make(feed, number).await {
            Ok(Some(request)) => {
                let now = self.client.clock().now();
                self.exchange(&request, now).await;
            }
            Ok(None) => {
                self.is_fired = false;
                return None;
            }
            Err(fault) => self.client.end(&mut self.exchange, End::Fault(fault)),
        }
        Some(())
    }

    #[inline]
    async fn exchange(&mut self, request: &Labelled, now: Nanos) {
        let settings = &self.load.wire.network.settings;
        let deadline = Deadline::after(now, &settings.timeouts);
        let mut visitor = KeepVisitor::new(self.load.keep());
        self.exchange.label = request.label;
        let Self { client, exchange, .. } = self;
        client.exchange(&request.request, now, deadline, &mut visitor, exchange).await;
        exchange.kept = visitor.take();
    }

    /// What is known of a request whose future was dropped before its end.
    pub fn interrupt(&mut self) -> Exchange {
        // A future that was never polled has not even begun.
        if !std::mem::take(&mut self.is_fired) {
            return Exchange::unfinished(self.client.clock().now());
        }
        self.client.end(&mut self.exchange, End::Unfinished);
        self.take_exchange()
    }

    #[inline]
    fn take_exchange(&mut self) -> Exchange {
        std::mem::replace(&mut self.exchange, Exchange::unfinished(0))
    }
}

impl<C: Clock + Clone + 'static> Work for HttpWork<C> {
    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<Ended, Exhausted> {
        let exchange =
            self.send(iteration.arrival.number, iteration.fired).await.ok_or(Exhausted)?;
        let ended = match exchange.end {
            End::Fault(fault) => Ended::failed(exchange.done, fault),
            End::Answered(_) | End::Unfinished => Ended::finished(exchange.done),
        };
        iteration.exchange(exchange);
        Ok(ended)
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> Ended {
        let exchange = self.interrupt();
        let ended = Ended::interrupted(exchange.done);
        iteration.exchange(exchange);
        ended
    }
}

impl Load {
    /// How many bytes of the next response's body to keep, when it is to be kept.
    #[inline]
    fn keep(&self) -> Option<usize> {
        let left = self.keep.get().checked_sub(1)?;
        self.keep.set(left);
        self.wire.network.settings.keep.map(|keep| keep.body_bytes)
    }
}
