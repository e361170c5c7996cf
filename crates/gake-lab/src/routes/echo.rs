//! `/echo`: the request as JSON, without loss.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use serde_json::{Map, Value, json};

use crate::connection::HttpConnection;
use crate::handler::BodyPrefix;

/// Bytes of a body that are returned.
pub(crate) const BODY_CAP: usize = 1 << 20;

/// A repeated header has an array as its value. A body in UTF-8 is in `body`, any other in
/// `body_base64`; `body_bytes` is its full length and `truncated` whether the rest was left out.
pub(crate) fn render(head: &Parts, body: &BodyPrefix, connection: &HttpConnection) -> Bytes {
    let mut echo = json!({
        "method": head.method.as_str(),
        "path": head.uri.path(),
        "query": head.uri.query(),
        "version": format!("{:?}", head.version),
        "headers": headers(head),
        "body_bytes": body.total,
        "truncated": body.total > body.bytes.len() as u64,
        "connection": connection.number,
        "peer": connection.peer.map(|peer| peer.to_string()),
    });
    let (name, text) = match std::str::from_utf8(&body.bytes) {
        Ok(text) => ("body", text.to_owned()),
        Err(_) => ("body_base64", STANDARD.encode(&body.bytes)),
    };
    echo[name] = Value::String(text);
    let mut text = echo.to_string();
    text.push('\n');
    Bytes::from(text)
}

fn headers(head: &Parts) -> Map<String, Value> {
    let mut map = Map::new();
    for name in head.headers.keys() {
        // Values that are not UTF-8 are too rare for an encoding of their own.
        let text = |value: &http::HeaderValue| {
            Value::String(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut values: Vec<Value> = head.headers.get_all(name).iter().map(text).collect();
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        map.insert(name.as_str().to_owned(), value);
    }
    map
}
