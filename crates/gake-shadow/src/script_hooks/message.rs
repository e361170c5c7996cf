//! Converts requests and exchanges to script values, and return values back.
//!
//! Headers are an object: names in lower case, values strings, or arrays of strings for repeated
//! headers. Each byte of a value is a character up to U+00FF, as in the Fetch standard, so that
//! values survive the round trip.

use std::collections::HashMap;

use crate::exchange::{BackendOutcome, CapturedBody, MirroredExchange, RequestIds};
use crate::hooks::{HookRequest, HookRequestHead, Selection};
use bytes::Bytes;
use gake_script::Value;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::options::{BodyFormat, ScriptHookOptions};

/// The argument of `selectBackends`.
pub(super) fn head(request: &HookRequestHead) -> Value {
    let [id, connection, sequence] = ids(request.ids);
    Value::map([
        id,
        connection,
        sequence,
        ("method", Value::text(request.method.as_str())),
        ("uri", Value::Text(request.uri.to_string())),
        ("headers", headers(&request.headers)),
        ("client", Value::Text(request.client.to_string())),
    ])
}

/// The numbers of a request, as every function gets them.
fn ids(ids: RequestIds) -> [(&'static str, Value); 3] {
    let RequestIds { id, connection, sequence } = ids;
    [("id", id), ("connection", connection), ("sequence", sequence)]
        .map(|(name, number)| (name, Value::Number(number as f64)))
}

/// The result of `selectBackends`.
pub(super) fn selection(returned: Value) -> Result<Selection, String> {
    let wrong = || "must return \"all\", \"race\" or an array of names".to_owned();
    match returned {
        Value::Null => Ok(Selection::All),
        Value::Text(text) if text == "all" => Ok(Selection::All),
        Value::Text(text) if text == "race" => Ok(Selection::Race),
        Value::List(names) => names
            .into_iter()
            .map(|name| match name {
                Value::Text(name) => Ok(name),
                _ => Err(wrong()),
            })
            .collect::<Result<_, _>>()
            .map(Selection::Names),
        _ => Err(wrong()),
    }
}

/// The argument of `mungeRequest`.
pub(super) fn request(request: &HookRequest, how: BodyFormat) -> Value {
    let mut properties = vec![
        ("method".to_owned(), Value::text(request.method.as_str())),
        ("uri".to_owned(), Value::Text(request.uri.to_string())),
        ("headers".to_owned(), headers(&request.headers)),
    ];
    properties.extend(ids(request.ids).map(|(name, number)| (name.to_owned(), number)));
    let body = request.body.as_ref().and_then(|bytes| body(bytes, how));
    properties.extend(body.map(|body| ("body".to_owned(), body)));
    Value::Map(properties)
}

/// Applies the result of `mungeRequest`, completely or, on an error, not at all.
pub(super) fn change(
    request: &mut HookRequest,
    returned: Value,
    how: BodyFormat,
) -> Result<(), String> {
    let properties = match returned {
        Value::Null => return Ok(()),
        Value::Map(properties) => properties,
        _ => return Err("must return a request or undefined".to_owned()),
    };
    let mut changed = request.clone();
    for (name, value) in properties {
        match (name.as_str(), value) {
            ("method", Value::Text(text)) => {
                let method = Method::from_bytes(text.as_bytes());
                changed.method = method.map_err(|_| format!("returned the method {text:?}"))?;
            }
            ("uri", Value::Text(text)) => changed.uri = uri(&text)?,
            ("headers", Value::Map(named)) => changed.headers = header_map(named)?,
            ("body", value) => changed.body = Some(new_body(value, changed.body.take(), how)?),
            // A hook may return its argument with changes.
            ("id" | "connection" | "sequence", _) => {}
            ("method" | "uri", _) => return Err(format!("returned a {name} that is not a string")),
            ("headers", _) => return Err("returned headers that are not an object".to_owned()),
            _ => {
                return Err(format!(
                    "returned {name:?}; a request has method, uri, headers and body"
                ));
            }
        }
    }
    *request = changed;
    Ok(())
}

fn uri(text: &str) -> Result<Uri, String> {
    let path = text.starts_with('/') || text == "*";
    let uri = text.parse().ok().filter(|_| path);
    uri.ok_or_else(|| format!("returned the uri {text:?}, which is not a path"))
}

fn new_body(value: Value, old: Option<Bytes>, how: BodyFormat) -> Result<Bytes, String> {
    let Some(old) = old else {
        return Err("returned a body; options.requestBody must be \"text\" or \"bytes\"".to_owned());
    };
    match value {
        // An untouched body that is not UTF-8 must stay the same.
        value if body(&old, how).as_ref() == Some(&value) => Ok(old),
        Value::Text(text) => Ok(text.into()),
        Value::Bytes(bytes) => Ok(bytes),
        Value::Null => Ok(Bytes::new()),
        _ => Err("returned a body that is neither a string nor a Uint8Array".to_owned()),
    }
}

/// The argument of `backendsFinished`.
pub(super) fn exchange(exchange: &MirroredExchange, options: &ScriptHookOptions) -> Value {
    let received = &exchange.request;
    let mut request = vec![
        ("method".to_owned(), Value::text(received.method.as_str())),
        ("uri".to_owned(), Value::Text(received.uri.to_string())),
        ("headers".to_owned(), headers(&received.headers)),
    ];
    add_body(&mut request, &received.body, options.request_body);
    let backends = exchange.backends.iter();
    let backends = backends.map(|one| (one.name.to_string(), outcome(one, options)));
    let [id, connection, sequence] = ids(exchange.ids);
    Value::map([
        id,
        connection,
        sequence,
        ("time", ms(exchange.received_unix_ns)),
        ("client", exchange.client.map_or(Value::Null, |client| Value::Text(client.to_string()))),
        ("request", Value::Map(request)),
        ("backends", Value::Map(backends.collect())),
    ])
}

fn outcome(outcome: &BackendOutcome, options: &ScriptHookOptions) -> Value {
    let mut properties = vec![("role".to_owned(), Value::text(outcome.role.name()))];
    let mut add = |name: &str, value| properties.push((name.to_owned(), value));
    add("connectMs", ms(outcome.connect_ns));
    add("firstByteMs", outcome.first_byte_ns.map_or(Value::Null, ms));
    add("totalMs", ms(outcome.total_ns));
    match &outcome.result {
        Ok(response) => {
            add("status", Value::Number(response.status.as_u16().into()));
            add("headers", headers(&response.headers));
            add_body(&mut properties, &response.body, options.response_body);
        }
        Err(failure) => {
            add("fault", Value::text(failure.name()));
            add("reason", Value::Text(failure.to_string()));
        }
    }
    Value::Map(properties)
}

fn add_body(properties: &mut Vec<(String, Value)>, captured: &CapturedBody, how: BodyFormat) {
    properties.extend(body(&captured.bytes, how).map(|body| ("body".to_owned(), body)));
    properties.push(("bodyLength".to_owned(), Value::Number(captured.len as f64)));
    properties.push(("bodyTruncated".to_owned(), Value::Bool(captured.truncated)));
}

fn body(bytes: &Bytes, how: BodyFormat) -> Option<Value> {
    match how {
        BodyFormat::None => None,
        BodyFormat::Text => Some(Value::Text(String::from_utf8_lossy(bytes).into_owned())),
        BodyFormat::Bytes => Some(Value::Bytes(bytes.clone())),
    }
}

fn ms(ns: u64) -> Value {
    Value::Number(ns as f64 / 1e6)
}

fn headers(map: &HeaderMap) -> Value {
    let text = |value: &HeaderValue| {
        Value::Text(value.as_bytes().iter().map(|byte| char::from(*byte)).collect())
    };
    let mut properties: Vec<(String, Value)> = Vec::with_capacity(map.keys_len());
    let mut repeated = HashMap::new();
    for (name, value) in map {
        // The values of one name need not be adjacent in the map.
        let index = *repeated.entry(name).or_insert(properties.len());
        match properties.get_mut(index) {
            None => properties.push((name.to_string(), text(value))),
            Some((_, Value::List(values))) => values.push(text(value)),
            Some((_, first)) => *first = Value::List(vec![std::mem::take(first), text(value)]),
        }
    }
    Value::Map(properties)
}

fn header_map(properties: Vec<(String, Value)>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(properties.len());
    for (name, value) in properties {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("returned a header called {name:?}"))?;
        let values = match value {
            Value::Null => continue,
            Value::List(values) => values,
            value => vec![value],
        };
        for value in values {
            let bytes = match value {
                Value::Text(text) => text.chars().map(|char| u8::try_from(char).ok()).collect(),
                Value::Number(number) => Some(number.to_string().into_bytes()),
                _ => None,
            };
            let value = bytes.and_then(|bytes: Vec<u8>| HeaderValue::from_bytes(&bytes).ok());
            let value = value.ok_or_else(|| format!("returned an invalid value for {name}"))?;
            map.try_append(&header, value).map_err(|_| "returned too many headers".to_owned())?;
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
