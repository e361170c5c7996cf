//! Renders a script as text.

use crate::script::{ScriptDraft, ScriptFunction, ScriptNode, ScriptRequest};
use crate::template::{quoted, variable_name};

/// Imports, each with the text that requires it.
const IMPORTS: [(&str, &str); 4] = [
    ("encoding.", "import encoding from 'k6/encoding';"),
    ("exec.", "import exec from 'k6/execution';"),
    ("new SharedArray(", "import { SharedArray } from 'k6/data';"),
    ("http.", "import http from 'k6/http';"),
];

/// Functions of the module `k6`.
const FUNCTIONS: [&str; 3] = ["check", "group", "sleep"];

/// Helpers, each with the text that requires it. A helper may use the ones before it.
const HELPERS: [(&str, &str); 7] = [
    (
        "pick(",
        "// A random one of the values.\n\
         function pick(values) {\n  return values[Math.floor(Math.random() * values.length)];\n}\n",
    ),
    (
        "random(",
        "// A whole number from min to max.\n\
         function random(min, max) {\n  return min + Math.floor(Math.random() * (max - min + 1));\n}\n",
    ),
    (
        "holds(",
        "// Whether a test of the collection holds; it does not if it throws.\n\
         function holds(test) {\n  try {\n    return Boolean(test());\n  } catch {\n    \
         return false;\n  }\n}\n",
    ),
    (
        "attempt(",
        "// Runs a script of the collection. Its error is logged, and the iteration continues.\n\
         function attempt(name, script) {\n  try {\n    script();\n  } catch (error) {\n    \
         console.warn(`${name}: ${error}`);\n  }\n}\n",
    ),
    (
        "rows(",
        "// The rows of a CSV file.\n\
         function rows(text, delimiter) {\n  \
           return text.split(/\\r?\\n/).filter((line) => line !== '').map((line) => {\n    \
             const cells = [''];\n    let isQuoted = false;\n    \
             for (const c of line) {\n      \
               if (c === '\"') isQuoted = !isQuoted;\n      \
               else if (c === delimiter && !isQuoted) cells.push('');\n      \
               else cells[cells.length - 1] += c;\n    }\n    return cells;\n  });\n}\n",
    ),
    (
        "found(",
        "// The template filled with the groups of a match, or the default.\n\
         function found(text, pattern, template, number, otherwise) {\n  \
           const all = [...String(text).matchAll(pattern)];\n  \
           const match = number > 0 ? all[number - 1] : all[Math.floor(Math.random() * all.length)];\n  \
           if (!match) return otherwise;\n  \
           return template.replace(/\\$(\\d+)\\$/g, (_, group) => match[group] ?? '');\n}\n",
    ),
    (
        "json(",
        "// The value at a path of a JSON response, or the default.\n\
         function json(response, path, number, otherwise) {\n  try {\n    \
           const all = [].concat(response.json(path) ?? []);\n    \
           const one = number > 0 ? all[number - 1] : all[Math.floor(Math.random() * all.length)];\n    \
           if (one === undefined) return otherwise;\n    \
           return typeof one === 'object' ? JSON.stringify(one) : String(one);\n  \
         } catch {\n    return otherwise;\n  }\n}\n",
    ),
];

const VALUE: &str = "\
// The value of a variable, set with -e NAME=VALUE. A missing one ends the iteration.
function value(name) {
  if (vars[name] === undefined) {
    throw new Error(`the variable ${name} is missing: set it with -e ${name}=VALUE`);
  }
  return vars[name];
}
";

pub fn write(script: &ScriptDraft) -> String {
    let mut main = String::new();
    for function in &script.functions {
        main.push_str(&self::function(function));
    }
    let rest = format!("{}\n{}\n{main}", script.options.join("\n"), script.init.join("\n"));
    let variables = variables(script, &rest);
    let used = format!("{variables}{rest}");
    let helpers: String = HELPERS
        .iter()
        .filter(|helper| calls(&used, helper.0))
        .map(|helper| format!("\n{}", helper.1))
        .collect();
    let used = format!("{helpers}{used}");
    let mut text = String::new();
    for (_, import) in IMPORTS.iter().rev().filter(|import| calls(&used, import.0)) {
        text.push_str(&format!("{import}\n"));
    }
    let functions = FUNCTIONS.iter().filter(|name| calls(&used, &format!("{name}(")));
    let functions = functions.copied().collect::<Vec<_>>().join(", ");
    if !functions.is_empty() {
        text.push_str(&format!("import {{ {functions} }} from 'k6';\n"));
    }
    let options = options(script);
    let init: String = script.init.iter().map(|line| format!("\n{line}\n")).collect();
    // Code that uses variables must follow them.
    match calls(&options, "value(") || calls(&init, "value(") {
        true => text + &variables + &options + &init + &helpers + &main,
        false => text + &options + &init + &variables + &helpers + &main,
    }
}

/// Whether a name is used, other than as the end of a longer one.
fn calls(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '$';
    text.match_indices(name).any(|(at, _)| !text[..at].ends_with(is_part))
}

fn options(script: &ScriptDraft) -> String {
    if script.options.is_empty() {
        return "\nexport const options = { vus: 1, iterations: 1 };\n".to_owned();
    }
    let lines: String = script.options.iter().map(|line| format!("  {line}\n")).collect();
    format!("\nexport const options = {{\n{lines}}};\n")
}

