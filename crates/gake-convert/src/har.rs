//! HAR files, as browsers save them.

use base64::Engine as _;
use serde_json::Value;

use crate::script::{
    MultipartPart, ScriptDraft, ScriptNode, ScriptRequest, is_own_header, multipart_text,
};
use crate::template::{Template, component, quoted};
use crate::warnings::Warnings;
use crate::{ConvertOptions, default_function};

/// The shortest value of a response that is searched for in later requests.
const VALUE_MIN: usize = 8;

/// The shortest pause that is kept, in milliseconds.
const PAUSE_MIN_MS: i64 = 100;

/// Types of responses that `skip_static` omits, by prefix.
const STATIC_TYPES: [&str; 4] = ["image/", "font/", "application/font", "text/css"];

/// Path suffixes that it omits when the response has no type.
const STATIC_ENDS: [&str; 11] =
    ["png", "jpg", "jpeg", "gif", "svg", "ico", "webp", "woff", "woff2", "ttf", "css"];

/// The requests of a HAR, with remarks on values that came from a response.
pub(crate) fn script(har: &Value, options: ConvertOptions) -> ScriptDraft {
    let mut script = ScriptDraft::default();
    let mut nodes = Vec::new();
    let mut values: Vec<(String, String)> = Vec::new();
    let mut end: Option<i64> = None;
    let mut count = 0;
    let entries = har.pointer("/log/entries").and_then(Value::as_array);
    let entries: Vec<&Value> = entries.into_iter().flatten().collect();
    // A recording includes the target of each redirect: following it would send it twice.
    let is_redirect = |entry: &&Value| status(entry).is_some_and(|code| code / 100 == 3);
    if entries.iter().any(is_redirect) {
        script.options =
            ["vus: 1,", "iterations: 1,", "maxRedirects: 0,"].map(str::to_owned).to_vec();
    }
    for entry in entries {
        if options.skip_static && is_static(entry) {
            script.warnings.add("an image, font or style sheet is left out", "");
            continue;
        }
        let Some(mut request) = request(entry, &mut script.warnings) else { continue };
        for (value, from) in &values {
            if holds(&request, value) {
                request.remarks.push(format!(
                    "The value {value:?} is {from}: extract it instead of hard-coding it."
                ));
                script
                    .warnings
                    .add("a value of an earlier response is sent as it was recorded", from);
            }
        }
        if options.think {
            nodes.extend(pause(entry, &mut end));
        }
        nodes.push(ScriptNode::Request(Box::new(request)));
        count += 1;
        let body = entry.pointer("/response/content/text").and_then(Value::as_str);
        if let Some(json) = body.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            texts(&json, "", &mut |path, value| {
                let is_new = values.iter().all(|known| known.0 != value);
                if value.len() >= VALUE_MIN && is_new {
                    let from = format!("{path} of the response to request {count}");
                    values.push((value.to_owned(), from));
                }
            });
        }
    }
    script.functions = default_function(nodes);
    script
}

fn text<'a>(entry: &'a Value, pointer: &str) -> Option<&'a str> {
    entry.pointer(pointer).and_then(Value::as_str)
}

fn status(entry: &Value) -> Option<u16> {
    let status = entry.pointer("/response/status").and_then(Value::as_u64);
    status.and_then(|status| u16::try_from(status).ok()).filter(|status| *status > 0)
}

fn is_static(entry: &Value) -> bool {
    let kind = text(entry, "/response/content/mimeType").unwrap_or_default();
    let url = text(entry, "/request/url").unwrap_or_default();
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let end = path.rsplit('.').next().unwrap_or_default();
    STATIC_TYPES.iter().any(|one| kind.starts_with(one))
        || (!kind.contains("html") && !kind.contains("json"))
            && STATIC_ENDS.iter().any(|one| end.eq_ignore_ascii_case(one))
}

/// The names and values of a list.
fn pairs<'a>(entry: &'a Value, pointer: &str) -> Vec<(&'a str, &'a str)> {
    let list = entry.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let pair = |one: &'a Value| {
        let value = one.get("value").and_then(Value::as_str).unwrap_or_default();
        Some((one.get("name")?.as_str()?, value))
    };
    list.filter_map(pair).collect()
}

fn request(entry: &Value, warnings: &mut Warnings) -> Option<ScriptRequest> {
    let url = text(entry, "/request/url")?;
    if !url.starts_with("http") {
        if url.starts_with("ws") {
            warnings.add("a WebSocket is left out", url);
        }
        return None;
    }
    let mut request = ScriptRequest {
        method: text(entry, "/request/method").unwrap_or("GET").to_owned(),
        url: url.split('#').next().unwrap_or_default().into(),
        status: status(entry).filter(|status| *status != 304),
        ..ScriptRequest::default()
    };
    for (name, value) in pairs(entry, "/request/headers") {
        if !is_own_header(name) {
            request.headers.push((name.to_owned(), value.into()));
        }
    }
    if !url.contains('?') {
        for (name, value) in pairs(entry, "/request/queryString") {
            request.add_query(&once_encoded(name), once_encoded(value).into());
        }
    }
    let cookies = pairs(entry, "/request/cookies");
    if !cookies.is_empty() && !request.has_header("cookie") {
        let cookies = cookies.iter().map(|(name, value)| format!("{name}={value}"));
        request.set_header("Cookie", cookies.collect::<Vec<_>>().join("; "));
    }
    body(entry, &mut request, warnings);
    Some(request)
}

