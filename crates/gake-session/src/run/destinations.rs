//! Destinations of figures during a run: databases, monitoring systems, dashboards.

use gake_run::Sink;
use gake_run::sink::ExportSink;
use gake_sinks::{Exporter, SinkKind, Spill};

use crate::options::SinkArgs;
use crate::{Console, Failure};

/// Opens the destinations of figures. One that is unreachable is reported before the run.
///
/// # Errors
/// When one cannot be used, or is unreachable and `--sink-required` is given.
pub fn destinations(
    args: &SinkArgs,
    spill: &Spill,
    console: &Console,
) -> Result<Vec<Box<dyn Sink>>, Failure> {
    if args.sink_spill.is_some() && args.sink.is_empty() {
        return Err(Failure::usage("--sink-spill needs --sink"));
    }
    if args.sink_required && args.sink.is_empty() && args.annotate.is_empty() {
        return Err(Failure::usage("--sink-required needs --sink or --annotate"));
    }
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    let sinks_of = args.sink.iter().map(|address| ("--sink", address));
    let annotated = args.annotate.iter().map(|address| ("--annotate", address));
    for (flag, address) in sinks_of.chain(annotated) {
        let address = address.clone().or_token(token);
        let mut exporter = Exporter::new(&address, spill)
            .map_err(|why| Failure::could_not(format!("{flag} {address}: {why}")))?;
        if let Err(why) = exporter.check() {
            let what = format!("{flag} {address}: {why}");
            if args.sink_required {
                return Err(Failure::could_not(what));
            }
            console.warn(&format!("{what}; the run starts anyway and retries"));
        }
        sinks.push(Box::new(ExportSink::new(exporter)));
    }
    Ok(sinks)
}

/// The token of a destination, from the environment: a command line is visible to others.
pub(super) fn token(kind: SinkKind) -> Option<String> {
    let name = match kind {
        SinkKind::InfluxDb => "INFLUX_TOKEN",
        SinkKind::Grafana => "GRAFANA_TOKEN",
        _ => "GAKE_SINK_TOKEN",
    };
    std::env::var(name).ok().filter(|token| !token.is_empty())
}
