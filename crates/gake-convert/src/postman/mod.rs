//! Postman collections, version 2.

mod auth;
mod body;
mod dynamic;
mod events;
mod expect;
mod javascript;
mod lexer;

use serde_json::Value;

use crate::default_function;
use crate::script::{ScriptDraft, ScriptNode, ScriptRequest, is_own_header};
use crate::template::{Template, url_text};

use events::EventScripts;

/// What requests inherit from their folders.
#[derive(Clone, Default)]
struct Folder<'a> {
    auth: Option<&'a Value>,
    events: EventScripts<'a>,
    /// Whether GET requests keep their bodies.
    keeps_bodies: bool,
}

/// The requests of a collection, in the order of its folders.
pub(crate) fn script(collection: &Value) -> ScriptDraft {
    let mut script = ScriptDraft::default();
    for variable in list(collection.get("variable")) {
        let name = variable.get("key").or_else(|| variable.get("id")).and_then(Value::as_str);
        let value = variable.get("value").map(plain).unwrap_or_default();
        // A variable without a value must come from outside.
        if let Some(name) = name.filter(|_| !value.is_empty() && is_enabled(variable)) {
            let value = template(&value, &mut script);
            script.variables.push((name.to_owned(), value));
        }
    }
    let mut nodes = Vec::new();
    collect(collection, &Folder::default(), &mut nodes, &mut script);
    script.functions = default_function(nodes);
    script
}

fn collect<'a>(
    item: &'a Value,
    outer: &Folder<'a>,
    nodes: &mut Vec<ScriptNode>,
    script: &mut ScriptDraft,
) {
    let mut folder = outer.clone();
    if let Some(auth) = item.get("auth").filter(|auth| !auth.is_null()) {
        folder.auth = Some(auth);
    }
    if let Some(keeps) = item.pointer("/protocolProfileBehavior/disableBodyPruning") {
        folder.keeps_bodies = keeps == &Value::Bool(true);
    }
    let name = item.get("name").or_else(|| item.pointer("/info/name"));
    let name = name.and_then(Value::as_str).unwrap_or_default();
    folder.events.add(item.get("event"), name);
    for inner in list(item.get("item")) {
        collect(inner, &folder, nodes, script);
    }
    let Some(own) = item.get("request").filter(|own| !own.is_null()) else { return };
    let Some(mut request) = request(own, &folder, script) else {
        script.warnings.add("a request without a URL is left out", name);
        return;
    };
    if !name.is_empty() {
        request.remarks.push(name.to_owned());
    }
    if item.pointer("/protocolProfileBehavior/followRedirects") == Some(&Value::Bool(false)) {
        request.params.push("redirects: 0".to_owned());
    }
    folder.events.translate(&mut request, script);
    nodes.push(ScriptNode::Request(Box::new(request)));
}

fn request(own: &Value, folder: &Folder, script: &mut ScriptDraft) -> Option<ScriptRequest> {
    if let Some(url) = own.as_str() {
        let url = template(&with_scheme(url), script).map(url_text);
        let mut request =
            ScriptRequest { method: "GET".to_owned(), url, ..ScriptRequest::default() };
        auth::add(folder.auth, &mut request, script);
        return Some(request);
    }
    let mut request = ScriptRequest {
        method: own.get("method").and_then(Value::as_str).unwrap_or("GET").to_uppercase(),
        url: url(own.get("url")?, script)?,
        ..ScriptRequest::default()
    };
    match own.get("header") {
        // `Name: value`, one per line.
        Some(Value::String(lines)) => {
            for (name, value) in lines.lines().filter_map(|line| line.split_once(':')) {
                header(&mut request, name, value.trim(), script);
            }
        }
        headers => {
            for (name, value) in enabled(headers) {
                header(&mut request, &name, &value, script);
            }
        }
    }
    let is_pruned = ["GET", "COPY", "HEAD", "PURGE", "UNLOCK"].contains(&request.method.as_str());
    if let Some(body) = own.get("body").filter(|body| !body.is_null() && is_enabled(body)) {
        if is_pruned && !folder.keeps_bodies {
            if body::is_some(body) {
                let name = request.url.label();
                script.warnings.add("a body of a GET is left out, as by Postman", &name);
            }
        } else {
            body::add(body, &mut request, script);
        }
    }
    let auth = own.get("auth").filter(|auth| !auth.is_null()).or(folder.auth);
    auth::add(auth, &mut request, script);
    Some(request)
}

fn header(request: &mut ScriptRequest, name: &str, value: &str, script: &mut ScriptDraft) {
    let name = template(name.trim(), script);
    let Some(name) = name.literal() else {
        script.warnings.add("a header whose name is a variable is left out", &name.label());
        return;
    };
    if !name.is_empty() && !is_own_header(name) {
        let value = template(value, script);
        request.headers.push((name.to_owned(), value));
    }
}

