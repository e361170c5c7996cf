//! The formats of figures on their way to a destination.

mod grafana;
mod influx;
mod native;
mod otlp;
mod otlp_grpc;
mod otlp_spans;
mod page;
mod parquet;
mod protobuf;
mod remote_write;
mod rows;
mod script_series;
mod series;
mod statsd;
#[cfg(test)]
mod tests;
mod thrift;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Outcome, Run};
use gake_wire::{HttpRequest, Protocol, grpc_call};
pub(crate) use influx::escape;
pub(crate) use otlp_spans::SpanWriter;
pub(crate) use script_series::{TrendFigure, Trends, request as script_request};
use url::Url;

use crate::address::{SinkAddress, SinkKind};
use crate::carrier::{Batch, PATIENCE, Post};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// Turns what happens in a run into batches of bytes. An empty batch is not carried.
pub(crate) trait Format: Send {
    fn begin(&mut self, start: &ExportStart<'_>) -> Batch;

    fn second(&mut self, second: &ExportSecond<'_>) -> Batch;

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> Batch;

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> Batch;

    fn event(&mut self, at: Nanos, title: &'static str, text: &str) -> Batch {
        let _ = (at, title, text);
        Batch::default()
    }

    fn outcomes(&mut self, outcomes: &[Outcome], labels: &[String]) -> Batch {
        let _ = (outcomes, labels);
        Batch::default()
    }

    fn takes_outcomes(&self) -> bool {
        false
    }
}

/// The format of a destination.
pub(crate) fn of(address: &SinkAddress) -> Box<dyn Format> {
    let tags = address.tags();
    let prefix = || address.option("prefix").unwrap_or("gake").to_owned();
    match address.kind() {
        SinkKind::InfluxDb => {
            let is_raw = matches!(address.option("raw"), Some("" | "true"));
            Box::new(rows::Rows::new(influx::Influx::new(tags), is_raw))
        }
        SinkKind::Json | SinkKind::Nats => {
            Box::new(rows::Rows::new(rows::JsonRows::new(tags), false))
        }
        SinkKind::Csv => Box::new(rows::Rows::new(rows::CsvRows::new(tags), false)),
        SinkKind::Parquet => Box::new(parquet::Parquet::new(tags)),
        SinkKind::StatsD => Box::new(rows::Rows::new(statsd::StatsD::new(prefix(), tags), false)),
        SinkKind::Graphite => {
            Box::new(rows::Rows::new(statsd::Graphite::new(prefix(), tags), false))
        }
        SinkKind::Prometheus => Box::new(series::SeriesFormat::new(page::OpenMetrics::new(tags))),
        SinkKind::RemoteWrite => Box::new(series::SeriesFormat::new(
            remote_write::RemoteWrite::new(tags, address.is_native()),
        )),
        SinkKind::Grafana => Box::new(grafana::Annotations::new(tags)),
        SinkKind::Otlp => {
            let service = address.option("service").unwrap_or("gake").to_owned();
            Box::new(series::SeriesFormat::new(otlp::Otlp::new(service, tags)))
        }
        SinkKind::OtlpGrpc => {
            let service = address.option("service").unwrap_or("gake").to_owned();
            Box::new(series::SeriesFormat::new(otlp_grpc::OtlpGrpc::new(service, tags)))
        }
    }
}

/// Where the batches of a destination are posted.
pub(crate) fn post(address: &SinkAddress) -> Post {
    let token = address.option("token");
    let bearer = token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
    match address.kind() {
        SinkKind::RemoteWrite => {
            let mut headers = vec![
                ("Content-Type".to_owned(), "application/x-protobuf".to_owned()),
                ("Content-Encoding".to_owned(), "snappy".to_owned()),
                ("X-Prometheus-Remote-Write-Version".to_owned(), "0.1.0".to_owned()),
            ];
            headers.extend(bearer);
            asked_first(address.address().to_owned(), headers, &remote_write::nothing())
        }
        SinkKind::Otlp => {
            let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
            headers.extend(bearer);
            asked_first(otlp_url(address.address()), headers, otlp::NOTHING.as_bytes())
        }
        SinkKind::OtlpGrpc => {
            // gRPC writes the names of metadata in lower case.
            let bearer = bearer.map(|(name, value)| (name.to_lowercase(), value));
            let url = format!("{}{}", address.address().trim_end_matches('/'), otlp_grpc::METHOD);
            let call = grpc_call(url.clone(), bearer.as_slice(), PATIENCE, otlp_grpc::nothing());
            let headers = call.headers.clone();
            Post { protocol: Protocol::Http2, ..Post::new(url, headers, Some(call)) }
        }
        SinkKind::Grafana => {
            let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
            headers.extend(bearer);
            grafana::post(address.address(), headers)
        }
        _ => influx::post(address),
    }
}

/// Where the spans of a destination of OpenTelemetry are posted; `None` of another one, and of a URL
/// that does not tell.
pub(crate) fn span_post(address: &SinkAddress) -> Option<Post> {
    let metrics = post(address);
    match address.kind() {
        SinkKind::Otlp => {
            let base = metrics.url.strip_suffix("/v1/metrics")?;
            Some(Post { url: format!("{base}/v1/traces"), first: None, ..metrics })
        }
        SinkKind::OtlpGrpc => {
            let base = metrics.url.strip_suffix(otlp_grpc::METHOD)?;
            let url = format!("{base}{}", otlp_spans::METHOD);
            Some(Post { url, first: None, ..metrics })
        }
        _ => None,
    }
}

/// A destination that is asked first whether it takes a batch of nothing.
fn asked_first(url: String, headers: Vec<(String, String)>, nothing: &[u8]) -> Post {
    let (body, copy) = (Some(nothing.into()), headers.clone());
    let first = HttpRequest { headers: copy, body, ..HttpRequest::new("POST", &url) };
    Post::new(url, headers, Some(first))
}

/// The base address of a collector stands for its metrics.
fn otlp_url(address: &str) -> String {
    match Url::parse(address) {
        Ok(mut url) if matches!(url.path(), "" | "/") => {
            url.set_path("/v1/metrics");
            url.to_string()
        }
        _ => address.to_owned(),
    }
}
