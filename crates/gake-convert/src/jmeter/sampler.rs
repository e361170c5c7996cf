//! HTTP samplers.

use super::{Element, JmeterPlan, SamplerScope};
use crate::script::{MultipartPart, ScriptRequest, is_own_header};
use crate::template::{Template, component, quoted, url_text};

impl JmeterPlan {
    /// The request of a sampler in its scope.
    pub(super) fn request<'a>(
        &mut self,
        own: Element<'a>,
        scope: &SamplerScope<'a>,
    ) -> ScriptRequest {
        let text = |name: &str| {
            let nearest = std::iter::once(&own).chain(&scope.defaults);
            nearest.clone().find_map(|element| element.text(&format!("HTTPSampler.{name}")))
        };
        let mut request = ScriptRequest {
            method: text("method").unwrap_or("GET").to_uppercase(),
            url: self.url(&text),
            before: scope.before.clone(),
            checks: scope.checks.clone(),
            after: scope.after.clone(),
            ..ScriptRequest::default()
        };
        if !own.name().is_empty() {
            request.remarks.push(own.name().to_owned());
        }
        for (name, value) in &scope.headers {
            if !is_own_header(name) {
                request.set_header(name, value.clone());
            }
        }
        let credentials = scope.credentials.iter().find(|(url, _)| {
            url.is_empty() || request.url.label().starts_with(url.as_str()) || url.contains("${")
        });
        if let Some((_, value)) = credentials {
            request.set_header("Authorization", value.clone());
        }
        if text("follow_redirects") == Some("false") && text("auto_redirects") != Some("true") {
            request.params.push("redirects: 0".to_owned());
        }
        if let Some(timeout) = text("response_timeout") {
            let timeout = self.number(timeout);
            request.params.push(format!("timeout: {timeout}"));
        }
        if text("image_parser") == Some("true") {
            self.script.warnings.add("embedded resources are not fetched", own.name());
        }
        self.arguments(own, scope, &mut request);
        request
    }

    fn url<'a>(&mut self, text: &impl Fn(&str) -> Option<&'a str>) -> Template {
        let path = text("path").unwrap_or_default();
        if path.starts_with("http://") || path.starts_with("https://") {
            return self.template(path).map(url_text);
        }
        let mut url = self.template(text("protocol").unwrap_or("http"));
        url.push("://");
        url.append(self.template(text("domain").unwrap_or("localhost")));
        if let Some(port) = text("port").filter(|port| !["0", "80", "443"].contains(port)) {
            url.push(":");
            url.append(self.template(port));
        } else if let Some(port @ ("80" | "443")) = text("port") {
            // The scheme's default port is left out.
            let is_usual = [("80", "http"), ("443", "https")]
                .contains(&(port, text("protocol").unwrap_or("http")));
            url.push(&if is_usual { String::new() } else { format!(":{port}") });
        }
        if !path.starts_with(['/', '$', '?']) {
            url.push("/");
        }
        url.append(self.template(path).map(url_text));
        url
    }

    /// Puts arguments and files into the URL or the body.
    fn arguments<'a>(
        &mut self,
        own: Element<'a>,
        scope: &SamplerScope<'a>,
        request: &mut ScriptRequest,
    ) {
        let owners = std::iter::once(&own).chain(&scope.defaults);
        let arguments: Vec<Element> =
            owners.flat_map(|owner| owner.list("Arguments.arguments")).collect();
        let raw = |name: &str, one: &Element<'a>| {
            one.child(name).and_then(|node| node.text()).unwrap_or_default()
        };
        let files: Vec<Element> = own
            .list("HTTPFileArgs.files")
            .into_iter()
            .filter(|file| file.text("File.path").is_some())
            .collect();
        let has_body =
            !["GET", "HEAD", "OPTIONS", "TRACE", "DELETE"].contains(&request.method.as_str());
        let is_raw = own.is("HTTPSampler.postBodyRaw")
            || !arguments.is_empty()
                && arguments.iter().all(|one| raw("Argument.name", one).is_empty());
        if is_raw {
            let mut body = Template::default();
            for argument in &arguments {
                body.append(self.template(raw("Argument.value", argument)));
            }
            if !body.is_empty() {
                request.body = Some(body);
            }
        } else if has_body && (!files.is_empty() || own.is("HTTPSampler.DO_MULTIPART_POST")) {
            return self.upload(&arguments, &files, request);
        } else if has_body {
            let pairs = self.pairs(&arguments);
            if !pairs.is_empty() {
                request.body = Some(joined(pairs));
                request.default_header("Content-Type", "application/x-www-form-urlencoded");
            }
        } else {
            let pairs = self.pairs(&arguments);
            if !pairs.is_empty() {
                request.url.push(if request.url.contains("?") { "&" } else { "?" });
                request.url.append(joined(pairs));
            }
        }
        if request.body.is_none()
            && let Some(file) = files.first()
        {
            let path = file.text("File.path").unwrap_or_default();
            request.body = Some(Template::code(self.script.file(path)));
            if let Some(kind) = file.text("File.mimetype") {
                request.default_header("Content-Type", kind);
            }
        }
    }

    /// Names and values, encoded where JMeter encodes them.
    fn pairs(&mut self, arguments: &[Element]) -> Vec<Template> {
        let mut pairs = Vec::new();
        for argument in arguments {
            let is_encoded = argument.is("HTTPArgument.always_encode");
            let text = |name: &str| argument.text(name).unwrap_or_default();
            let (mut pair, value) =
                (self.template(text("Argument.name")), self.template(text("Argument.value")));
            let encode = |text: &str| component(text).replace("%20", "+");
            let plain = |text: &str| url_text(text).replace('#', "%23");
            pair = if is_encoded { pair.encoded(encode) } else { pair.map(plain) };
            if argument.text("HTTPArgument.use_equals") != Some("false") || !value.is_empty() {
                pair.push("=");
            }
            pair.append(if is_encoded { value.encoded(encode) } else { value.map(plain) });
            pairs.push(pair);
        }
        pairs
    }

    fn upload(&mut self, arguments: &[Element], files: &[Element], request: &mut ScriptRequest) {
        // A single file without a field is the body itself.
        if let [file] = files
            && arguments.is_empty()
            && file.text("File.paramname").is_none()
        {
            let path = file.text("File.path").unwrap_or_default();
            request.body = Some(Template::code(self.script.file(path)));
            request.default_header(
                "Content-Type",
                file.text("File.mimetype").unwrap_or("application/octet-stream"),
            );
            return;
        }
        let mut parts = Vec::new();
        for argument in arguments {
            let text = |name: &str| argument.text(name).unwrap_or_default();
            parts.push(MultipartPart {
                name: self.template(text("Argument.name")),
                value: self.template(text("Argument.value")),
                ..MultipartPart::default()
            });
        }
        for file in files {
            let path = file.text("File.path").unwrap_or_default();
            let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
            let value = match path.contains("${") {
                false => self.script.file(path),
                true => {
                    let path = self.template(path).js();
                    self.script
                        .warnings
                        .add("a file is read by the script, from its folder", &path);
                    let number = self.script.init.len() + 1;
                    self.script.init.push(format!("const upload{number} = open({path}, 'b');"));
                    format!("upload{number}")
                }
            };
            parts.push(MultipartPart {
                name: self.template(file.text("File.paramname").unwrap_or("file")),
                value: Template::code(value),
                file: Some(name.to_owned()),
                kind: file.text("File.mimetype").map(str::to_owned),
            });
        }
        request.multipart_body(&parts, "----gakeFormBoundary", &mut self.script.warnings);
    }
}

fn joined(pairs: Vec<Template>) -> Template {
    let mut all = Template::default();
    for (at, pair) in pairs.into_iter().enumerate() {
        all.push(if at > 0 { "&" } else { "" });
        all.append(pair);
    }
    all
}

/// A Java regular expression as a JavaScript one.
pub(super) fn pattern(template: &Template, flags: &str) -> String {
    let code = template.js();
    let (code, flags) = match code.strip_prefix("\"(?i)") {
        Some(rest) => (format!("\"{rest}"), format!("{flags}i")),
        None => (code, flags.to_owned()),
    };
    match flags.is_empty() {
        true => format!("new RegExp({code})"),
        false => format!("new RegExp({code}, {})", quoted(&flags)),
    }
}