fn body(entry: &Value, request: &mut ScriptRequest, warnings: &mut Warnings) {
    let kind = text(entry, "/request/postData/mimeType").unwrap_or_default();
    let params = entry.pointer("/request/postData/params").and_then(Value::as_array);
    let params = params.filter(|params| !params.is_empty());
    match (text(entry, "/request/postData/text").filter(|text| !text.is_empty()), params) {
        (Some(body), _) => {
            let encoding = text(entry, "/request/postData/encoding")
                .or_else(|| text(entry, "/request/postData/_encoding"));
            request.body = Some(match encoding {
                Some("base64") => decoded(body),
                _ => body.into(),
            });
        }
        (None, Some(params)) if kind.starts_with("multipart/") => {
            let own = request.headers.iter().find(|one| one.0.eq_ignore_ascii_case("content-type"));
            let own = own.and_then(|header| header.1.literal()).unwrap_or(kind);
            let boundary = own.split("boundary=").nth(1).unwrap_or("----gakeFormBoundary");
            let boundary =
                boundary.split(';').next().unwrap_or_default().trim_matches('"').to_owned();
            let parts: Vec<MultipartPart> =
                params.iter().map(|param| part(param, warnings)).collect();
            request.body = Some(multipart_text(&parts, &boundary));
            let kind = format!("multipart/form-data; boundary={boundary}");
            request.set_header("Content-Type", kind);
        }
        (None, Some(_)) => {
            let fields = pairs(entry, "/request/postData/params");
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}={}", once_encoded(name), once_encoded(value)));
            request.body = Some(fields.collect::<Vec<_>>().join("&").into());
            request.default_header("Content-Type", "application/x-www-form-urlencoded");
        }
        (None, None) => {
            let size = entry.pointer("/request/bodySize").and_then(Value::as_i64);
            if size.is_some_and(|size| size > 0) {
                warnings.add("a body is not in the recording", &request.url.label());
            }
        }
    }
    if request.body.is_some() && !kind.is_empty() {
        request.default_header("Content-Type", kind);
    }
}

fn part(param: &Value, warnings: &mut Warnings) -> MultipartPart {
    let own = |name: &str| param.get(name).and_then(Value::as_str);
    let file = own("fileName").filter(|name| !name.is_empty());
    if let Some(name) = file.filter(|_| own("value").is_none_or(str::is_empty)) {
        warnings.add("a file's contents are not in the recording, and sent empty", name);
    }
    MultipartPart {
        name: own("name").unwrap_or_default().into(),
        value: own("value").unwrap_or_default().into(),
        file: file.map(str::to_owned),
        kind: own("contentType").filter(|kind| !kind.is_empty()).map(str::to_owned),
    }
}

/// Base64 as text if it is UTF-8, else decoded by the script.
fn decoded(body: &str) -> Template {
    let bytes = base64::engine::general_purpose::STANDARD.decode(body.trim());
    match bytes.map(String::from_utf8) {
        Ok(Ok(text)) => text.into(),
        Ok(Err(_)) => Template::code(format!("encoding.b64decode({})", quoted(body.trim()))),
        Err(_) => body.into(),
    }
}

/// Encodes only what is not encoded: recorders differ.
fn once_encoded(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.!~*'()+%".contains(c);
    let escapes = text
        .split('%')
        .skip(1)
        .all(|rest| rest.get(..2).is_some_and(|two| two.chars().all(|c| c.is_ascii_hexdigit())));
    if text.contains('%') && escapes && text.chars().all(plain) {
        return text.to_owned();
    }
    component(text).replace("%20", "+")
}

/// The pause between the end of the previous entry and the start of this one.
fn pause(entry: &Value, end: &mut Option<i64>) -> Option<ScriptNode> {
    let start: jiff::Timestamp = text(entry, "/startedDateTime")?.parse().ok()?;
    let start = start.as_millisecond();
    let time = entry.get("time").and_then(Value::as_f64).unwrap_or_default();
    let pause = end.map_or(0, |end| start - end);
    let own_end = start.saturating_add(time.max(0.0) as i64);
    *end = Some(end.unwrap_or(own_end).max(own_end));
    let seconds = format!("{}.{:03}", pause / 1000, pause.rem_euclid(1000));
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.').to_owned();
    (pause >= PAUSE_MIN_MS)
        .then(|| ScriptNode::Lines(vec![String::new(), format!("sleep({seconds});")]))
}

fn holds(request: &ScriptRequest, value: &str) -> bool {
    request.url.contains(value)
        || request.body.as_ref().is_some_and(|body| body.contains(value))
        || request.headers.iter().any(|header| header.1.contains(value))
}

/// Passes every text in a value, with its path, to `take`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_encoded_once() {
        let cases = [("a b", "a+b"), ("a%20b", "a%20b"), ("100%", "100%25"), ("a+b", "a%2Bb")];
        for (text, encoded) in cases {
            assert_eq!(once_encoded(text), encoded);
        }
    }
}
