//! Encodes records as a gob stream: the definitions of Go's encoder, then one message per record.

use super::YEAR_1_TO_1970;
use crate::vegeta::record::{Headers, Timestamp, VegetaRecord};

/// The types that Go's encoder sends before its first result: `Result` (number 64), `Time` (65),
/// `Header` (67) and `[]string` (66). They depend only on Vegeta's declaration.
const DEFINITIONS: &[u8] = b"\xff\x96\x7f\x03\x01\x01\x06Result\x01\xff\x80\x00\x01\x0c\
    \x01\x06Attack\x01\x0c\x00\x01\x03Seq\x01\x06\x00\x01\x04Code\x01\x06\x00\
    \x01\x09Timestamp\x01\xff\x82\x00\x01\x07Latency\x01\x04\x00\x01\x08BytesOut\x01\x06\x00\
    \x01\x07BytesIn\x01\x06\x00\x01\x05Error\x01\x0c\x00\x01\x04Body\x01\x0a\x00\
    \x01\x06Method\x01\x0c\x00\x01\x03URL\x01\x0c\x00\x01\x07Headers\x01\xff\x86\x00\x00\x00\
    \x10\xff\x81\x05\x01\x01\x04Time\x01\xff\x82\x00\x00\x00\
    \x17\xff\x85\x04\x01\x01\x06Header\x01\xff\x86\x00\x01\x0c\x01\xff\x84\x00\x00\
    \x0c\xff\x83\x02\x01\x02\xff\x84\x00\x01\x0c\x00\x00";

/// The number of the type `Result`, as encoded.
const RESULT: i64 = 64;

/// Appends the definitions, which precede the first record.
pub(in super::super) fn push_definitions(out: &mut Vec<u8>) {
    out.extend_from_slice(DEFINITIONS);
}

/// Appends a record as a message.
pub(in super::super) fn push_record(out: &mut Vec<u8>, record: &VegetaRecord) {
    let mut fields = StructFields { out: Vec::with_capacity(256), last: -1 };
    push_int(&mut fields.out, RESULT);
    fields.text(0, &record.attack);
    fields.uint(1, record.seq);
    fields.uint(2, record.code.into());
    fields.bytes(3, &time(record.timestamp));
    fields.int(4, record.latency);
    fields.uint(5, record.bytes_out);
    fields.uint(6, record.bytes_in);
    fields.text(7, &record.error);
    fields.bytes(8, &record.body);
    fields.text(9, &record.method);
    fields.text(10, &record.url);
    if let Some(headers) = &record.headers {
        fields.headers(11, headers);
    }
    fields.out.push(0);
    push_uint(out, fields.out.len() as u64);
    out.extend_from_slice(&fields.out);
}

/// The fields of a struct: each is preceded by its distance from the previous one, and zero values
/// are omitted.
struct StructFields {
    out: Vec<u8>,
    last: i64,
}

impl StructFields {
    fn start(&mut self, number: i64) -> &mut Vec<u8> {
        push_uint(&mut self.out, (number - self.last) as u64);
        self.last = number;
        &mut self.out
    }

    fn uint(&mut self, number: i64, value: u64) {
        if value != 0 {
            push_uint(self.start(number), value);
        }
    }

    fn int(&mut self, number: i64, value: i64) {
        if value != 0 {
            push_int(self.start(number), value);
        }
    }

    fn bytes(&mut self, number: i64, value: &[u8]) {
        if !value.is_empty() {
            push_bytes(self.start(number), value);
        }
    }

    fn text(&mut self, number: i64, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    /// An empty map is sent, unlike nil.
    fn headers(&mut self, number: i64, headers: &Headers) {
        let out = self.start(number);
        push_uint(out, headers.len() as u64);
        for (name, values) in headers {
            push_bytes(out, name.as_bytes());
            push_uint(out, values.len() as u64);
            for value in values {
                push_bytes(out, value.as_bytes());
            }
        }
    }
}

/// The binary form of Go's `time.Time`: a version, seconds since year 1, nanoseconds, and the zone
/// in minutes (-1 is UTC); version 2 adds the seconds of an odd zone.
fn time(timestamp: Timestamp) -> Vec<u8> {
    let seconds = timestamp.unix_ns.div_euclid(1_000_000_000) + YEAR_1_TO_1970;
    let nanos = timestamp.unix_ns.rem_euclid(1_000_000_000) as u32;
    let (minutes, odd) = match timestamp.offset {
        None => (-1, 0),
        Some(offset) => ((offset / 60) as i16, (offset % 60) as i8),
    };
    let mut out = vec![if odd == 0 { 1 } else { 2 }];
    out.extend_from_slice(&seconds.to_be_bytes());
    out.extend_from_slice(&nanos.to_be_bytes());
    out.extend_from_slice(&minutes.to_be_bytes());
    if odd != 0 {
        out.push(odd as u8);
    }
    out
}

/// An unsigned number: itself below 128, else the negated count of its bytes and the bytes.
fn push_uint(out: &mut Vec<u8>, value: u64) {
    if value < 128 {
        out.push(value as u8);
        return;
    }
    let bytes = value.to_be_bytes();
    let skip = (value.leading_zeros() / 8) as usize;
    out.push((bytes.len() - skip).wrapping_neg() as u8);
    out.extend_from_slice(&bytes[skip..]);
}

/// A signed number: the sign is in the lowest bit, and negative numbers are complemented.
fn push_int(out: &mut Vec<u8>, value: i64) {
    push_uint(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
