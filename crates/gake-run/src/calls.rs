//! A program's own code as the load: each arrival calls an async function.

use gake_core::clock::Clock;
use gake_core::metric::Registry;
use gake_core::record::{Exchange, ExchangeEnd, Fault, ResponseSummary, Run, Tally};
use gake_core::spec::{RequestSource, RunSpec};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{RunClock, WorkerContext};

use crate::{ResolvedRun, RunError, RunOptions};

/// The status of a call that succeeded: its requests have none of their own.
const OK: u16 = 200;

/// Runs `call` for each arrival of `spec`, whose scenarios have [`RequestSource::Given`] sources
/// with the names of the targets in reports. Blocks; an async program calls it by its runtime's
/// `spawn_blocking`.
///
/// A call counts as one request: its response time counts from the instant at which it was due,
/// and its service time from the call itself. `call` is given the number of the arrival, from 0.
/// Its future runs on the thread of its worker, in a tokio runtime with timers and I/O. If the run
/// ends first, the future is dropped and the request is unfinished.
///
/// ```no_run
/// use std::time::Duration;
///
/// use gake_run::Fault;
/// use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};
///
/// async fn order(number: u64) -> std::io::Result<()> {
///     // A client of the program's own.
/// #   drop(number);
/// #   Ok(())
/// }
///
/// let load = Load::rate(500.0, Duration::from_secs(10));
/// let spec = RunSpec::new(ScenarioSpec::new(RequestSource::Given("orders".to_owned()), load));
/// let run = gake_run::run_calls(&spec, |number| async move {
///     order(number).await.map_err(|error| Fault::Other(error.raw_os_error().unwrap_or(0)))
/// })?;
/// println!("p99 {} ns", run.tally.latency.response().quantile(0.99));
/// # Ok::<(), gake_run::RunError>(())
/// ```
///
/// # Errors
/// When the spec has requests of its own or is not valid, or the run cannot be started. Failed
/// calls are not an error: they are in the run.
pub fn run_calls<C, F>(spec: &RunSpec, call: C) -> Result<Run, RunError>
where
    C: Fn(u64) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<(), Fault>> + 'static,
{
    let name = |scenario: &gake_core::spec::ScenarioSpec| match &scenario.source {
        RequestSource::Given(name) => Ok(name.clone()),
        _ => Err(RunError::cannot("a run of calls has `given` sources only")),
    };
    let targets = spec.scenarios.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    let run = ResolvedRun::of_works(spec, &targets, &[], &Registry::default())?;
    let make =
        move |context: WorkerContext| CallFactory { clock: context.clock, call: call.clone() };
    Ok(run.run_works(make, RunOptions::default(), &mut |_| None)?.run)
}

struct CallFactory<C> {
    clock: RunClock,
    call: C,
}

impl<C, F> Factory for CallFactory<C>
where
    C: Fn(u64) -> F + Clone + 'static,
    F: Future<Output = Result<(), Fault>> + 'static,
{
    type Work = CallWork<C>;

    fn work(&self, _: usize) -> CallWork<C> {
        CallWork { clock: self.clock.clone(), call: self.call.clone(), began: None }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

struct CallWork<C> {
    clock: RunClock,
    call: C,
    /// When the call in progress began.
    began: Option<u64>,
}

impl<C, F> Work for CallWork<C>
where
    C: Fn(u64) -> F,
    F: Future<Output = Result<(), Fault>>,
{
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        self.began = Some(iteration.fired);
        let result = (self.call)(iteration.arrival.number).await;
        self.began = None;
        let now = self.clock.now();
        let end = match result {
            Ok(()) => ExchangeEnd::Response(ResponseSummary { status: OK, body_bytes: 0 }),
            Err(fault) => ExchangeEnd::Fault(fault),
        };
        record(iteration, iteration.fired, now, end);
        Ok(match result {
            Ok(()) => IterationEnd::finished(now),
            Err(fault) => IterationEnd::failed(now, fault),
        })
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        let now = self.clock.now();
        if let Some(began) = self.began.take() {
            record(iteration, began, now, ExchangeEnd::Unfinished);
        }
        IterationEnd::interrupted(now)
    }
}

/// Records a call from `began` to `now`.
fn record(iteration: &Iteration<'_>, began: u64, now: u64, end: ExchangeEnd) {
    let first_byte = matches!(end, ExchangeEnd::Response(_)).then_some(now);
    let exchange =
        Exchange { write: began, written: true, first_byte, end, ..Exchange::unfinished(now) };
    iteration.exchange(exchange);
}
