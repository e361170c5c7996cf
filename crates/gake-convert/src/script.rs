//! The model of a k6 script.

use crate::template::{Template, component, quoted, url_text};
use crate::warnings::Warnings;

/// A script under construction.
#[derive(Debug, Default)]
pub struct ScriptDraft {
    /// The entries of its options, one per line; by default one user and one iteration.
    pub options: Vec<String>,
    /// Top-level statements, such as opening files.
    pub init: Vec<String>,
    pub variables: Vec<(String, Template)>,
    pub functions: Vec<ScriptFunction>,
    /// What was lost.
    pub warnings: Warnings,
}

/// A function of a script.
#[derive(Debug)]
pub struct ScriptFunction {
    /// Such as `default function ()` or `function users()`.
    pub head: String,
    pub nodes: Vec<ScriptNode>,
}

/// A node of a function body.
#[derive(Debug)]
pub enum ScriptNode {
    Request(Box<ScriptRequest>),
    Lines(Vec<String>),
    /// The opening line, the inner nodes, the closing line.
    Block(String, Vec<ScriptNode>, &'static str),
}

/// A request and its checks.
#[derive(Debug, Default)]
pub struct ScriptRequest {
    /// Sentences for the user; the first is the title.
    pub remarks: Vec<String>,
    pub method: String,
    pub url: Template,
    /// In order.
    pub headers: Vec<(String, Template)>,
    /// A string or any other expression.
    pub body: Option<Template>,
    /// Further entries of the parameters: `redirects: 0`.
    pub params: Vec<String>,
    /// The recorded or expected status.
    pub status: Option<u16>,
    /// Checks by name, as expressions of `r`, instead of the status.
    pub checks: Vec<(String, String)>,
    /// Whether `after` checks the response.
    pub has_own_checks: bool,
    /// Lines before the request.
    pub before: Vec<String>,
    /// Lines after the request.
    pub after: Vec<String>,
}

/// A part of a multipart body.
#[derive(Debug, Default)]
pub struct MultipartPart {
    /// The field name.
    pub name: Template,
    /// The text, or the constant with the file's contents.
    pub value: Template,
    /// The file name, for a file.
    pub file: Option<String>,
    /// The content type, if specified.
    pub kind: Option<String>,
}

impl ScriptDraft {
    /// A constant with the contents of a file, which is read only once.
    pub fn file(&mut self, path: &str) -> String {
        let known = self.init.iter().position(|line| line.ends_with(&opening(path)));
        let at = known.unwrap_or_else(|| {
            self.warnings.add("a file is read by the script, from its folder", path);
            self.init.push(format!("const file{} = {}", self.init.len() + 1, opening(path)));
            self.init.len() - 1
        });
        format!("file{}", at + 1)
    }
}

fn opening(path: &str) -> String {
    format!("open({}, 'b');", quoted(path))
}

impl ScriptRequest {
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|header| header.0.eq_ignore_ascii_case(name))
    }

    /// Sets a header, replacing others of its name.
    pub fn set_header(&mut self, name: &str, value: impl Into<Template>) {
        self.headers.retain(|header| !header.0.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
    }

    /// Adds a header unless there is one of its name.
    pub fn default_header(&mut self, name: &str, value: &str) {
        if !self.has_header(name) {
            self.headers.push((name.to_owned(), value.into()));
        }
    }

    /// Appends an encoded parameter to the URL.
    pub fn add_query(&mut self, name: &str, value: Template) {
        let mark = if self.url.contains("?") { "&" } else { "?" };
        self.url.push(&format!("{mark}{}=", url_text(name)));
        self.url.append(value);
    }

    /// Sets a body of `name=value&...`.
    pub fn form_body(&mut self, fields: Vec<(Template, Template)>) {
        let mut body = Template::default();
        for (at, (name, value)) in fields.into_iter().enumerate() {
            body.push(if at > 0 { "&" } else { "" });
            body.append(name.encoded(form_component));
            body.push("=");
            body.append(value.encoded(form_component));
        }
        self.default_header("Content-Type", "application/x-www-form-urlencoded");
        self.body = Some(body);
    }

    /// Sets a multipart body: with files an object with `http.file`, which k6 encodes, else the
    /// encoded text.
    pub fn multipart_body(
        &mut self,
        parts: &[MultipartPart],
        boundary: &str,
        warnings: &mut Warnings,
    ) {
        self.headers.retain(|header| !header.0.eq_ignore_ascii_case("content-type"));
        if parts.iter().all(|part| part.file.is_none()) {
            self.body = Some(multipart_text(parts, boundary));
            self.set_header("Content-Type", format!("multipart/form-data; boundary={boundary}"));
            return;
        }
        let mut names: Vec<String> = parts.iter().map(|part| part.name.js()).collect();
        let entries = parts.iter().map(|part| {
            let (name, value) = (part.name.js(), part.value.js());
            let kind =
                part.kind.as_deref().map_or_else(String::new, |kind| format!(", {}", quoted(kind)));
            match &part.file {
                Some(file) => format!("{}: http.file({value}, {}{kind})", key(&name), quoted(file)),
                None => format!("{}: {value}", key(&name)),
            }
        });
        self.body =
            Some(Template::code(format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))));
        names.sort();
        for twice in names.windows(2).filter(|two| two[0] == two[1]) {
            warnings.add("a form part is lost because another has its name", &twice[0]);
        }
    }
}

/// An encoded multipart body.
pub fn multipart_text(parts: &[MultipartPart], boundary: &str) -> Template {
    let mut body = Template::default();
    for part in parts {
        body.push(&format!("--{boundary}\r\nContent-Disposition: form-data; name=\""));
        body.append(part.name.clone().map(|name| name.replace('"', "%22")));
        let file = part.file.as_ref().map(|name| format!("\"; filename=\"{name}"));
        let kind = part.kind.as_ref().map(|kind| format!("\r\nContent-Type: {kind}"));
        let (file, kind) = (file.unwrap_or_default(), kind.unwrap_or_default());
        body.push(&format!("{file}\"{kind}\r\n\r\n"));
        body.append(part.value.clone());
        body.push("\r\n");
    }
    body.push(&format!("--{boundary}--\r\n"));
    body
}

/// An object key from the expression of its name.
fn key(name: &str) -> String {
    if name.starts_with('"') { name.to_owned() } else { format!("[{name}]") }
}

fn form_component(text: &str) -> String {
    component(text).replace("%20", "+")
}

/// The header value of basic authentication.
pub fn basic_auth(user: &Template, password: &Template) -> Template {
    let mut pair = user.clone();
    pair.push(":");
    pair.append(password.clone());
    let mut value = Template::from("Basic ");
    match pair.literal() {
        Some(text) => value.push(&base64_of(text.as_bytes())),
        None => value.push_code(format!("encoding.b64encode({})", pair.js()), "credentials"),
    }
    value
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Headers that the client generates.
pub fn is_own_header(name: &str) -> bool {
    let own = ["host", "connection", "content-length", "transfer-encoding"];
    name.starts_with(':') || own.iter().any(|one| name.eq_ignore_ascii_case(one))
}
