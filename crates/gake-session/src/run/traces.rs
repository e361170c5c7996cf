//! Traces of a run: sampling of requests, and the destinations of their spans.

use std::sync::Arc;

use gake_run::sink::SpanSink;
use gake_run::{ResolvedRun, Sink};
use gake_sinks::{SinkKind, SpanExporter, Spill};
use gake_wire::Tracer;

use super::destinations::token;
use crate::exit::Failure;
use crate::options::{SinkArgs, TraceArgs};
use crate::random;

/// Lets `prepared` sample requests if requested. Returns the sinks of their spans.
///
/// # Errors
/// When no sink takes spans, or one cannot be used.
pub fn start(
    args: &TraceArgs,
    (sinks, spill): (&SinkArgs, &Spill),
    has_agents: bool,
    prepared: &mut ResolvedRun,
) -> Result<Vec<Box<dyn Sink>>, Failure> {
    let Some(share) = args.trace_sample else { return Ok(Vec::new()) };
    let takes = |kind| matches!(kind, SinkKind::Otlp | SinkKind::OtlpGrpc);
    let takers: Vec<_> = sinks.sink.iter().filter(|sink| takes(sink.kind())).collect();
    if takers.is_empty() {
        let why = "--trace-sample needs a destination: --sink otlp=URL or --sink otlp-grpc=URL";
        return Err(Failure::usage(why));
    }
    if has_agents {
        return Err(Failure::usage("--trace-sample does not work with agents"));
    }
    let random = || random::bytes::<8>().map(u64::from_le_bytes);
    let keys = || Ok::<_, std::io::Error>([random()?, random()?, random()?]);
    let cannot = |error: std::io::Error| {
        Failure::could_not(format!("cannot make random trace ids: {error}"))
    };
    let keys = keys().map_err(cannot)?;
    let mut tracer = Tracer::new(share, keys).across(prepared.plan.scenarios().len());
    let mut spans: Vec<Box<dyn Sink>> = Vec::new();
    for address in takers {
        let address = address.clone().or_token(token);
        let exporter = SpanExporter::new(&address, tracer.subscribe(), spill);
        let exporter = exporter.map_err(|why| Failure::usage(format!("--trace-sample: {why}")))?;
        spans.push(Box::new(SpanSink::new(exporter)));
    }
    prepared.tracer = Some(Arc::new(tracer));
    Ok(spans)
}
