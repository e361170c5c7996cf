//! The script of some requests.

use super::ConvertedRequest;

/// A script that sends the requests in order and checks their responses.
#[must_use]
pub fn script(requests: &[ConvertedRequest]) -> String {
    let mut script = String::from(
        "import http from 'k6/http';\nimport { check } from 'k6';\n\n\
         export const options = { vus: 1, iterations: 1 };\n\n\
         export default function () {\n  let res;\n",
    );
    for (number, request) in (1..).zip(requests) {
        script.push_str(&format!("\n  // Request {number}\n"));
        for remark in &request.remarks {
            script.push_str(&format!("  // {}\n", remark.replace(['\n', '\r'], " ")));
        }
        script.push_str(&call(request));
        script.push_str(&checks(request));
    }
    script.push_str("}\n");
    script
}

fn call(request: &ConvertedRequest) -> String {
    let body = request.body.as_deref().map_or_else(|| "null".to_owned(), literal);
    let mut params = String::new();
    if !request.headers.is_empty() {
        params.push_str(", {\n    headers: {\n");
        for (name, value) in &request.headers {
            params.push_str(&format!("      {}: {},\n", literal(name), literal(value)));
        }
        params.push_str("    },\n  }");
    }
    let (method, url) = (literal(&request.method), literal(&request.url));
    format!("  res = http.request({method}, {url}, {body}{params});\n")
}

fn checks(request: &ConvertedRequest) -> String {
    let path = request.url.split(['?', '#']).next().unwrap_or_default();
    let (what, holds) = match request.status {
        Some(status) => (format!("status {status}"), format!("r.status === {status}")),
        None => ("status below 400".to_owned(), "r.status > 0 && r.status < 400".to_owned()),
    };
    // A name is the same in every run, whatever the environment holds.
    let name = quoted(&format!("{} {path}: {what}", request.method));
    format!("  check(res, {{ {name}: (r) => {holds} }});\n")
}

/// A text of JavaScript; `{{name}}` in it is taken from `__ENV`.
fn literal(text: &str) -> String {
    if !text.contains("{{") {
        return quoted(text);
    }
    let mut template = String::from("`");
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let Some(end) = rest[at..].find("}}") else { break };
        template.push_str(&escaped(&rest[..at]));
        let name = rest[at + 2..at + end].trim();
        template.push_str(&format!("${{__ENV[{}]}}", quoted(name)));
        rest = &rest[at + end + 2..];
    }
    template.push_str(&escaped(rest));
    template.push('`');
    template
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${")
}

/// JSON's texts are JavaScript's too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