/// A URL: the raw text without its query, the enabled parameters, and the path variables.
fn url(url: &Value, script: &mut ScriptDraft) -> Option<Template> {
    let raw = url.as_str().or_else(|| url.get("raw")?.as_str()).filter(|raw| !raw.is_empty());
    let raw = raw.map(str::to_owned).or_else(|| joined(url))?;
    let raw = raw.trim().split('#').next().unwrap_or_default();
    let (base, query) = match raw.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (raw, None),
    };
    let mut own = Template::default();
    let base = with_scheme(base);
    let (origin, path) = match base.find("://") {
        Some(at) => base.split_at(at + 3),
        None => ("", base.as_str()),
    };
    own.append(template(origin, script));
    for (at, segment) in path.split('/').enumerate() {
        own.push(if at > 0 { "/" } else { "" });
        let name = segment.strip_prefix(':').filter(|name| !name.is_empty() && at > 0);
        match name {
            Some(name) => own.append(path_variable(name, url, script)),
            None => own.append(template(segment, script)),
        }
    }
    let own = own.map(url_text);
    let listed = url.get("query").and_then(Value::as_array);
    let query = match listed {
        Some(list) => {
            let parameters = list.iter().filter(|one| is_enabled(one)).filter_map(parameter);
            parameters.collect::<Vec<_>>().join("&")
        }
        None => query.unwrap_or_default().to_owned(),
    };
    let query = template(&query, script).map(|text| url_text(text).replace('#', "%23"));
    let mut own = own;
    own.push(if query.is_empty() { "" } else { "?" });
    own.append(query);
    Some(own)
}

/// `name=value`, or only the name.
fn parameter(one: &Value) -> Option<String> {
    let key = one.get("key").map(plain).unwrap_or_default();
    let value = one.get("value").filter(|value| !value.is_null()).map(plain);
    match value {
        Some(value) => Some(format!("{key}={value}")),
        None if key.is_empty() => None,
        None => Some(key),
    }
}

/// The text of a URL object without a raw text.
fn joined(url: &Value) -> Option<String> {
    let parts = |name: &str, by: &str| match url.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let part = |part: &Value| part.get("value").map_or_else(|| plain(part), plain);
            Some(parts.iter().map(part).collect::<Vec<_>>().join(by))
        }
        _ => None,
    };
    let host = parts("host", ".")?;
    let scheme = url.get("protocol").and_then(Value::as_str);
    let scheme = scheme.map(|scheme| format!("{}://", scheme.trim_end_matches("://")));
    let port = url.get("port").map(|port| format!(":{}", plain(port))).unwrap_or_default();
    let path = parts("path", "/").unwrap_or_default();
    Some(format!("{}{host}{port}/{}", scheme.unwrap_or_default(), path.trim_start_matches('/')))
}

/// A path segment `:name`; literal text if no variable has that name.
fn path_variable(name: &str, url: &Value, script: &mut ScriptDraft) -> Template {
    let of_name = |wanted: &str| {
        list(url.get("variable")).find(|one| {
            one.get("key").or_else(|| one.get("id")).and_then(Value::as_str) == Some(wanted)
        })
    };
    // `:id.json` may be the variable `id` followed by text.
    let (name, rest) = match of_name(name) {
        Some(_) => (name, ""),
        None => name.split_at(name.find(['.', ';']).unwrap_or(name.len())),
    };
    let value = of_name(name).and_then(|one| one.get("value")).filter(|value| !value.is_null());
    let mut own = match value.map(plain) {
        None => template(&format!(":{name}"), script),
        Some(value) if value.is_empty() => {
            let text = "a path variable is empty: set it with -e NAME=VALUE";
            script.warnings.add(text, name);
            Template::code(format!("(vars.{} || \"\")", crate::template::variable_name(name)))
        }
        Some(value) => template(&value, script),
    };
    own.push(rest);
    own
}

fn with_scheme(url: &str) -> String {
    match url.contains("://") || url.starts_with("{{") {
        true => url.to_owned(),
        false => format!("http://{}", url.trim_start_matches('/')),
    }
}

/// Text with Postman's variables replaced.
fn template(text: &str, script: &mut ScriptDraft) -> Template {
    Template::braces(text, &mut |template, name| match name.strip_prefix('$') {
        Some(dynamic) => match dynamic::expression(dynamic) {
            Some(code) => template.push_code(code, name),
            None => {
                script.warnings.add("an unknown dynamic variable is replaced by a number", name);
                template.push_code("random(0, 1000)", name);
            }
        },
        None => template.push_variable(name),
    })
}

fn is_enabled(one: &Value) -> bool {
    one.get("disabled") != Some(&Value::Bool(true))
}

fn list(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// The enabled entries of a list.
fn enabled(pairs: Option<&Value>) -> Vec<(String, String)> {
    let pair = |one: &Value| {
        let value = one.get("value").map(plain).unwrap_or_default();
        Some((one.get("key")?.as_str()?.to_owned(), value))
    };
    list(pairs).filter(|one| is_enabled(one)).filter_map(pair).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
