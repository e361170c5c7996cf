//! Formats, which turn figures into bytes.

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
mod script_otlp;
mod script_series;
mod series;
mod statsd;
#[cfg(test)]
mod tests;
mod thrift;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Outcome, Run};
pub(crate) use gake_wire::grpc_frame as otel_frame;
use gake_wire::{HttpRequest, Protocol, grpc_call};
pub(crate) use influx::{escape, write_tags};
pub(crate) use otlp_spans::SpanWriter;
pub(crate) use script_otlp::{ScriptResource, request as otel_request};
pub(crate) use script_series::{TrendFigure, Trends, request as script_request};
use url::Url;

use crate::address::{SinkAddress, SinkKind};
use crate::carrier::{FigureBatch, PATIENCE, Post};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// Turns the figures of a run into batches of bytes. Empty batches are not carried.
pub(crate) trait FigureFormat: Send {
    fn begin(&mut self, start: &ExportStart<'_>) -> FigureBatch;

    fn second(&mut self, second: &ExportSecond<'_>) -> FigureBatch;

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> FigureBatch;

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> FigureBatch;

    fn event(&mut self, at: Nanos, title: &'static str, text: &str) -> FigureBatch {
        let _ = (at, title, text);
        FigureBatch::default()
    }

    fn outcomes(&mut self, outcomes: &[Outcome], labels: &[String]) -> FigureBatch {
        let _ = (outcomes, labels);
        FigureBatch::default()
    }

    fn takes_outcomes(&self) -> bool {
        false
    }
}

pub(crate) fn of(address: &SinkAddress) -> Box<dyn FigureFormat> {
    let tags = address.tags();
    let prefix = || address.option("prefix").unwrap_or("gake").to_owned();
    match address.kind() {
        SinkKind::InfluxDb => {
            let is_raw = matches!(address.option("raw"), Some("" | "true"));
            Box::new(rows::RowFormat::new(influx::Influx::new(tags), is_raw))
        }
        SinkKind::Json | SinkKind::Nats => {
            Box::new(rows::RowFormat::new(rows::JsonRows::new(tags), false))
        }
        SinkKind::Csv => Box::new(rows::RowFormat::new(rows::CsvRows::new(tags), false)),
        SinkKind::Parquet => Box::new(parquet::Parquet::new(tags)),
        SinkKind::StatsD => {
            Box::new(rows::RowFormat::new(statsd::StatsD::new(prefix(), tags), false))
        }
        SinkKind::Graphite => {
            Box::new(rows::RowFormat::new(statsd::Graphite::new(prefix(), tags), false))
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
            with_empty_check(address.address().to_owned(), headers, &remote_write::nothing())
        }
        SinkKind::Otlp => {
            let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
            headers.extend(bearer);
            with_empty_check(otlp_url(address.address()), headers, otlp::NOTHING.as_bytes())
        }
        SinkKind::OtlpGrpc => grpc_post(address.address(), bearer.into_iter().collect()),
        SinkKind::Grafana => {
            let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
            headers.extend(bearer);
            grafana::post(address.address(), headers)
        }
        _ => influx::post(address),
    }
}

/// The POST target for metrics of a script in protobuf.
pub(crate) fn otel_post(url: &str, is_grpc: bool, headers: Vec<(String, String)>) -> Post {
    if is_grpc {
        return grpc_post(url, headers);
    }
    let mut all = vec![("Content-Type".to_owned(), "application/x-protobuf".to_owned())];
    all.extend(headers);
    // An empty request is an empty message.
    with_empty_check(url.to_owned(), all, &[])
}

fn grpc_post(url: &str, metadata: Vec<(String, String)>) -> Post {
    // Metadata names in gRPC are lower case.
    let metadata: Vec<_> =
        metadata.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    let url = format!("{}{}", url.trim_end_matches('/'), otlp_grpc::METHOD);
    let call = grpc_call(url.clone(), &metadata, PATIENCE, otlp_grpc::nothing());
    let headers = call.headers.clone();
    Post { protocol: Protocol::Http2, ..Post::new(url, headers, Some(call)) }
}

/// The POST target for spans; `None` unless it is an OpenTelemetry destination with a standard URL.
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

/// A target that is checked by an empty batch.
fn with_empty_check(url: String, headers: Vec<(String, String)>, nothing: &[u8]) -> Post {
    let (body, copy) = (Some(nothing.into()), headers.clone());
    let first = HttpRequest { headers: copy, body, ..HttpRequest::new("POST", &url) };
    Post::new(url, headers, Some(first))
}

/// A collector's base URL becomes that of its metrics.
fn otlp_url(address: &str) -> String {
    match Url::parse(address) {
        Ok(mut url) if matches!(url.path(), "" | "/") => {
            url.set_path("/v1/metrics");
            url.to_string()
        }
        _ => address.to_owned(),
    }
}
