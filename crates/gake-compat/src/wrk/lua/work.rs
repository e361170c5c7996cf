//! The load of a script: its requests, one or several at a time, and the calls of its functions.

use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::clock::Clock;
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, Tally};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{RunClock, WorkerContext};
use gake_wire::{
    Client, ConnectionFacts, Deadline, ExchangeVisitor, PreparedRequest, PreparedRequests,
};
use mlua::{MultiValue, Value};

use super::LuaScript;
use super::thread::ThreadState;

/// One thread of a script.
#[derive(Debug)]
pub struct LuaFactory {
    worker: Rc<LuaWorker>,
    client: Client<RunClock>,
}

#[derive(Debug)]
struct LuaWorker {
    script: Arc<LuaScript>,
    thread: Arc<ThreadState>,
    clock: RunClock,
    wire: Arc<PreparedRequests>,
    /// A request to the target: the only one, unless the script makes each.
    request: PreparedRequest,
}

impl LuaFactory {
    pub(super) fn new(
        script: &Arc<LuaScript>,
        wire: &Arc<PreparedRequests>,
        context: WorkerContext,
    ) -> Self {
        let threads = script.threads.len();
        let thread = Arc::clone(&script.threads[context.slice.index % threads]);
        let network = Arc::new(wire.network.at(thread.address()));
        let client = Client::new(network, context.slice, context.clock.clone());
        let bytes = match script.is_dynamic {
            true => Ok(Vec::new()),
            false => thread.request(),
        };
        if let Err(error) = &bytes {
            script.fail(error);
        }
        let request = wire.raw(bytes.unwrap_or_default());
        let script = Arc::clone(script);
        let worker =
            LuaWorker { script, thread, clock: context.clock, wire: Arc::clone(wire), request };
        Self { worker: Rc::new(worker), client }
    }
}

impl Factory for LuaFactory {
    type Work = LuaWork;

    fn work(&self, _: usize) -> LuaWork {
        let client = match self.client.network().settings.pooled {
            true => self.client.clone(),
            false => self.client.with_own_connections(),
        };
        let worker = Rc::clone(&self.worker);
        LuaWork {
            worker,
            client,
            exchange: Exchange::unfinished(0),
            fired: None,
            seen: Seen::default(),
        }
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        self.client.observe(&mut tally.counts)
    }
}

/// One connection of a script's thread.
#[derive(Debug)]
pub struct LuaWork {
    worker: Rc<LuaWorker>,
    client: Client<RunClock>,
    exchange: Exchange,
    /// When the exchange in flight was sent.
    fired: Option<u64>,
    seen: Seen,
}

/// The response in progress, and those before it.
#[derive(Debug, Default)]
struct Seen {
    /// Names and values of its header lines.
    headers: Vec<mlua::String>,
    body: Vec<u8>,
    /// The earlier responses to what was written at once.
    earlier: Vec<ResponseSummary>,
}

impl Work for LuaWork {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let worker = Rc::clone(&self.worker);
        worker.unless_stopped().await;
        let mut now = iteration.fired;
        if worker.script.has_delay {
            let delay = worker.or_fail(worker.thread.delay()).await;
            tokio::time::sleep(Duration::from_millis(delay.max(0.0) as u64)).await;
            worker.unless_stopped().await;
            now = worker.clock.now();
        }
        let made = match worker.script.is_dynamic {
            true => Some(worker.wire.raw(worker.or_fail(worker.thread.request()).await)),
            false => None,
        };
        self.seen.clear();
        self.exchange = Exchange::unfinished(now);
        self.fired = Some(now);
        let deadline = Deadline::after(now, &self.client.network().settings.timeouts);
        let mut visitor = LuaVisitor { worker: &worker, seen: &mut self.seen };
        let request = made.as_ref().unwrap_or(&worker.request);
        self.client.exchange(request, now, deadline, &mut visitor, &mut self.exchange).await;
        self.fired = None;
        if let ExchangeEnd::Response(response) = self.exchange.end {
            worker.or_fail(worker.respond(response.status, &mut self.seen)).await;
        }
        Ok(self.record(iteration, now))
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        match self.fired.take() {
            Some(now) => {
                self.client.end(&mut self.exchange, ExchangeEnd::Unfinished);
                self.record(iteration, now);
                IterationEnd::interrupted(self.exchange.done)
            }
            None => IterationEnd::interrupted(self.worker.clock.now()),
        }
    }
}

impl LuaWork {
    /// Records the exchange, sent at `now`, and the earlier responses to the same write: as in wrk,
    /// all have its latency.
    fn record(&self, iteration: &Iteration<'_>, now: u64) -> IterationEnd {
        for response in &self.seen.earlier {
            let end = ExchangeEnd::Response(*response);
            let earlier = Exchange { end, bytes_in: 0, bytes_out: 0, ..self.exchange.clone() };
            let opened = Exchange { connect: None, tls: None, tcp: None, ..earlier };
            iteration.exchange_from(now, opened);
        }
        let exchange = self.exchange.clone();
        // A delay is no part of the response time.
        match now == iteration.fired {
            true => iteration.exchange(exchange),
            false => iteration.exchange_from(now, exchange),
        }
        match self.exchange.end {
            ExchangeEnd::Fault(fault) => IterationEnd::failed(self.exchange.done, fault),
            _ => IterationEnd::finished(self.exchange.done),
        }
    }
}

impl LuaWorker {
    /// Does not return once the script has stopped the thread.
    async fn unless_stopped(&self) {
        if self.thread.is_stopped() {
            pending::<()>().await;
        }
    }

    /// The value; an error ends the run.
    async fn or_fail<T>(&self, result: mlua::Result<T>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => {
                self.script.fail(&error);
                pending().await
            }
        }
    }

    /// Calls `response`, if the script has it.
    fn respond(&self, status: u16, seen: &mut Seen) -> mlua::Result<()> {
        if !self.script.wants_response {
            return Ok(());
        }
        let mut args = MultiValue::with_capacity(2 + seen.headers.len());
        args.push_back(Value::Integer(status.into()));
        args.push_back(Value::String(self.thread.lua.create_string(&seen.body)?));
        args.extend(seen.headers.drain(..).map(Value::String));
        seen.body.clear();
        self.thread.response.call(args)
    }
}

impl Seen {
    fn clear(&mut self) {
        self.headers.clear();
        self.body.clear();
        self.earlier.clear();
    }
}

struct LuaVisitor<'a> {
    worker: &'a LuaWorker,
    seen: &'a mut Seen,
}

impl Visitor for LuaVisitor<'_> {
    fn wants_head(&self) -> bool {
        self.worker.script.wants_response
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        let lua = &self.worker.thread.lua;
        self.seen.headers.clear();
        for header in head.headers {
            let line = [header.name.as_bytes(), header.value].map(|text| lua.create_string(text));
            self.seen.headers.extend(line.into_iter().flatten());
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.worker.script.wants_response {
            self.seen.body.extend_from_slice(bytes);
        }
    }
}

impl ExchangeVisitor for LuaVisitor<'_> {
    fn connected(&mut self, _: &ConnectionFacts) {
        // Also before a retry.
        self.seen.clear();
    }

    fn has_another(&mut self, status: u16, body_bytes: u64) -> bool {
        if self.seen.earlier.len() as u64 + 1 == self.worker.script.responses {
            return false;
        }
        if let Err(error) = self.worker.respond(status, self.seen) {
            self.worker.script.fail(&error);
        }
        self.seen.earlier.push(ResponseSummary { status, body_bytes });
        true
    }
}
