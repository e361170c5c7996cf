//! An OpenAPI description.

use serde_json::Value;

use super::ConvertedRequest;

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// A request for each operation. Parameters of its path, and the server where the description
/// names none, come from the environment; bodies are the examples that it gives.
pub(super) fn requests(description: &Value) -> Vec<ConvertedRequest> {
    let server = description.pointer("/servers/0/url").and_then(Value::as_str).unwrap_or_default();
    let server = match server.contains("://") {
        true => server.trim_end_matches('/').to_owned(),
        false => format!("{{{{BASE_URL}}}}{}", server.trim_end_matches('/')),
    };
    let paths = description.get("paths").and_then(Value::as_object).into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        METHODS.iter().filter_map(move |method| Some((path, *method, item.get(method)?)))
    });
    operations
        .map(|(path, method, operation)| ConvertedRequest {
            method: method.to_uppercase(),
            url: format!("{server}{}", path.replace('{', "{{").replace('}', "}}")),
            headers: headers(operation),
            body: example(operation),
            status: status(operation),
            remarks: operation
                .get("summary")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .into_iter()
                .collect(),
        })
        .collect()
}

/// The first success that is described.
fn status(operation: &Value) -> Option<u16> {
    let responses = operation.get("responses")?.as_object()?;
    responses.keys().filter_map(|key| key.parse().ok()).find(|status| (200..300).contains(status))
}

const JSON_BODY: &str = "/requestBody/content/application~1json";

fn headers(operation: &Value) -> Vec<(String, String)> {
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    operation.pointer(JSON_BODY).map(|_| json).into_iter().collect()
}

fn example(operation: &Value) -> Option<String> {
    let content = operation.pointer(JSON_BODY)?;
    let example = content.get("example").or_else(|| content.pointer("/schema/example"));
    Some(example.map_or_else(|| "{}".to_owned(), Value::to_string))
}
