//! OpenAPI 3 and Swagger 2 descriptions.

mod body;
mod sample;
mod security;

use serde_json::Value;

use crate::default_function;
use crate::script::{ScriptDraft, ScriptNode, ScriptRequest};
use crate::template::{Template, component, url_text};

use sample::{sample, text_of};

const METHODS: [&str; 8] = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];

/// The variable that holds the server's URL.
const BASE_URL: &str = "BASE_URL";

/// A description in conversion.
struct Description<'a> {
    root: &'a Value,
    script: ScriptDraft,
}

/// An operation and its path item.
struct Operation<'a> {
    path: &'a str,
    item: &'a Value,
    own: &'a Value,
}

/// One request per operation, in the order of the text. Values come from the description's
/// examples, defaults, enumerations and bounds; all others are placeholders in variables.
pub(crate) fn script(root: &Value, text: &str) -> ScriptDraft {
    let mut description = Description { root, script: ScriptDraft::default() };
    let server = description.server(root);
    if let Some(server) = server {
        description.script.variables.push((BASE_URL.to_owned(), server.into()));
    }
    let mut paths: Vec<(&String, &Value)> =
        root.get("paths").and_then(Value::as_object).into_iter().flatten().collect();
    let place = |path: &str| {
        let ends = ["\"", ":", "'"].iter().filter_map(|end| text.find(&format!("{path}{end}")));
        ends.min()
    };
    paths.sort_by_key(|(path, _)| place(path));
    let mut nodes = Vec::new();
    for (path, item) in paths {
        let item = description.resolve(item);
        for method in METHODS {
            let Some(own) = item.get(method) else { continue };
            let request = description.request(method, &Operation { path, item, own });
            nodes.push(ScriptNode::Request(Box::new(request)));
        }
    }
    description.script.functions = default_function(nodes);
    description.script
}

impl<'a> Description<'a> {
    /// Follows the references of a value.
    fn resolve(&mut self, value: &'a Value) -> &'a Value {
        let mut value = value;
        // A bound, as references may be circular.
        for _ in 0..16 {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return value };
            let target = reference.strip_prefix('#').and_then(|pointer| {
                let plain = pointer.replace("%7B", "{").replace("%7D", "}");
                self.root.pointer(pointer).or_else(|| self.root.pointer(&plain))
            });
            let Some(target) = target else {
                self.script
                    .warnings
                    .add("a reference to another document is not followed", reference);
                return &Value::Null;
            };
            value = target;
        }
        &Value::Null
    }

    /// The URL of an object's first server; `None` if the variable must provide it.
    fn server(&mut self, owner: &Value) -> Option<String> {
        if let Some(server) = owner.pointer("/servers/0") {
            let mut url = server.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (name, variable) in object(server.get("variables")) {
                let value = variable.get("default").map(text_of).unwrap_or_default();
                url = url.replace(&format!("{{{name}}}"), &value);
            }
            let url = url.trim_end_matches('/');
            return if url.contains("://") {
                Some(url.to_owned())
            } else if url.starts_with("//") {
                Some(format!("https:{url}"))
            } else {
                None
            };
        }
        let host = owner.get("host").and_then(Value::as_str)?;
        let scheme = owner.pointer("/schemes/0").and_then(Value::as_str).unwrap_or("http");
        Some(format!("{scheme}://{host}{}", base_path(owner)))
    }

    fn request(&mut self, method: &str, operation: &Operation<'a>) -> ScriptRequest {
        let own = operation.own;
        let parameters = self.parameters(operation);
        let mut request = ScriptRequest {
            method: method.to_uppercase(),
            url: self.url(operation, &parameters),
            status: status(own),
            ..ScriptRequest::default()
        };
        let title = own.get("summary").or_else(|| own.get("operationId")).and_then(Value::as_str);
        request.remarks.extend(title.map(|title| title.trim().to_owned()));
        let mut cookies = Template::default();
        for parameter in parameters.iter().filter(|one| is_sent(one)) {
            let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
            match parameter.get("in").and_then(Value::as_str) {
                Some("query") => self.query(parameter, name, &mut request),
                Some("header") if !is_described_elsewhere(name) => {
                    let value = self.value(parameter, name);
                    request.set_header(name, value);
                }
                Some("cookie") => {
                    cookies.push(if cookies.is_empty() { "" } else { "; " });
                    cookies.push(&format!("{name}="));
                    cookies.append(self.value(parameter, name));
                }
                _ => {}
            }
        }
        if !cookies.is_empty() {
            request.set_header("Cookie", cookies);
        }
        self.body(own, &parameters, &mut request);
        self.secure(own, &mut request);
        request
    }

