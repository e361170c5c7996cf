//! OpenTelemetry traces: spans of sampled requests, with attributes of the semantic conventions for
//! HTTP clients. Field numbers are from `opentelemetry/proto/trace/v1/trace.proto`.

use gake_core::record::ExchangeEnd;
use gake_wire::TraceSpan;
use serde_json::{Value, json};

use super::otlp::attributes;
use super::otlp_grpc::{call, scoped};
use super::protobuf::ProtoMessage;
use crate::address::{SinkAddress, SinkKind};
use crate::carrier::FigureBatch;

pub(super) const METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// `SPAN_KIND_CLIENT`.
const CLIENT: u32 = 3;

/// `STATUS_CODE_ERROR`.
const ERROR: u32 = 2;

/// The first status that counts as an error.
const FIRST_ERROR: u16 = 400;

pub(crate) struct SpanWriter {
    service: String,
    tags: Vec<(String, String)>,
    is_grpc: bool,
    /// The start of the run in Unix nanoseconds.
    pub(crate) started: u64,
}

enum SpanAttribute {
    Text(String),
    Number(u64),
    Seconds(f64),
}

impl SpanWriter {
    pub(crate) fn new(address: &SinkAddress) -> Self {
        Self {
            service: address.option("service").unwrap_or("gake").to_owned(),
            tags: address.tags(),
            is_grpc: address.kind() == SinkKind::OtlpGrpc,
            started: 0,
        }
    }

    pub(crate) fn write(&self, spans: &[TraceSpan]) -> FigureBatch {
        let bytes = if self.is_grpc { self.protobuf(spans) } else { self.json(spans) };
        FigureBatch { bytes, rows: spans.len() as u64 }
    }

    fn json(&self, spans: &[TraceSpan]) -> Vec<u8> {
        let spans: Vec<Value> = spans.iter().map(|span| self.span_json(span)).collect();
        let common = self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let service = [("service.name", self.service.as_str())];
        let request = json!({"resourceSpans": [{
            "resource": {"attributes": attributes(service.into_iter().chain(common))},
            "scopeSpans": [{
                "scope": {"name": "gake", "version": env!("CARGO_PKG_VERSION")},
                "spans": spans,
            }],
        }]});
        request.to_string().into_bytes()
    }

    fn span_json(&self, span: &TraceSpan) -> Value {
        let pairs: Vec<Value> = attributes_of(span)
            .into_iter()
            .map(|(key, value)| {
                let value = match value {
                    SpanAttribute::Text(text) => json!({"stringValue": text}),
                    // 64-bit integers are strings in JSON.
                    SpanAttribute::Number(number) => json!({"intValue": number.to_string()}),
                    SpanAttribute::Seconds(seconds) => json!({"doubleValue": seconds}),
                };
                json!({"key": key, "value": value})
            })
            .collect();
        let status = if error(span).is_some() { json!({"code": ERROR}) } else { json!({}) };
        json!({
            "traceId": hex(&span.trace),
            "spanId": hex(&span.id),
            "name": span.method,
            "kind": CLIENT,
            "startTimeUnixNano": (self.started + span.fired).to_string(),
            "endTimeUnixNano": (self.started + span.done).to_string(),
            "attributes": pairs,
            "status": status,
        })
    }

    fn protobuf(&self, spans: &[TraceSpan]) -> Vec<u8> {
        let mut scoped = scoped();
        for span in spans {
            scoped.message(2, &self.span_message(span));
        }
        call(&self.service, &self.tags, &scoped)
    }

    fn span_message(&self, span: &TraceSpan) -> ProtoMessage {
        let mut message = ProtoMessage::default();
        message.bytes(1, &span.trace);
        message.bytes(2, &span.id);
        message.bytes(5, span.method.as_bytes());
        message.int64(6, CLIENT.into());
        message.fixed64(7, self.started + span.fired);
        message.fixed64(8, self.started + span.done);
        for (key, value) in attributes_of(span) {
            let mut any = ProtoMessage::default();
            match value {
                SpanAttribute::Text(text) => any.bytes(1, text.as_bytes()),
                SpanAttribute::Number(number) => any.int64(3, number),
                SpanAttribute::Seconds(seconds) => any.double(4, seconds),
            }
            let mut pair = ProtoMessage::default();
            pair.bytes(1, key.as_bytes());
            pair.message(2, &any);
            message.message(9, &pair);
        }
        if error(span).is_some() {
            let mut status = ProtoMessage::default();
            status.int64(3, ERROR.into());
            message.message(15, &status);
        }
        message
    }
}

