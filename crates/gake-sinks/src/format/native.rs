//! Prometheus' native histograms for remote write.

use std::collections::BTreeMap;
use std::iter::once;

use gake_core::record::Histogram;

use super::protobuf::ProtoMessage;

/// Upper limit of the zero bucket: 2^-128.
const ZERO: f64 = 2.938_735_877_055_719e-39;

/// A histogram of numbers divided by `unit`. Buckets grow by the factor 2^(2^-`schema`).
pub(super) fn native(histogram: &Histogram, unit: f64, schema: i32, unix_ms: u64) -> ProtoMessage {
    let (mut positive, mut negative) = (BTreeMap::new(), BTreeMap::new());
    let mut zeros = 0;
    for (low, high, count) in histogram.number_buckets() {
        let value = f64::midpoint(low, high) / unit;
        if value.abs() <= ZERO {
            zeros += count;
            continue;
        }
        let side = if value > 0.0 { &mut positive } else { &mut negative };
        *side.entry(number(value.abs(), schema)).or_default() += count;
    }
    let mut message = ProtoMessage::default();
    message.int64(1, histogram.count());
    message.double(3, histogram.sum_number() / unit);
    message.sint(4, schema.into());
    message.double(5, ZERO);
    message.int64(6, zeros);
    buckets(&mut message, 8, &negative);
    buckets(&mut message, 11, &positive);
    message.int64(15, unix_ms);
    message
}

/// The number n of the bucket (base^(n-1), base^n] of a positive value.
fn number(value: f64, schema: i32) -> i32 {
    (value.log2() * f64::from(schema).exp2()).ceil() as i32
}

/// Adds the buckets of one side: spans of adjacent buckets in `field`, differences of counts in the
/// next field.
fn buckets(message: &mut ProtoMessage, field: u32, counts: &BTreeMap<i32, u64>) {
    let mut spans: Vec<(i32, u32)> = Vec::new();
    let mut end = 0;
    for &bucket in counts.keys() {
        match spans.last_mut() {
            Some(span) if bucket == end => span.1 += 1,
            // The first offset is absolute, the others relative to the end of the span before.
            _ => spans.push((bucket - end, 1)),
        }
        end = bucket + 1;
    }
    for (offset, length) in spans {
        let mut span = ProtoMessage::default();
        span.sint(1, offset.into());
        span.int64(2, length.into());
        message.message(field, &span);
    }
    let befores = once(0).chain(counts.values().map(|count| count.cast_signed()));
    let deltas: Vec<i64> = std::iter::zip(counts.values(), befores)
        .map(|(count, before)| count.cast_signed() - before)
        .collect();
    message.packed_sint(field + 1, &deltas);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: &str = r#"
        syntax = "proto3";
        message Span { sint32 offset = 1; uint32 length = 2; }
        message Histogram {
          uint64 count = 1; double sum = 3; sint32 schema = 4; double zero_threshold = 5;
          uint64 zero_count = 6; repeated Span negative_spans = 8;
          repeated sint64 negative_deltas = 9; repeated Span positive_spans = 11;
          repeated sint64 positive_deltas = 12; int64 timestamp = 15;
        }
        service S { rpc Decode(Histogram) returns (Histogram); }
    "#;

    #[test]
    fn buckets_are_spans_and_differences() {
        let mut histogram = Histogram::new();
        for (value, count) in [(1.5, 3), (0.75, 1), (0.0, 2), (3.0, 5), (100.0, 1), (-3.0, 4)] {
            (0..count).for_each(|_| histogram.record_number(value));
        }
        let schema =
            gake_wire::GrpcSchema::compile(&["h.proto".to_owned()], |_| Some(PROTO.into()));
        let method = schema.unwrap().method("/S/Decode").unwrap();
        let decoded = method.decode(&native(&histogram, 1.0, 0, 7).bytes).unwrap();
        let json: serde_json::Value = serde_json::from_str(&decoded).unwrap();
        assert_eq!((&json["count"], &json["zeroCount"]), (&"16".into(), &"2".into()));
        assert_eq!(json["sum"].as_f64(), Some(108.25));
        // Base 2: 0.75 is in the bucket 0, 1.5 in 1, 3 in 2, 100 in 7.
        let spans = serde_json::json!([{"offset": 0, "length": 3}, {"offset": 4, "length": 1}]);
        assert_eq!(json["positiveSpans"], spans);
        assert_eq!(json["positiveDeltas"], serde_json::json!(["1", "2", "2", "-4"]));
        assert_eq!(json["negativeSpans"], serde_json::json!([{"offset": 2, "length": 1}]));
        assert_eq!(json["negativeDeltas"], serde_json::json!(["4"]));
    }
}
