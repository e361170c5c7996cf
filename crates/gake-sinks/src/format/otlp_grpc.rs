//! OpenTelemetry metrics: OTLP over gRPC, in protobuf. Field numbers are from
//! `opentelemetry/proto/metrics/v1/metrics.proto`.

use gake_core::record::Histogram;
use gake_wire::grpc_frame;

use super::otlp::{CUMULATIVE, ExponentialBuckets, SCALE, metric_name};
use super::protobuf::ProtoMessage;
use super::series::{Family, SeriesWriter, Totals};
use crate::carrier::FigureBatch;

pub(super) const METHOD: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

pub(crate) struct OtlpGrpc {
    service: String,
    tags: Vec<(String, String)>,
}

#[derive(Clone, Copy)]
struct CumulativeTimes {
    /// The run's start in Unix nanoseconds.
    started: u64,
    /// The current time in Unix nanoseconds.
    now: u64,
}

impl OtlpGrpc {
    pub(crate) fn new(service: String, tags: Vec<(String, String)>) -> Self {
        Self { service, tags }
    }
}

pub(super) fn nothing() -> Vec<u8> {
    grpc_frame(&[])
}

impl SeriesWriter for OtlpGrpc {
    const AT_BEGIN: bool = false;

    fn write(&self, totals: &Totals, started: u64, unix_ns: u64) -> FigureBatch {
        let times = CumulativeTimes { started, now: unix_ns };
        let mut metrics = scoped();
        let (families, histograms) = (totals.families(), totals.histograms());
        for family in &families {
            metrics.message(2, &metric(family, times));
        }
        for (name, histogram) in &histograms {
            metrics.message(2, &exponential(name, histogram, times));
        }
        let rows = (families.len() + histograms.len()) as u64;
        FigureBatch { bytes: call(&self.service, &self.tags, &metrics), rows }
    }
}

/// A message that begins with gake's scope: its name and version.
pub(super) fn scoped() -> ProtoMessage {
    let mut scope = ProtoMessage::default();
    scope.bytes(1, b"gake");
    scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    let mut scoped = ProtoMessage::default();
    scoped.message(1, &scope);
    scoped
}

/// A call that exports `scoped` for a service with these tags.
pub(super) fn call(service: &str, tags: &[(String, String)], scoped: &ProtoMessage) -> Vec<u8> {
    let mut resource = ProtoMessage::default();
    attribute(&mut resource, 1, "service.name", service);
    for (name, value) in tags {
        attribute(&mut resource, 1, name, value);
    }
    let mut all = ProtoMessage::default();
    all.message(1, &resource);
    all.message(2, scoped);
    let mut request = ProtoMessage::default();
    request.message(1, &all);
    grpc_frame(&request.bytes)
}

pub(super) fn attribute(message: &mut ProtoMessage, field: u32, key: &str, value: &str) {
    let mut text = ProtoMessage::default();
    text.bytes(1, value.as_bytes());
    let mut pair = ProtoMessage::default();
    pair.bytes(1, key.as_bytes());
    pair.message(2, &text);
    message.message(field, &pair);
}

fn metric(family: &Family, times: CumulativeTimes) -> ProtoMessage {
    let mut data = ProtoMessage::default();
    for point in &family.points {
        let mut number = ProtoMessage::default();
        for (name, value) in &point.labels {
            attribute(&mut number, 7, name, value);
        }
        number.fixed64(2, times.started);
        number.fixed64(3, times.now);
        number.double(4, point.value);
        data.message(1, &number);
    }
    if family.is_counter {
        data.int64(2, CUMULATIVE.into());
        data.flag(3, true);
    }
    let mut metric = ProtoMessage::default();
    metric.bytes(1, metric_name(family).as_bytes());
    metric.bytes(2, family.help.as_bytes());
    metric.message(if family.is_counter { 7 } else { 5 }, &data);
    metric
}

fn exponential(name: &str, histogram: &Histogram, times: CumulativeTimes) -> ProtoMessage {
    let buckets = ExponentialBuckets::of(histogram);
    let mut positive = ProtoMessage::default();
    positive.sint(1, buckets.offset.into());
    positive.packed(2, &buckets.counts);
    let mut point = ProtoMessage::default();
    point.fixed64(2, times.started);
    point.fixed64(3, times.now);
    point.fixed64(4, histogram.count());
    point.double(5, histogram.sum() as f64 / 1e9);
    point.sint(6, SCALE.into());
    point.fixed64(7, buckets.zeros);
    point.message(8, &positive);
    if !histogram.is_empty() {
        point.double(12, histogram.min() as f64 / 1e9);
        point.double(13, histogram.max() as f64 / 1e9);
    }
    let mut data = ProtoMessage::default();
    data.message(1, &point);
    data.int64(2, CUMULATIVE.into());
    let mut metric = ProtoMessage::default();
    metric.bytes(1, format!("gake.{name}").as_bytes());
    metric.bytes(3, b"s");
    metric.message(10, &data);
    metric
}