fn attributes_of(span: &TraceSpan) -> Vec<(&'static str, SpanAttribute)> {
    let mut all = vec![
        ("http.request.method", SpanAttribute::Text(span.method.clone())),
        ("server.address", SpanAttribute::Text(span.host.clone())),
        ("server.port", SpanAttribute::Number(span.port.into())),
        ("url.full", SpanAttribute::Text(span.url.clone())),
        ("gake.arrival", SpanAttribute::Number(span.number)),
    ];
    if let Some(write) = span.write {
        // The lateness and the wait for a connection, which the span does not include.
        let waited = seconds(write.saturating_sub(span.due));
        all.push(("gake.due_to_write", SpanAttribute::Seconds(waited)));
    }
    if let ExchangeEnd::Response(response) = span.end {
        all.push(("http.response.status_code", SpanAttribute::Number(response.status.into())));
    }
    all.extend(error(span).map(|error| ("error.type", SpanAttribute::Text(error))));
    all
}

/// The error type of a failed request: its status or fault.
fn error(span: &TraceSpan) -> Option<String> {
    match span.end {
        ExchangeEnd::Response(response) => {
            (response.status >= FIRST_ERROR).then(|| response.status.to_string())
        }
        ExchangeEnd::Fault(fault) => Some(fault.name().to_owned()),
        ExchangeEnd::Unfinished => Some("unfinished".to_owned()),
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gake_core::record::{Fault, ResponseSummary};

    fn span(end: ExchangeEnd) -> TraceSpan {
        TraceSpan {
            trace: [0xab; 16],
            id: [1; 8],
            number: 300,
            due: 1,
            fired: 5,
            write: Some(1_000_000_001),
            done: 9,
            end,
            method: "GET".to_owned(),
            url: "http://h:80/a".to_owned(),
            host: "h".to_owned(),
            port: 80,
        }
    }

    fn writer(kind: &str) -> SpanWriter {
        let address = format!("{kind}=http://h:1?tags=env:t&service=shop").parse().unwrap();
        SpanWriter { started: 1_000, ..SpanWriter::new(&address) }
    }

    #[test]
    fn json_follows_the_semantic_conventions() {
        let answered = ExchangeEnd::Response(ResponseSummary { status: 503, body_bytes: 0 });
        let unwritten = TraceSpan { write: None, ..span(ExchangeEnd::Fault(Fault::Reset)) };
        let batch = writer("otlp").write(&[span(answered), unwritten]);
        assert_eq!(batch.rows, 2);
        let request: Value = serde_json::from_slice(&batch.bytes).unwrap();
        let all = &request["resourceSpans"][0];
        let pair = |all: &Value, key: &str| {
            let pairs = all["attributes"].as_array().unwrap();
            pairs.iter().find(|pair| pair["key"] == key).map(|pair| pair["value"].clone())
        };
        assert_eq!(pair(&all["resource"], "service.name").unwrap()["stringValue"], "shop");
        assert_eq!(pair(&all["resource"], "env").unwrap()["stringValue"], "t");
        let spans = &all["scopeSpans"][0]["spans"];
        assert_eq!(spans[0]["traceId"], "ab".repeat(16));
        assert_eq!(spans[0]["spanId"], "01".repeat(8));
        assert_eq!((&spans[0]["kind"], &spans[0]["name"]), (&json!(3), &json!("GET")));
        assert_eq!(spans[0]["startTimeUnixNano"], "1005");
        assert_eq!(spans[0]["endTimeUnixNano"], "1009");
        assert_eq!(pair(&spans[0], "url.full").unwrap()["stringValue"], "http://h:80/a");
        assert_eq!(pair(&spans[0], "server.port").unwrap()["intValue"], "80");
        assert_eq!(pair(&spans[0], "http.response.status_code").unwrap()["intValue"], "503");
        assert_eq!(pair(&spans[0], "error.type").unwrap()["stringValue"], "503");
        assert_eq!(pair(&spans[0], "gake.due_to_write").unwrap()["doubleValue"], 1.0);
        assert_eq!(spans[0]["status"]["code"], 2);
        assert_eq!(pair(&spans[1], "error.type").unwrap()["stringValue"], "reset");
        assert_eq!(pair(&spans[1], "http.response.status_code"), None);
        assert_eq!(pair(&spans[1], "gake.due_to_write"), None);
        let ok = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 });
        let batch = writer("otlp").write(&[span(ok)]);
        let request: Value = serde_json::from_slice(&batch.bytes).unwrap();
        let span = &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!((&span["status"], pair(span, "error.type")), (&json!({}), None));
    }
}
