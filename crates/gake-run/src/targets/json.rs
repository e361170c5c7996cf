//! Vegeta's `json` format: one object per line.

use std::fmt;
use std::io::BufRead;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::line_reader::LineReader;
use super::{QuotedText, Target, TargetBody, TargetError, TargetErrorKind as Kind, is_token};

/// Parses the next target; `None` at the end.
pub(super) fn next<R: BufRead>(lines: &mut LineReader<R>) -> Result<Option<Target>, TargetError> {
    loop {
        match lines.next()? {
            None => return Ok(None),
            Some((_, "")) => {}
            Some((line, text)) => {
                let target = target(text).map_err(|kind| TargetError { line, kind })?;
                return Ok(Some(Target { line, ..target }));
            }
        }
    }
}

/// The keys of a target; others are ignored, as Vegeta ignores ours.
#[derive(Deserialize)]
struct TargetJson {
    method: Option<String>,
    url: Option<String>,
    body: Option<String>,
    header: Option<HeaderObject>,
    weight: Option<u32>,
    label: Option<String>,
}

fn target(line: &str) -> Result<Target, Kind> {
    if !line.starts_with('{') {
        // Otherwise an array of the right length would be accepted.
        return Err(Kind::Json { message: "expected a JSON object".to_owned(), column: 1 });
    }
    let object: TargetJson = serde_json::from_str(line).map_err(|error| fault(&error))?;
    let given =
        |text: Option<String>, key| text.filter(|text| !text.is_empty()).ok_or(Kind::Missing(key));
    let method = given(object.method, "method")?;
    if !is_token(&method) {
        return Err(Kind::Method(QuotedText::new(&method)));
    }
    let url = given(object.url, "url")?;
    if url.chars().any(char::is_control) {
        return Err(Kind::Url(QuotedText::new(&url)));
    }
    let headers = object.header.map(|h| h.0).unwrap_or_default();
    for (name, value) in &headers {
        if !is_token(name) || super::breaks_line(value) {
            return Err(Kind::Header(QuotedText::new(&format!("{name}: {value}"))));
        }
    }
    let weight = object.weight.unwrap_or(1);
    if weight == 0 {
        return Err(Kind::Weight);
    }
    let label = object.label.filter(|label| !label.is_empty());
    let body = body(object.body.unwrap_or_default())?;
    Ok(Target { method, url, headers, body, label, weight, line: 0 })
}

fn body(mut text: String) -> Result<TargetBody, Kind> {
    // Encoders that wrap their lines leave line breaks, which Vegeta's decoder skips.
    text.retain(|c| !matches!(c, '\r' | '\n'));
    match text.as_str() {
        "" => Ok(TargetBody::None),
        text => STANDARD.decode(text).map(TargetBody::Bytes).map_err(Kind::Base64),
    }
}

fn fault(error: &serde_json::Error) -> Kind {
    let text = error.to_string();
    // The parser counts lines within the text it is given, where there is only one.
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    Kind::Json { message: message.to_owned(), column: error.column() }
}

/// The header object, in the order it is written.
struct HeaderObject(Vec<(String, String)>);

impl<'de> Deserialize<'de> for HeaderObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;

        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = HeaderObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of header names with arrays of values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderObject, A::Error> {
                let mut headers = Vec::new();
                while let Some((name, values)) = map.next_entry::<String, Option<Vec<String>>>()? {
                    let values = values.unwrap_or_default().into_iter();
                    headers.extend(values.map(|value| (name.clone(), value)));
                }
                Ok(HeaderObject(headers))
            }
        }

        deserializer.deserialize_map(HeaderVisitor)
    }
}