    /// The parameters of an operation, and the inherited ones of its path item.
    fn parameters(&mut self, operation: &Operation<'a>) -> Vec<&'a Value> {
        let mut parameters: Vec<&Value> = Vec::new();
        for owner in [operation.own, operation.item] {
            let list = owner.get("parameters").and_then(Value::as_array).into_iter().flatten();
            for parameter in list {
                let parameter = self.resolve(parameter);
                let same = |one: &&Value| {
                    ["name", "in"].iter().all(|key| one.get(key) == parameter.get(key))
                };
                if !parameters.iter().any(same) {
                    parameters.push(parameter);
                }
            }
        }
        parameters
    }

    /// The URL: the server and the path with its parameters.
    fn url(&mut self, operation: &Operation<'a>, parameters: &[&'a Value]) -> Template {
        let nearest =
            [operation.own, operation.item].into_iter().find(|one| one.get("servers").is_some());
        let mut url = match nearest.and_then(|owner| self.server(owner)) {
            Some(server) => server.into(),
            None => Template::variable(BASE_URL),
        };
        let owner = nearest.unwrap_or(self.root);
        if self.server(owner).is_none() {
            // The server URL is only a path.
            let path = owner.pointer("/servers/0/url").and_then(Value::as_str);
            url.push(
                path.map_or_else(|| base_path(owner), |path| path.trim_end_matches('/').to_owned())
                    .as_str(),
            );
        }
        let mut rest = operation.path;
        while let Some((text, (name, tail))) =
            rest.split_once('{').and_then(|(text, tail)| Some((text, tail.split_once('}')?)))
        {
            url.push(&url_text(text));
            let is_own = |one: &&&Value| {
                one.get("name").and_then(Value::as_str) == Some(name)
                    && one.get("in").and_then(Value::as_str) == Some("path")
            };
            match parameters.iter().find(is_own) {
                Some(parameter) => {
                    let value = self.value(parameter, name);
                    url.append(value.map(component));
                }
                None => url.push_variable(name),
            }
            rest = tail;
        }
        url.push(&url_text(rest));
        url
    }

    /// The value of a parameter from the description, or a variable with a placeholder.
    fn value(&mut self, parameter: &'a Value, name: &str) -> Template {
        let (value, is_given) = self.sample_of(parameter);
        let text = match &value {
            Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(","),
            other => text_of(other),
        };
        if is_given {
            return text.into();
        }
        let is_path = parameter.get("in").and_then(Value::as_str) == Some("path");
        let text = if is_path { "1".to_owned() } else { text };
        self.script.warnings.add(
            "a parameter without an example has a placeholder: set it with -e NAME=VALUE",
            name,
        );
        if !self.script.variables.iter().any(|known| known.0 == name) {
            self.script.variables.push((name.to_owned(), text.into()));
        }
        Template::variable(name)
    }

    /// A sample of a parameter, and whether it comes from the description.
    fn sample_of(&mut self, parameter: &'a Value) -> (Value, bool) {
        if let Some(example) = self.example(parameter) {
            return (example, true);
        }
        let content = object(parameter.get("content")).next().map(|(_, content)| content);
        if let Some(content) = content {
            let example = self.example(content);
            let value = example
                .unwrap_or_else(|| sample(self, content.get("schema").unwrap_or(&Value::Null)));
            return (Value::from(value.to_string()), true);
        }
        let schema = self.resolve(parameter.get("schema").unwrap_or(parameter));
        (sample(self, schema), sample::is_given(self, schema))
    }

    /// The example of a parameter or content.
    fn example(&mut self, owner: &'a Value) -> Option<Value> {
        if let Some(example) = owner.get("example").or_else(|| owner.get("x-example")) {
            return Some(example.clone());
        }
        let (_, first) = object(owner.get("examples")).next()?;
        self.resolve(first).get("value").cloned()
    }

    fn query(&mut self, parameter: &'a Value, name: &str, request: &mut ScriptRequest) {
        let (value, is_given) = self.sample_of(parameter);
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let is_flat = match text("collectionFormat") {
            Some(format) => format != "multi",
            None if self.root.get("swagger").is_some() => true,
            None => parameter.get("explode") == Some(&Value::Bool(false)),
        };
        let is_deep = text("style") == Some("deepObject");
        match &value {
            Value::Array(items) if !is_flat => {
                for item in items {
                    request.add_query(&component(name), component(&text_of(item)).into());
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let between = match text("collectionFormat").or_else(|| text("style")) {
                    Some("ssv" | "spaceDelimited") => "%20",
                    Some("tsv") => "%09",
                    Some("pipes" | "pipeDelimited") => "%7C",
                    _ => ",",
                };
                let items: Vec<_> = items.iter().map(|item| component(&text_of(item))).collect();
                request.add_query(&component(name), items.join(between).into());
            }
            Value::Object(entries) if is_given || is_deep => {
                for (key, item) in entries {
                    let key = if is_deep { format!("{name}[{key}]") } else { key.clone() };
                    request.add_query(&component(&key), component(&text_of(item)).into());
                }
            }
            _ => {
                let value = self.value(parameter, name).map(component);
                request.add_query(&component(name), value);
            }
        }
    }
}

fn object(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn base_path(owner: &Value) -> String {
    let path = owner.get("basePath").and_then(Value::as_str).unwrap_or_default();
    let path = path.trim_end_matches('/');
    if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// Whether a parameter is required.
fn is_sent(parameter: &Value) -> bool {
    parameter.get("required") == Some(&Value::Bool(true))
}

/// Headers that the content and security define.
fn is_described_elsewhere(name: &str) -> bool {
    ["accept", "content-type", "authorization"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// The first described success status.
fn status(operation: &Value) -> Option<u16> {
    let keys = object(operation.get("responses")).filter_map(|(key, _)| key.parse().ok());
    keys.into_iter().find(|status| (200..300).contains(status))
}