/// The variables, in the order of their dependencies.
fn variables(script: &ScriptDraft, main: &str) -> String {
    let (mut first, mut rest): (Vec<_>, Vec<_>) = script
        .variables
        .iter()
        .map(|(name, value)| (variable_name(name), value.js()))
        .partition(|(_, value)| !calls(value, "value("));
    // The last value of a name counts.
    first.reverse();
    let mut known: Vec<String> = Vec::new();
    first.retain(|(name, _)| {
        let is_new = !known.contains(name);
        known.push(name.clone());
        is_new
    });
    first.reverse();
    if first.is_empty() && rest.is_empty() && !calls(main, "value(") && !calls(main, "vars.") {
        return String::new();
    }
    let mut text = String::from("\nconst vars = {\n");
    for (name, value) in &first {
        text.push_str(&format!("  {name}: {value},\n"));
    }
    text.push_str("  ...__ENV,\n};\n");
    while !rest.is_empty() {
        // The first without unresolved references; with a cycle, any.
        let waits = |value: &str| {
            rest.iter().any(|(name, _)| value.contains(&format!("value({})", quoted(name))))
        };
        let at = rest.iter().position(|(_, value)| !waits(value)).unwrap_or(0);
        let (name, value) = rest.remove(at);
        text.push_str(&format!("vars.{name} = __ENV.{name} || {value};\n"));
    }
    format!("{text}\n{VALUE}")
}

fn function(function: &ScriptFunction) -> String {
    let mut text = format!("\nexport {} {{\n", function.head);
    let mut number = 0;
    if has_request(&function.nodes) {
        text.push_str("  let res;\n");
    }
    nodes(&function.nodes, 1, &mut number, &mut text);
    text.push_str("}\n");
    text
}

fn has_request(nodes: &[ScriptNode]) -> bool {
    nodes.iter().any(|node| match node {
        ScriptNode::Request(_) => true,
        ScriptNode::Lines(_) => false,
        ScriptNode::Block(_, inner, _) => has_request(inner),
    })
}

fn nodes(nodes: &[ScriptNode], depth: usize, number: &mut usize, text: &mut String) {
    for node in nodes {
        match node {
            ScriptNode::Request(request) => {
                *number += 1;
                line(text, depth, "");
                line(text, depth, &format!("// Request {number}"));
                self::request(request, depth, text);
            }
            ScriptNode::Lines(lines) => lines.iter().for_each(|one| line(text, depth, one)),
            ScriptNode::Block(open, inner, close) => {
                line(text, depth, "");
                line(text, depth, open);
                self::nodes(inner, depth + 1, number, text);
                line(text, depth, close);
            }
        }
    }
}

fn line(text: &mut String, depth: usize, line: &str) {
    if !line.is_empty() {
        text.extend(std::iter::repeat_n("  ", depth));
        text.push_str(line);
    }
    text.push('\n');
}

fn request(request: &ScriptRequest, depth: usize, text: &mut String) {
    for remark in &request.remarks {
        line(text, depth, &comment(remark));
    }
    request.before.iter().for_each(|one| line(text, depth, one));
    let body = request.body.as_ref().map_or_else(|| "null".to_owned(), |body| body.js());
    let (method, url) = (quoted(&request.method), request.url.js());
    if request.headers.is_empty() && request.params.is_empty() {
        line(text, depth, &format!("res = http.request({method}, {url}, {body});"));
    } else {
        line(text, depth, &format!("res = http.request({method}, {url}, {body}, {{"));
        if !request.headers.is_empty() {
            line(text, depth + 1, "headers: {");
            for (name, value) in headers(request) {
                line(text, depth + 2, &format!("{}: {value},", quoted(&name)));
            }
            line(text, depth + 1, "},");
        }
        request.params.iter().for_each(|one| line(text, depth + 1, &format!("{one},")));
        line(text, depth, "});");
    }
    let label = request.url.label();
    let path = label.split(['?', '#']).next().unwrap_or_default();
    let usual = match request.status {
        Some(status) => {
            ("status ".to_owned() + &status.to_string(), format!("r.status === {status}"))
        }
        None => ("status below 400".to_owned(), "r.status > 0 && r.status < 400".to_owned()),
    };
    let usual = (format!("{} {path}: {}", request.method, usual.0), usual.1);
    let checks = if request.checks.is_empty() && !request.has_own_checks {
        vec![usual]
    } else {
        request.checks.clone()
    };
    for (name, holds) in &checks {
        // Labels keep a name the same in every run, whatever the environment.
        line(text, depth, &format!("check(res, {{ {}: (r) => {holds} }});", quoted(name)));
    }
    request.after.iter().for_each(|one| line(text, depth, one));
}

/// The headers; an object cannot hold a name twice, so equal names are joined.
fn headers(request: &ScriptRequest) -> Vec<(String, String)> {
    let mut headers: Vec<(String, crate::template::Template)> = Vec::new();
    for (name, value) in &request.headers {
        match headers.iter_mut().find(|known| known.0.eq_ignore_ascii_case(name)) {
            Some(known) => {
                known.1.push(if name.eq_ignore_ascii_case("cookie") { "; " } else { ", " });
                known.1.append(value.clone());
            }
            None => headers.push((name.clone(), value.clone())),
        }
    }
    headers.into_iter().map(|(name, value)| (name, value.js())).collect()
}

/// A line as a comment.
pub fn comment(text: &str) -> String {
    format!("// {}", text.replace(['\n', '\r', '\u{2028}', '\u{2029}'], " "))
}
