//! The work of one lane: an HTTP request with its redirects.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, ExchangeEnd};
use gake_core::work::{Exhausted, FastEnd, Iteration, IterationEnd, Work};

use crate::client::Client;
use crate::client::keep_visitor::KeepVisitor;
use crate::load::fast::{FastPace, HttpFastLane};
use crate::load::feed::{LabelledRequest, RequestFeed};
use crate::load::inspect::{FailedCheck, Inspector, WorkVisitor};
use crate::load::prepared_requests::PreparedRequests;
use crate::load::stream::{StreamSeries, StreamVisitor};
use crate::load::trace::{OpenSpan, WorkerTracer};
use crate::net::deadline::Deadline;

/// The state shared by the works of one worker.
#[derive(Debug)]
pub(crate) struct WorkerLoad {
    pub(crate) wire: Arc<PreparedRequests>,
    /// The number of responses still to keep.
    pub(crate) keep: Cell<u64>,
    /// The series of streamed responses, once interned.
    pub(crate) stream: Cell<Option<StreamSeries>>,
    pub(crate) tracer: Option<WorkerTracer>,
}

/// Sends requests for one lane.
#[derive(Debug)]
pub struct HttpWork<C> {
    load: Rc<WorkerLoad>,
    client: Client<C>,
    inspector: Option<Inspector>,
    exchange: Exchange,
    /// The request in flight, if requests are packed.
    made: Option<Box<LabelledRequest>>,
    /// Its span, if it is sampled.
    span: Option<Box<OpenSpan>>,
    /// Whether an exchange is in flight.
    is_fired: bool,
    /// Whether a fast lane has begun `exchange`, which is next.
    is_begun: bool,
    pace: FastPace,
}

impl<C: Clock + Clone + 'static> HttpWork<C> {
    pub(crate) fn new(load: Rc<WorkerLoad>, client: Client<C>) -> Self {
        let inspector = load.wire.network.settings.inspect.clone().map(Inspector::new);
        let exchange = Exchange::unfinished(0);
        let (made, span, is_fired, is_begun) = (None, None, false, false);
        let pace = FastPace::default();
        Self { load, client, inspector, exchange, made, span, is_fired, is_begun, pace }
    }

    /// Sends the request with this number at `now` and returns its exchange; `None` at the end of the
    /// feed. After a drop of the future, [`HttpWork::interrupt`] returns the exchange so far.
    pub async fn send(&mut self, number: u64, now: Nanos) -> Option<Exchange> {
        self.run(number, now, None).await.ok()?;
        Some(self.take_exchange())
    }

    /// Sends the request with this number at `now`; the exchange is in `self.exchange`.
    async fn run(
        &mut self,
        number: u64,
        now: Nanos,
        iteration: Option<&Iteration<'_>>,
    ) -> Result<(), Exhausted> {
        self.is_fired = true;
        if !std::mem::take(&mut self.is_begun) {
            self.exchange = Exchange::unfinished(now);
        }
        let Self { load, client, inspector, exchange, made, span, .. } = self;
        let whole = iteration;
        let iteration = iteration.filter(|_| load.wire.network.settings.stream);
        let stream = iteration.map(|iteration| {
            let series = load.stream.get().unwrap_or_else(|| StreamSeries::of(iteration));
            load.stream.set(Some(series));
            Box::new(StreamVisitor::new(iteration, series, client.clock()))
        });
        let lane = LaneExchange { client, inspector: inspector.as_mut(), stream, exchange };
        let ended = match &load.wire.network.settings.feed {
            None => {
                let request = load.wire.request(number, made);
                let begin = |tracer: &WorkerTracer| tracer.begin(whole?, request);
                *span = load.tracer.as_ref().and_then(begin);
                let request = span.as_deref().map_or(request, |span| &span.request);
                load.exchange(lane, request, now).await;
                Ok(())
            }
            Some(feed) => Box::pin(load.exchange_fed(lane, feed.as_ref(), number)).await,
        };
        self.is_fired = false;
        ended
    }

    /// The exchange so far of a request whose future was dropped.
    pub fn interrupt(&mut self) -> Exchange {
        // The future was never polled.
        if !std::mem::take(&mut self.is_fired) && !std::mem::take(&mut self.is_begun) {
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
    type Fast = HttpFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        self.run(iteration.arrival.number, iteration.fired, Some(iteration)).await?;
        self.load.end_span(self.span.take(), &self.exchange);
        let exchange = &mut self.exchange;
        if let (Some(inspector), ExchangeEnd::Response(_)) = (&self.inspector, exchange.end)
            && let Some(failed) = inspector.failed_check()
        {
            exchange.wrong_body = failed == FailedCheck::Body;
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

    #[inline]
    fn fast_lane(&mut self, number: u64, now: Nanos) -> Option<HttpFastLane> {
        let Self { load, client, pace, .. } = self;
        if !pace.is_due() || load.tracer.is_some() {
            return None;
        }
        HttpFastLane::lend(&load.wire, client, pace, (number, now))
    }

    fn take_back(&mut self, lane: HttpFastLane, end: FastEnd) {
        if let Some(exchange) = lane.end(end, &mut self.pace) {
            (self.exchange, self.is_begun) = (exchange, true);
        }
    }
}

struct LaneExchange<'a, C> {
    client: &'a Client<C>,
    inspector: Option<&'a mut Inspector>,
    stream: Option<Box<StreamVisitor<'a, C>>>,
    exchange: &'a mut Exchange,
}

impl WorkerLoad {
    #[inline]
    async fn exchange<C: Clock + Clone + 'static>(
        &self,
        lane: LaneExchange<'_, C>,
        request: &LabelledRequest,
        now: Nanos,
    ) {
        let LaneExchange { client, mut inspector, stream, exchange } = lane;
        if let Some(inspector) = &mut inspector {
            inspector.begin();
        }
        let deadline = Deadline::after(now, &self.wire.network.settings.timeouts);
        let mut visitor = WorkVisitor { keep: KeepVisitor::new(self.keep()), inspector, stream };
        exchange.label = request.label;
        client.exchange(&request.request, now, deadline, &mut visitor, exchange).await;
        exchange.captured = visitor.keep.take();
    }

    /// Makes a request by the feed and sends it.
    async fn exchange_fed<C: Clock + Clone + 'static>(
        &self,
        lane: LaneExchange<'_, C>,
        feed: &dyn RequestFeed,
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

    /// Sends the span of a request that has ended, if it is sampled.
    #[inline]
    fn end_span(&self, span: Option<Box<OpenSpan>>, exchange: &Exchange) {
        if let (Some(span), Some(tracer)) = (span, &self.tracer) {
            tracer.end(&span, exchange, &self.wire.network);
        }
    }

    /// The bytes to keep of the next response's body; `None` if the response is not kept.
    #[inline]
    fn keep(&self) -> Option<usize> {
        let left = self.keep.get().checked_sub(1)?;
        self.keep.set(left);
        self.wire.network.settings.keep.map(|keep| keep.body_bytes)
    }
}
