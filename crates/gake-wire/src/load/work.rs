//! What one lane fires: one HTTP request, and those that its redirects lead to.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, ExchangeEnd};
use gake_core::work::{Exhausted, Iteration, IterationEnd, Work};

use crate::client::Client;
use crate::client::kept::KeepVisitor;
use crate::load::feed::Feed;
use crate::load::inspect::{Inspector, WorkVisitor, Wrong};
use crate::load::parts::{PartSeries, PartsVisitor};
use crate::load::trace::{OpenSpan, WorkerTracer};
use crate::load::wire::{Labelled, Wire};
use crate::net::deadline::Deadline;

/// What the works of one worker share.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) wire: Arc<Wire>,
    /// Responses still to be kept.
    pub(crate) keep: Cell<u64>,
    /// The series of the parts of answers, once they are known.
    pub(crate) parts: Cell<Option<PartSeries>>,
    /// Samples requests, when some are traced.
    pub(crate) tracer: Option<WorkerTracer>,
}

/// Sends requests for one lane.
#[derive(Debug)]
pub struct HttpWork<C> {
    load: Rc<Load>,
    client: Client<C>,
    /// What is seen of the answer, when it is looked at.
    inspector: Option<Inspector>,
    /// What is known of the request under way.
    exchange: Exchange,
    /// Its trace, when it is sampled.
    span: Option<Box<OpenSpan>>,
    /// Whether one is under way.
    is_fired: bool,
}

impl<C: Clock + Clone + 'static> HttpWork<C> {
    pub(crate) fn new(load: Rc<Load>, client: Client<C>) -> Self {
        let inspector = load.wire.network.settings.inspect.clone().map(Inspector::new);
        let exchange = Exchange::unfinished(0);
        Self { load, client, inspector, exchange, span: None, is_fired: false }
    }

    /// Sends the request with this number at `now` and returns its exchange; `None` when there is
    /// no more to send. When its future is dropped before the end, [`HttpWork::interrupt`] says what
    /// is known.
    pub async fn send(&mut self, number: u64, now: Nanos) -> Option<Exchange> {
        self.run(number, now, None).await.ok()?;
        Some(self.take_exchange())
    }

    /// The same, leaving in `self.exchange` what came of it.
    async fn run(
        &mut self,
        number: u64,
        now: Nanos,
        iteration: Option<&Iteration<'_>>,
    ) -> Result<(), Exhausted> {
        self.is_fired = true;
        self.exchange = Exchange::unfinished(now);
        let Self { load, client, inspector, exchange, span, .. } = self;
        let whole = iteration;
        let iteration = iteration.filter(|_| load.wire.network.settings.stream);
        let parts = iteration.map(|iteration| {
            let series = load.parts.get().unwrap_or_else(|| PartSeries::of(iteration));
            load.parts.set(Some(series));
            Box::new(PartsVisitor::new(iteration, series, client.clock()))
        });
        let lane = Lane { client, inspector: inspector.as_mut(), parts, exchange };
        let ended = match &load.wire.network.settings.feed {
            None => {
                let request = load.wire.request(number);
                let begin = |tracer: &WorkerTracer| tracer.begin(whole?, request);
                *span = load.tracer.as_ref().and_then(begin);
                let request = span.as_deref().map_or(request, |span| &span.request);
                load.exchange(lane, request, now).await;
                Ok(())
            }
            Some(feed) => Box::pin(load.exchange_made(lane, feed.as_ref(), number)).await,
        };
        self.is_fired = false;
        ended
    }

    /// The exchange, so far, of a request whose future was dropped before its end.
    pub fn interrupt(&mut self) -> Exchange {
        // A future that was never polled has not even begun.
        if !std::mem::take(&mut self.is_fired) {
            return Exchange::unfinished(self.client.clock().now());
        }
        self.client.end(&mut self.exchange, ExchangeEnd::Unfinished);
        self.take_exchange()
    }

    #[inline]
    fn take_exchange(&mut self) -> Exchange {
        std::mem::replace(&mut self.exchange, Exchange::unfinished(0))
    }
}

impl<C: Clock + Clone + 'static> Work for HttpWork<C> {
    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        self.run(iteration.arrival.number, iteration.fired, Some(iteration)).await?;
        self.load.end_span(self.span.take(), &self.exchange);
        let exchange = &mut self.exchange;
        if let (Some(inspector), ExchangeEnd::Response(_)) = (&self.inspector, exchange.end)
            && let Some(wrong) = inspector.wrong()
        {
            exchange.wrong_body = wrong == Wrong::Body;
            if let Some((status, body)) = inspector.failed_body() {
                iteration.failed_body(status, &body);
            }
        }
        let ended = match exchange.end {
            ExchangeEnd::Fault(fault) => IterationEnd::failed(exchange.done, fault),
            ExchangeEnd::Response(_) | ExchangeEnd::Unfinished => {
                IterationEnd::finished(exchange.done)
            }
        };
        iteration.take_exchange(exchange);
        Ok(ended)
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        let exchange = self.interrupt();
        self.load.end_span(self.span.take(), &exchange);
        let ended = IterationEnd::interrupted(exchange.done);
        iteration.exchange(exchange);
        ended
    }
}

/// What one lane sends with and notes in.
struct Lane<'a, C> {
    client: &'a Client<C>,
    inspector: Option<&'a mut Inspector>,
    parts: Option<Box<PartsVisitor<'a, C>>>,
    exchange: &'a mut Exchange,
}

impl Load {
    #[inline]
    async fn exchange<C: Clock + Clone + 'static>(
        &self,
        lane: Lane<'_, C>,
        request: &Labelled,
        now: Nanos,
    ) {
        let Lane { client, mut inspector, parts, exchange } = lane;
        if let Some(inspector) = &mut inspector {
            inspector.begin();
        }
        let deadline = Deadline::after(now, &self.wire.network.settings.timeouts);
        let mut visitor = WorkVisitor { keep: KeepVisitor::new(self.keep()), inspector, parts };
        exchange.label = request.label;
        client.exchange(&request.request, now, deadline, &mut visitor, exchange).await;
        exchange.captured = visitor.keep.take();
    }

    /// Sends a request that is made now.
    async fn exchange_made<C: Clock + Clone + 'static>(
        &self,
        lane: Lane<'_, C>,
        feed: &dyn Feed,
        number: u64,
    ) -> Result<(), Exhausted> {
        match self.wire.make(feed, number).await {
            Ok(Some(request)) => {
                let now = lane.client.clock().now();
                self.exchange(lane, &request, now).await;
            }
            Ok(None) => return Err(Exhausted),
            Err(fault) => lane.client.end(lane.exchange, ExchangeEnd::Fault(fault)),
        }
        Ok(())
    }

    /// Hands over the span of a request that has ended, when it has one.
    #[inline]
    fn end_span(&self, span: Option<Box<OpenSpan>>, exchange: &Exchange) {
        if let (Some(span), Some(tracer)) = (span, &self.tracer) {
            tracer.end(&span, exchange, &self.wire.network);
        }
    }

    /// How many bytes of the next response's body to keep, when it is to be kept.
    #[inline]
    fn keep(&self) -> Option<usize> {
        let left = self.keep.get().checked_sub(1)?;
        self.keep.set(left);
        self.wire.network.settings.keep.map(|keep| keep.body_bytes)
    }
}
