//! Bodies of requests.

use serde_json::Value;

use super::{enabled, is_enabled, list, plain, template};
use crate::script::{MultipartPart, ScriptDraft, ScriptRequest};
use crate::template::Template;

/// The content type of raw text, by its language.
const LANGUAGES: [(&str, &str); 5] = [
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("html", "text/html"),
    ("javascript", "application/javascript"),
    ("text", "text/plain"),
];

pub(super) fn is_some(body: &Value) -> bool {
    let mode = body.get("mode").and_then(Value::as_str).unwrap_or_default();
    body.get(mode).is_some_and(|own| match own {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => list.iter().any(is_enabled),
        Value::Object(entries) => !entries.is_empty(),
        _ => false,
    })
}

/// Adds a body and its content type.
pub(super) fn add(body: &Value, request: &mut ScriptRequest, script: &mut ScriptDraft) {
    let mode = body.get("mode").and_then(Value::as_str).unwrap_or_default();
    let own = body.get(mode);
    match mode {
        "raw" => {
            let raw = own.and_then(Value::as_str).unwrap_or_default();
            if raw.is_empty() {
                return;
            }
            let language = body.pointer("/options/raw/language").and_then(Value::as_str);
            let kind = LANGUAGES.iter().find(|known| Some(known.0) == language);
            request.body = Some(template(raw, script));
            request.default_header("Content-Type", kind.map_or("text/plain", |known| known.1));
        }
        "urlencoded" => {
            let fields = enabled(own)
                .into_iter()
                .map(|(name, value)| (template(&name, script), template(&value, script)));
            let fields: Vec<(Template, Template)> = fields.collect();
            if !fields.is_empty() {
                request.form_body(fields);
            }
        }
        "formdata" => {
            let parts = parts(own, script);
            if parts.is_empty() {
                return;
            }
            request.multipart_body(&parts, "----gakeFormBoundary", &mut script.warnings);
        }
        "graphql" => graphql(own, request, script),
        "file" => match own.and_then(|file| file.get("src")).and_then(Value::as_str) {
            Some(path) => {
                request.body = Some(Template::code(script.file(path)));
                request.default_header("Content-Type", "application/octet-stream");
            }
            None => script.warnings.add("a file body is left out because it names no file", ""),
        },
        _ => {}
    }
}

fn parts(own: Option<&Value>, script: &mut ScriptDraft) -> Vec<MultipartPart> {
    let mut parts = Vec::new();
    for field in list(own).filter(|field| is_enabled(field)) {
        let name = template(&field.get("key").map(plain).unwrap_or_default(), script);
        let kind = field.get("contentType").and_then(Value::as_str).filter(|kind| !kind.is_empty());
        let kind = kind.map(str::to_owned);
        if field.get("type").and_then(Value::as_str) != Some("file") {
            let value = template(&field.get("value").map(plain).unwrap_or_default(), script);
            parts.push(MultipartPart { name, value, file: None, kind });
            continue;
        }
        let paths = match field.get("src") {
            Some(Value::Array(paths)) => paths.iter().map(plain).collect(),
            Some(Value::String(path)) if !path.is_empty() => vec![path.clone()],
            _ => Vec::new(),
        };
        if paths.is_empty() {
            script.warnings.add("a form field names no file, and is sent empty", &name.label());
            let value = Template::code("''");
            parts.push(MultipartPart {
                name: name.clone(),
                value,
                file: Some("file".to_owned()),
                kind: kind.clone(),
            });
        }
        for path in paths {
            let file = path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            let value = Template::code(script.file(&path));
            parts.push(MultipartPart {
                name: name.clone(),
                value,
                file: Some(file),
                kind: kind.clone(),
            });
        }
    }
    parts
}

/// The JSON of a GraphQL request: the query, its variables, its operation.
fn graphql(own: Option<&Value>, request: &mut ScriptRequest, script: &mut ScriptDraft) {
    let text =
        |name: &str| own.and_then(|own| own.get(name)).filter(|own| !own.is_null()).map(plain);
    let query = Value::from(text("query").unwrap_or_default()).to_string();
    let variables = text("variables").filter(|variables| !variables.trim().is_empty());
    let mut json = format!("{{\"query\":{query}");
    if let Some(variables) = variables {
        json.push_str(&format!(",\"variables\":{variables}"));
    }
    if let Some(name) = text("operationName").filter(|name| !name.is_empty()) {
        json.push_str(&format!(",\"operationName\":{}", Value::from(name)));
    }
    json.push('}');
    request.body = Some(template(&json, script));
    request.default_header("Content-Type", "application/json");
}
