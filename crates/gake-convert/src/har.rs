//! A HAR, as browsers save it.

use serde_json::Value;

use super::{ConvertedRequest, is_own_header};

/// Shortest value of a response that is looked for in later requests.
const VALUE_MIN: usize = 8;

/// The requests of a HAR that were answered, and which of their values came from a response.
pub(super) fn requests(har: &Value) -> Vec<ConvertedRequest> {
    let mut requests: Vec<ConvertedRequest> = Vec::new();
    let mut values: Vec<(String, String)> = Vec::new();
    for entry in har.pointer("/log/entries").and_then(Value::as_array).into_iter().flatten() {
        let Some(mut request) = request(entry) else { continue };
        for (value, from) in &values {
            if holds(&request, value) {
                request.remarks.push(format!("The value {value:?} is {from}: take it from there."));
            }
        }
        requests.push(request);
        let body = entry.pointer("/response/content/text").and_then(Value::as_str);
        if let Some(json) = body.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            texts(&json, "", &mut |path, value| {
                let is_new = values.iter().all(|known| known.0 != value);
                if value.len() >= VALUE_MIN && is_new {
                    let from = format!("{path} of the response to request {}", requests.len());
                    values.push((value.to_owned(), from));
                }
            });
        }
    }
    requests
}

fn request(entry: &Value) -> Option<ConvertedRequest> {
    let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
    let url = text("/request/url").filter(|url| url.starts_with("http"))?;
    let status = entry.pointer("/response/status").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok()).filter(|status| *status > 0);
    let headers = entry.pointer("/request/headers").and_then(Value::as_array);
    let header = |header: &Value| {
        let name = header.get("name")?.as_str()?;
        let value = header.get("value")?.as_str()?;
        (!is_own_header(name)).then(|| (name.to_owned(), value.to_owned()))
    };
    Some(ConvertedRequest {
        method: text("/request/method").unwrap_or("GET").to_owned(),
        url: url.to_owned(),
        headers: headers.into_iter().flatten().filter_map(header).collect(),
        body: text("/request/postData/text").map(str::to_owned),
        // Redirects are followed by the script, and are what a request before them did.
        status: status.filter(|status| !(300..400).contains(status)),
        remarks: Vec::new(),
    })
}

fn holds(request: &ConvertedRequest, value: &str) -> bool {
    request.url.contains(value)
        || request.body.as_ref().is_some_and(|body| body.contains(value))
        || request.headers.iter().any(|header| header.1.contains(value))
}

/// Every text in a value, with where it is.
fn texts(value: &Value, path: &str, take: &mut impl FnMut(&str, &str)) {
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::String(text) => take(path, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                texts(item, &inner(&at.to_string()), take);
            }
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                texts(value, &inner(key), take);
            }
        }
        _ => {}
    }
}
