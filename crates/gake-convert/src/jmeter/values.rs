//! Text with JMeter's variables and functions: `${name}`, `${__Random(1,6)}`.

use super::JmeterPlan;
use crate::template::{Template, quoted, variable_name};

impl JmeterPlan {
    pub(super) fn template(&mut self, text: &str) -> Template {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let Some(end) = closing(&rest[at + 2..]) else { break };
            template.push(&unescaped(&rest[..at]));
            self.reference(&rest[at + 2..at + 2 + end], &mut template);
            rest = &rest[at + end + 3..];
        }
        template.push(&unescaped(rest));
        template
    }

    /// A number, or a numeric expression.
    pub(super) fn number(&mut self, text: &str) -> String {
        let text = text.trim();
        if text.is_empty() {
            return "0".to_owned();
        }
        if text.parse::<f64>().is_ok() {
            return text.to_owned();
        }
        format!("Number({})", self.template(text).js())
    }

    fn reference(&mut self, reference: &str, template: &mut Template) {
        let Some(function) = reference.strip_prefix("__") else {
            return template.push_variable(reference);
        };
        let (name, arguments) = match function.split_once('(') {
            Some((name, rest)) => {
                (name, arguments(rest.trim_end().strip_suffix(')').unwrap_or(rest)))
            }
            None => (function, Vec::new()),
        };
        let argument = |at: usize| arguments.get(at).map_or("", |one: &String| one.trim());
        let code = match name {
            "P" | "property" | "env" => {
                let default = argument(if name == "P" { 1 } else { 2 });
                let default =
                    if default.is_empty() && name == "property" { argument(1) } else { default };
                let default = if name == "P" && default.is_empty() { "1" } else { default };
                let default = self.template(default).js();
                format!("(__ENV.{} || {default})", variable_name(argument(0)))
            }
            "Random" => {
                let (least, most) = (self.number(argument(0)), self.number(argument(1)));
                format!("random({least}, {most})")
            }
            "RandomString" => {
                let length = self.number(argument(0));
                let from = argument(1);
                let from =
                    if from.is_empty() { "abcdefghijklmnopqrstuvwxyz0123456789" } else { from };
                format!("Array.from({{ length: {length} }}, () => pick({})).join('')", quoted(from))
            }
            "UUID" => "crypto.randomUUID()".to_owned(),
            "time" if argument(0).is_empty() => "Date.now()".to_owned(),
            "time" if argument(0) == "/1000" => "Math.floor(Date.now() / 1000)".to_owned(),
            "threadNum" => "exec.vu.idInTest".to_owned(),
            "counter" if argument(0).eq_ignore_ascii_case("true") => {
                "(exec.vu.iterationInScenario + 1)".to_owned()
            }
            "counter" => "(exec.scenario.iterationInTest + 1)".to_owned(),
            "urlencode" => format!("encodeURIComponent({})", self.template(argument(0)).js()),
            "urldecode" => format!("decodeURIComponent({})", self.template(argument(0)).js()),
            "base64Encode" => format!("encoding.b64encode({})", self.template(argument(0)).js()),
            "V" => format!("value({})", self.template(argument(0)).js()),
            "intSum" | "longSum" => {
                let numbers: Vec<String> = arguments
                    .iter()
                    .filter(|one| one.starts_with("${") || one.trim().parse::<i64>().is_ok())
                    .cloned()
                    .collect();
                let numbers: Vec<String> = numbers.iter().map(|one| self.number(one)).collect();
                format!("({})", numbers.join(" + "))
            }
            _ => {
                self.script.warnings.add("a JMeter function is sent literally", name);
                return template.push(&format!("${{{reference}}}"));
            }
        };
        template.push_code(code, &format!("{{{name}}}"));
    }
}

/// The index of the brace that closes one opened before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Splits the arguments of a function at commas, except escaped ones.
fn arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let (mut depth, mut is_escaped) = (0, false);
    for c in text.chars() {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            _ => {}
        }
        match (c, arguments.last_mut()) {
            (',', _) if depth == 0 && !is_escaped => arguments.push(String::new()),
            ('\\', _) if !is_escaped => {
                is_escaped = true;
                continue;
            }
            (c, Some(last)) => last.push(c),
            _ => {}
        }
        is_escaped = false;
    }
    arguments
}

/// Removes JMeter's escapes of dollar signs.
fn unescaped(text: &str) -> String {
    text.replace("\\$", "$")
}
