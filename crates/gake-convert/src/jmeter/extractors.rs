//! Extractors: lines that set variables from a response.

use super::sampler::pattern;
use super::{Element, JmeterPlan};
use crate::template::{Template, quoted, variable_name};

impl JmeterPlan {
    /// Adds the lines of an extractor.
    pub(super) fn extractor(&mut self, own: Element, after: &mut Vec<String>) {
        let text = |name: &str| own.text(name).unwrap_or_default();
        match own.tag() {
            "RegexExtractor" => {
                let from = match text("RegexExtractor.useHeaders") {
                    "true" | "request_headers" => "JSON.stringify(res.headers)",
                    "URL" => "res.url",
                    "code" => "res.status",
                    "message" => "res.status_text",
                    _ => "res.body",
                };
                let regex = self.template(text("RegexExtractor.regex"));
                let template = quoted(own.text("RegexExtractor.template").unwrap_or("$1$"));
                let found = format!("found({from}, {}, {template}", pattern(&regex, "g"));
                self.assign(own, "RegexExtractor", &found, after);
            }
            "BoundaryExtractor" => {
                let (left, right) =
                    (text("BoundaryExtractor.lboundary"), text("BoundaryExtractor.rboundary"));
                let regex = Template::from(format!("{}(.*?){}", escaped(left), escaped(right)));
                let found = format!("found(res.body, {}, \"$1$\"", pattern(&regex, "g"));
                self.assign(own, "BoundaryExtractor", &found, after);
            }
            "JSONPostProcessor" => self.json(own, after),
            "JMESPathExtractor" => {
                let path = format!("$.{}", text("JMESExtractor.jmesPathExpr"));
                match gjson(&path) {
                    Some(path) => {
                        let found = format!("json(res, {}", quoted(&path));
                        self.assign(own, "JMESExtractor", &found, after);
                    }
                    None => self.script.warnings.add("an extractor is left out", own.tag()),
                }
            }
            "HtmlExtractor" => {
                let name = variable_name(text("HtmlExtractor.refname"));
                let number =
                    text("HtmlExtractor.match_number").parse::<usize>().unwrap_or(1).max(1) - 1;
                let what = match text("HtmlExtractor.attribute") {
                    "" => "text()".to_owned(),
                    attribute => format!("attr({})", quoted(attribute)),
                };
                let selector = quoted(text("HtmlExtractor.expr"));
                let default = quoted(text("HtmlExtractor.default"));
                after.push(format!(
                    "vars.{name} = res.html().find({selector}).eq({number}).{what} || {default};"
                ));
            }
            "JSR223PostProcessor" | "BeanShellPostProcessor" => after.extend(self.quoted_code(own)),
            "DebugPostProcessor" => {}
            tag => self.script.warnings.add("an extractor is left out", tag),
        }
    }

    /// `vars.name = found(..., number, default)`.
    fn assign(&mut self, own: Element, kind: &str, found: &str, after: &mut Vec<String>) {
        let text = |name: &str| own.text(&format!("{kind}.{name}"));
        let name = variable_name(text("refname").or_else(|| text("refName")).unwrap_or_default());
        let number = text("match_number").or_else(|| text("matchNumber")).unwrap_or("1");
        let number = self.first_of(number, &name);
        let default = match text("default").or_else(|| text("defaultValue")) {
            Some(default) => self.template(default).js(),
            None if own.is(&format!("{kind}.default_empty_value")) => "\"\"".to_owned(),
            None => format!("vars.{name}"),
        };
        after.push(format!("vars.{name} = {found}, {number}, {default});"));
    }

    /// The number of a match; the first instead of all.
    fn first_of(&mut self, number: &str, name: &str) -> String {
        if number.trim().starts_with('-') {
            let kind = "an extractor takes the first match instead of all";
            self.script.warnings.add(kind, name);
            return "1".to_owned();
        }
        self.number(number)
    }

    fn json(&mut self, own: Element, after: &mut Vec<String>) {
        let list = |name: &str| -> Vec<&str> {
            let text = own.text(&format!("JSONPostProcessor.{name}")).unwrap_or_default();
            text.split(';').map(str::trim).collect()
        };
        let (names, paths) = (list("referenceNames"), list("jsonPathExprs"));
        let (numbers, defaults) = (list("match_numbers"), list("defaultValues"));
        for (at, (name, path)) in names.into_iter().zip(paths).enumerate() {
            let Some(path) = gjson(path) else {
                self.script
                    .warnings
                    .add("a JSONPath is not translated, and its variable is not set", path);
                continue;
            };
            let name = variable_name(name);
            let number =
                numbers.get(at).filter(|number| !number.is_empty()).copied().unwrap_or("1");
            let number = self.first_of(number, &name);
            let default = match defaults.get(at).filter(|default| !default.is_empty()) {
                Some(default) => self.template(default).js(),
                None => format!("vars.{name}"),
            };
            after.push(format!("vars.{name} = json(res, {}, {number}, {default});", quoted(&path)));
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if "\\^$.|?*+()[]{}/".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Converts JSONPath to the path syntax of k6's `json()`: `$.a[0]['b']` is `a.0.b`.
pub(super) fn gjson(path: &str) -> Option<String> {
    let path = path.trim();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut parts: Vec<String> = Vec::new();
    while !rest.is_empty() {
        if rest.starts_with("..") {
            return None;
        }
        if let Some(tail) = rest.strip_prefix('[') {
            let end = tail.find(']')?;
            let key = tail[..end].trim();
            let name = key.trim_matches(['\'', '"']);
            let is_filter = name.starts_with('?');
            parts.push(match name {
                "*" => "#".to_owned(),
                _ if is_filter => {
                    let inner = name.strip_prefix("?(@.")?.strip_suffix(')')?.replace('\'', "\"");
                    if inner.contains(['(', '&', '|']) {
                        return None;
                    }
                    format!("#({})#", inner.replace(' ', ""))
                }
                _ if name.contains([',', ':']) || name.starts_with('-') => return None,
                _ => name.replace('.', "\\."),
            });
            rest = &tail[end + 1..];
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        match &rest[..end] {
            "" => {}
            "*" => parts.push("#".to_owned()),
            name if name.contains(['(', '@', '|', '&']) => return None,
            name => parts.push(name.to_owned()),
        }
        rest = &rest[end..];
    }
    Some(if parts.is_empty() { "@this".to_owned() } else { parts.join(".") })
}

#[cfg(test)]
mod tests {
    use super::gjson;

    #[test]
    fn paths_of_json() {
        for (path, expected) in [
            ("$.a.b", Some("a.b")),
            ("$.a[0]['b.c']", Some("a.0.b\\.c")),
            ("$.items[*].id", Some("items.#.id")),
            ("$[?(@.id == 5)].name", Some("#(id==5)#.name")),
            ("$", Some("@this")),
            ("$..id", None),
            ("$.a.length()", None),
        ] {
            assert_eq!(gjson(path).as_deref(), expected, "{path}");
        }
    }
}
