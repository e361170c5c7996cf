//! Records as JSON, one object per line.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::decode_error::{DecodeError, read_line};
use super::go;
use super::record::{Headers, VegetaRecord};

#[derive(Debug, Default)]
pub(super) struct Decoder {
    line: Vec<u8>,
}

impl Decoder {
    /// The next record; `None` at the end.
    pub(super) fn next(
        &mut self,
        input: &mut impl BufRead,
    ) -> Result<Option<VegetaRecord>, DecodeError> {
        loop {
            self.line.clear();
            if !read_line(input, &mut self.line)? {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let whole = self.line.ends_with(b"\n");
        match serde_json::from_slice::<RecordJson<'_>>(&self.line) {
            Ok(object) => object.record().map(Some).map_err(DecodeError::Record),
            Err(error) if !whole && error.is_eof() => Err(DecodeError::CutOff),
            Err(error) => Err(DecodeError::Record(format!("it is not a result in JSON: {error}"))),
        }
    }
}

/// A line. Missing fields are zero, as in Vegeta's reader; without a timestamp it is no result.
#[derive(Debug, serde::Deserialize)]
struct RecordJson<'a> {
    #[serde(default)]
    attack: String,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    code: u16,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(default)]
    latency: i64,
    #[serde(default)]
    bytes_out: u64,
    #[serde(default)]
    bytes_in: u64,
    #[serde(default)]
    error: String,
    #[serde(default, borrow)]
    body: Option<Cow<'a, str>>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: Option<OrderedHeaders>,
}

impl RecordJson<'_> {
    fn record(self) -> Result<VegetaRecord, String> {
        let body = self.body.as_deref().unwrap_or_default();
        Ok(VegetaRecord {
            attack: self.attack,
            seq: self.seq,
            code: self.code,
            timestamp: go::parse_timestamp(&self.timestamp)
                .ok_or_else(|| format!("its timestamp {:?} makes no sense", self.timestamp))?,
            latency: self.latency,
            bytes_out: self.bytes_out,
            bytes_in: self.bytes_in,
            error: self.error,
            body: STANDARD.decode(body).map_err(|error| format!("its body: {error}"))?,
            method: self.method,
            url: self.url,
            headers: self.headers.map(|headers| headers.0),
        })
    }
}

/// Headers in the order of the file.
#[derive(Debug)]
struct OrderedHeaders(Headers);

impl<'de> Deserialize<'de> for OrderedHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = OrderedHeaders;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of header names and lists of values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedHeaders, A::Error> {
                let mut headers = Headers::new();
                while let Some((name, values)) = map.next_entry::<_, Option<Vec<String>>>()? {
                    headers.push((name, values.unwrap_or_default()));
                }
                Ok(OrderedHeaders(headers))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

/// Appends a record as a line.
pub(super) fn push_record(out: &mut Vec<u8>, record: &VegetaRecord) {
    let mut object = LineWriter { out };
    object.key("{\"attack\":");
    object.text(&record.attack);
    object.number(",\"seq\":", record.seq);
    object.number(",\"code\":", record.code);
    object.number(",\"timestamp\":\"", go::timestamp(record.timestamp));
    object.number("\",\"latency\":", record.latency);
    object.number(",\"bytes_out\":", record.bytes_out);
    object.number(",\"bytes_in\":", record.bytes_in);
    object.key(",\"error\":");
    object.text(&record.error);
    object.key(",\"body\":");
    if record.body.is_empty() {
        object.key("null");
    } else {
        object.number("\"", STANDARD.encode(&record.body));
        object.key("\"");
    }
    object.key(",\"method\":");
    object.text(&record.method);
    object.key(",\"url\":");
    object.text(&record.url);
    object.key(",\"headers\":");
    match &record.headers {
        None => object.key("null"),
        Some(headers) => object.headers(headers),
    }
    object.key("}\n");
}

struct LineWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl LineWriter<'_> {
    /// Appends a text that needs no escape.
    fn key(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Appends a key and a value that needs no escape.
    fn number(&mut self, key: &str, value: impl fmt::Display) {
        self.key(key);
        self.key(&value.to_string());
    }

    fn text(&mut self, text: &str) {
        go::push_json_text(self.out, text);
    }

    fn headers(&mut self, headers: &Headers) {
        self.key("{");
        for (i, (name, values)) in headers.iter().enumerate() {
            self.key(if i > 0 { "," } else { "" });
            self.text(name);
            self.key(":[");
            for (i, value) in values.iter().enumerate() {
                self.key(if i > 0 { "," } else { "" });
                self.text(value);
            }
            self.key("]");
        }
        self.key("}");
    }
}
