//! `--output-format json`: the message `nighthawk.client.Output` in the JSON format of Protocol
//! Buffers, where 64-bit numbers and times are strings.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Value, json};

use super::{Output, STATISTICS, Unit, Worker};
use crate::spectrum::levels;
use gake_core::record::Histogram;

/// The result as JSON, indented by one blank per level as in Nighthawk.
pub fn json(output: &Output) -> String {
    let mut results = Vec::new();
    // A single worker equals the total.
    if output.workers.len() > 1 {
        for (number, worker) in output.workers.iter().enumerate() {
            results.push(result(output, &format!("worker_{number}"), worker));
        }
    }
    results.push(result(output, "global", &output.global()));
    indented(&json!({
        "options": options(output),
        "results": results,
        "timestamp": output.timestamp(),
        "version": { "version": version() },
    }))
}

fn version() -> Value {
    let mut parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse::<u32>());
    let mut part = || parts.next().and_then(Result::ok).unwrap_or(0);
    json!({ "major_number": part(), "minor_number": part(), "patch": part() })
}

pub(super) fn indented(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" "));
    // Maps with string keys, written to memory: this cannot fail.
    let _ = value.serialize(&mut serializer);
    text.push(b'\n');
    String::from_utf8_lossy(&text).into_owned()
}

fn options(output: &Output) -> Value {
    let settings = &output.settings;
    let upper = |text: &str| json!({ "value": text.to_ascii_uppercase() });
    let predicates = |list: &[(String, u64)]| -> BTreeMap<String, String> {
        list.iter().map(|(name, threshold)| (name.clone(), threshold.to_string())).collect()
    };
    let headers: Vec<_> = settings
        .headers
        .iter()
        .map(|(key, value)| json!({ "header": { "key": key, "value": value }, "append": false }))
        .collect();
    let protocol = match (settings.is_http3, settings.max_streams) {
        (true, _) => "HTTP3",
        (false, Some(_)) => "HTTP2",
        (false, None) => "HTTP1",
    };
    let mut options = json!({
        "uri": settings.uri,
        "requests_per_second": settings.rps,
        "connections": settings.connections,
        "timeout": duration(settings.timeout.as_nanos()),
        "h2": false,
        "protocol": { "value": protocol },
        "concurrency": settings.concurrency,
        "verbosity": upper(&settings.verbosity),
        "output_format": upper(&settings.output_format),
        "prefetch_connections": false,
        "burst_size": settings.burst_size,
        "address_family": upper(&settings.address_family),
        "request_options": {
            "request_method": settings.method,
            "request_headers": headers,
            "request_body_size": settings.body_size,
        },
        "max_pending_requests": settings.max_pending,
        "max_active_requests": settings.max_active,
        "max_requests_per_connection": settings.max_per_connection,
        "sequencer_idle_strategy": upper(&settings.idle_strategy),
        "termination_predicates": predicates(&settings.termination),
        "failure_predicates": predicates(&settings.failure),
        "open_loop": settings.open_loop,
        "jitter_uniform": duration(settings.jitter.as_nanos()),
        "labels": settings.labels,
    });
    if let Some(streams) = settings.max_streams {
        options["max_concurrent_streams"] = streams.into();
    }
    match settings.duration {
        Some(length) => options["duration"] = duration(length.as_nanos()).into(),
        None => options["no_duration"] = true.into(),
    }
    options
}

fn result(output: &Output, name: &str, worker: &Worker) -> Value {
    let statistics: Vec<_> = STATISTICS
        .into_iter()
        .zip(&worker.statistics)
        .map(|((id, _, unit), values)| statistic(id, unit, values))
        .collect();
    let counters: Vec<_> = worker
        .shown_counters()
        .map(|(name, value)| json!({ "name": name, "value": value.to_string() }))
        .collect();
    json!({
        "name": name,
        "statistics": statistics,
        "counters": counters,
        "execution_duration": duration(output.execution.as_nanos()),
    })
}

fn statistic(id: &str, unit: Unit, values: &Histogram) -> Value {
    let percentiles: Vec<_> = levels(values)
        .into_iter()
        .map(|level| {
            let mut percentile =
                json!({ "percentile": level.quantile, "count": level.count.to_string() });
            match unit {
                Unit::Time => percentile["duration"] = duration(u128::from(level.value)).into(),
                Unit::Bytes => percentile["raw_value"] = (level.value as f64).into(),
            }
            percentile
        })
        .collect();
    let (min, max) = (values.min(), values.max());
    let mut statistic = json!({
        "id": id,
        "count": values.count().to_string(),
        "percentiles": percentiles,
    });
    let figures = match unit {
        Unit::Time => [
            ("min", duration(u128::from(min)).into()),
            ("mean", duration(values.mean() as u128).into()),
            ("max", duration(u128::from(max)).into()),
            ("pstdev", duration(values.stddev() as u128).into()),
        ],
        Unit::Bytes => [
            ("raw_min", min.to_string().into()),
            ("raw_mean", values.mean().into()),
            ("raw_max", max.to_string().into()),
            ("raw_pstdev", values.stddev().into()),
        ],
    };
    for (name, figure) in figures {
        statistic[name] = figure;
    }
    statistic
}

/// A duration in the JSON format of Protocol Buffers: seconds with 0, 3, 6 or 9 digits.
pub(super) fn duration(nanos: u128) -> String {
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if nanos == 0 {
        format!("{seconds}s")
    } else if nanos.is_multiple_of(1_000_000) {
        format!("{seconds}.{:03}s", nanos / 1_000_000)
    } else if nanos.is_multiple_of(1_000) {
        format!("{seconds}.{:06}s", nanos / 1_000)
    } else {
        format!("{seconds}.{nanos:09}s")
    }
}
