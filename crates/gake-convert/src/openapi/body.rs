//! Bodies of operations.

use serde_json::Value;

use super::sample::{sample, text_of};
use super::{Description, object};
use crate::script::{MultipartPart, ScriptRequest};
use crate::template::Template;

const FORM: &str = "application/x-www-form-urlencoded";

/// Preferred content types, the best first, by substring.
const PREFERRED: [&str; 5] =
    ["application/json", "json", FORM, "multipart/form-data", "text/plain"];

const BOUNDARY: &str = "----gakeFormBoundary";

impl<'a> Description<'a> {
    /// Adds the body of an operation: an example, or a sample of its schema.
    pub(super) fn body(
        &mut self,
        operation: &'a Value,
        parameters: &[&'a Value],
        request: &mut ScriptRequest,
    ) {
        if self.root.get("swagger").is_some() {
            return self.body_of_parameters(operation, parameters, request);
        }
        let Some(body) = operation.get("requestBody") else { return };
        let contents: Vec<(&String, &Value)> = object(self.resolve(body).get("content")).collect();
        let preferred =
            PREFERRED.iter().find_map(|kind| contents.iter().find(|one| one.0.contains(kind)));
        let Some((kind, content)) = preferred.or(contents.first()) else { return };
        let schema = content.get("schema").unwrap_or(&Value::Null);
        let value = match self.example(content) {
            Some(example) => example,
            None => sample(self, schema),
        };
        self.content(kind, value, schema, request);
    }

    /// The same for Swagger 2, where bodies and form fields are parameters.
    fn body_of_parameters(
        &mut self,
        operation: &'a Value,
        parameters: &[&'a Value],
        request: &mut ScriptRequest,
    ) {
        let place =
            |one: &Value| one.get("in").and_then(Value::as_str).unwrap_or_default().to_owned();
        let consumes = operation.get("consumes").or_else(|| self.root.get("consumes"));
        let consumes: Vec<&str> = consumes
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(body) = parameters.iter().find(|one| place(one) == "body") {
            let schema = body.get("schema").unwrap_or(&Value::Null);
            let value = match self.example(body) {
                Some(example) => example,
                None => sample(self, schema),
            };
            let preferred =
                PREFERRED.iter().find_map(|kind| consumes.iter().find(|one| one.contains(kind)));
            let kind = preferred.or(consumes.first()).copied().unwrap_or("application/json");
            return self.content(kind, value, schema, request);
        }
        let fields: Vec<&Value> =
            parameters.iter().copied().filter(|one| place(one) == "formData").collect();
        if fields.is_empty() {
            return;
        }
        let is_file = |one: &&Value| one.get("type").and_then(Value::as_str) == Some("file");
        let is_multipart = consumes.iter().any(|kind| kind.starts_with("multipart/"));
        let mut parts = Vec::new();
        let has_required = fields.iter().any(|one| super::is_sent(one));
        for field in &fields {
            if has_required && !super::is_sent(field) {
                continue;
            }
            let name = field.get("name").and_then(Value::as_str).unwrap_or_default();
            parts.push(if is_file(field) {
                self.sample_file(name)
            } else {
                let (value, _) = self.sample_of(field);
                MultipartPart {
                    name: name.into(),
                    value: text_of(&value).into(),
                    ..MultipartPart::default()
                }
            });
        }
        if is_multipart && !consumes.contains(&FORM) || fields.iter().any(is_file) {
            request.multipart_body(&parts, BOUNDARY, &mut self.script.warnings);
        } else {
            request.form_body(parts.into_iter().map(|part| (part.name, part.value)).collect());
        }
    }

    /// A placeholder for a file of the user's.
    fn sample_file(&mut self, name: &str) -> MultipartPart {
        self.script
            .warnings
            .add("a file in a form is a placeholder: replace it with your own", name);
        MultipartPart {
            name: name.into(),
            value: "sample".into(),
            file: Some("sample.txt".to_owned()),
            kind: Some("application/octet-stream".to_owned()),
        }
    }

    /// Adds a body of a content type.
    fn content(
        &mut self,
        kind: &str,
        value: Value,
        schema: &'a Value,
        request: &mut ScriptRequest,
    ) {
        if kind.starts_with("multipart/") {
            let schema = self.resolve(schema);
            let mut parts = Vec::new();
            for (name, property) in object(schema.get("properties")) {
                let property = self.resolve(property);
                let is_binary = |one: &Value| {
                    let format = one.get("format").and_then(Value::as_str);
                    format == Some("binary") || one.get("contentMediaType").is_some()
                };
                let item = property.get("items").map(|items| self.resolve(items));
                if is_binary(property) || item.is_some_and(is_binary) {
                    parts.push(self.sample_file(name));
                } else if let Some(value) = value.get(name) {
                    let value = text_of(value).into();
                    parts.push(MultipartPart {
                        name: name.as_str().into(),
                        value,
                        ..MultipartPart::default()
                    });
                }
            }
            if parts.is_empty() {
                let own = object(Some(&value));
                parts.extend(own.map(|(name, value)| MultipartPart {
                    name: name.as_str().into(),
                    value: text_of(value).into(),
                    ..MultipartPart::default()
                }));
            }
            return request.multipart_body(&parts, BOUNDARY, &mut self.script.warnings);
        }
        if kind == FORM {
            let text = |text: String| Template::from(text);
            let mut fields = Vec::new();
            for (name, value) in object(Some(&value)) {
                match value {
                    Value::Array(items) => fields
                        .extend(items.iter().map(|item| (text(name.clone()), text(text_of(item))))),
                    value => fields.push((text(name.clone()), text(text_of(value)))),
                }
            }
            return request.form_body(fields);
        }
        let is_json = kind.contains("json") || kind == "*/*";
        let body = match value {
            Value::String(text) if !is_json => text,
            value if is_json => value.to_string(),
            Value::Null | Value::Object(_) | Value::Array(_) => {
                let text = "a body that is not JSON has no example, and is sent empty";
                self.script.warnings.add(text, kind);
                String::new()
            }
            value => value.to_string(),
        };
        let kind = if kind.contains('*') { "application/json" } else { kind };
        request.default_header("Content-Type", kind);
        request.body = Some(body.into());
    }
}
