//! Translates simple Postman scripts to statements of k6.

use super::lexer::{is_end, mask, statements};
use crate::template::{quoted, variable_name};

/// The translated part of a script.
#[derive(Debug, Default)]
pub(super) struct TranslatedScript {
    pub(super) lines: Vec<String>,
    /// Whether they can throw.
    pub(super) can_throw: bool,
    /// Whether some of them are checks.
    pub(super) has_checks: bool,
    /// Statements that were not translated.
    pub(super) lost: Vec<String>,
}

/// Postman expressions and their k6 equivalents.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("JSON.parse(responseBody)", "res.json()"),
    ("JSON.parse(pm.response.text())", "res.json()"),
    ("pm.response.json()", "res.json()"),
    ("pm.response.text()", "res.body"),
    ("pm.response.code", "res.status"),
    ("pm.response.responseTime", "res.timings.duration"),
    ("pm.response.responseSize", "res.body.length"),
    ("responseCode.code", "res.status"),
    ("responseBody.has(", "res.body.includes("),
    ("responseBody", "res.body"),
    ("responseTime", "res.timings.duration"),
    ("pm.info.iteration", "__ITER"),
    ("btoa(", "encoding.b64encode("),
];

/// Objects that hold variables.
const SCOPES: [&str; 4] =
    ["pm.environment", "pm.globals", "pm.collectionVariables", "pm.variables"];

/// Functions that read, write or remove a named variable.
const READERS: [&str; 2] = ["postman.getEnvironmentVariable", "postman.getGlobalVariable"];
const WRITERS: [&str; 2] = ["postman.setEnvironmentVariable", "postman.setGlobalVariable"];
const REMOVERS: [&str; 2] = ["postman.clearEnvironmentVariable", "postman.clearGlobalVariable"];

/// Code without an equivalent in k6.
const UNKNOWN: [&str; 25] = [
    "pm.",
    "pm[",
    "postman.",
    "require(",
    "CryptoJS",
    "_.",
    "cheerio",
    "xml2Json",
    "tv4",
    "responseHeaders",
    "responseCode",
    "tests[",
    "tests.",
    "request.",
    "environment.",
    "environment[",
    "globals.",
    "globals[",
    "moment",
    "await ",
    "setTimeout(",
    "btoa(",
    "atob(",
    "expect(",
    "async ",
];

pub(super) fn translate(code: &str, is_test: bool) -> TranslatedScript {
    let mut translated = TranslatedScript::default();
    let mut lost_names: Vec<String> = Vec::new();
    for statement in statements(code) {
        let is_lost = lost_names.iter().any(|name| mentions(&statement, name));
        let lines = match is_lost {
            true => None,
            false if is_test => check(&statement).or_else(|| expression(&statement)),
            false => expression(&statement).filter(|code| !mentions(code, "res")),
        };
        let Some(line) = lines else {
            lost_names.extend(declared(&statement));
            translated.lost.push(statement);
            continue;
        };
        let is_check = line.starts_with("check(");
        translated.has_checks |= is_check;
        translated.can_throw |= !is_check;
        let end = if line.ends_with('}') || line.ends_with(';') { "" } else { ";" };
        translated.lines.push(line + end);
    }
    translated
}

/// The names declared by a statement.
fn declared(statement: &str) -> Vec<String> {
    let masked = mask(statement);
    let mut names = Vec::new();
    for word in ["var ", "let ", "const ", "function "] {
        for (at, _) in masked.match_indices(word) {
            let rest = masked[at + word.len()..].trim_start();
            let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
            names.push(rest[..end].to_owned());
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The positions of a name in masked code, except as part of a longer name.
fn occurrences<'a>(masked: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    masked.match_indices(name).map(|found| found.0).filter(move |at| {
        let before = masked[..*at].chars().next_back();
        let after = masked[at + name.len()..].chars().next();
        let is_end = !name.ends_with(is_name) || !after.is_some_and(is_name);
        is_end && !before.is_some_and(|c| is_name(c) || c == '.')
    })
}

fn mentions(code: &str, name: &str) -> bool {
    occurrences(&mask(code), name).next().is_some()
}

/// A function call and its arguments.
struct CallExpression {
    end: usize,
    arguments: Vec<String>,
}

fn call(code: &str, masked: &str, open: usize) -> Option<CallExpression> {
    let mut depth = 0usize;
    let mut start = open + 1;
    let mut arguments = Vec::new();
    for (at, c) in masked[open..].char_indices().map(|(at, c)| (open + at, c)) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let last = code[start..at].trim();
                    if !last.is_empty() || !arguments.is_empty() {
                        arguments.push(last.to_owned());
                    }
                    return Some(CallExpression { end: at + 1, arguments });
                }
            }
            ',' if depth == 1 => {
                arguments.push(code[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// Code with k6's variables and responses; `None` if anything else is left.
fn expression(code: &str) -> Option<String> {
    let mut code = code.to_owned();
    for scope in SCOPES {
        code = calls(code, &format!("{scope}.get"), read)?;
        code = calls(code, &format!("{scope}.has"), |call| {
            Some(format!("({} !== undefined)", read(call)?))
        })?;
        code = calls(code, &format!("{scope}.set"), write)?;
        code = calls(code, &format!("{scope}.unset"), remove)?;
    }
    for name in READERS {
        code = calls(code, name, read)?;
    }
    for name in WRITERS {
        code = calls(code, name, write)?;
    }
    for name in REMOVERS {
        code = calls(code, name, remove)?;
    }
    for name in ["pm.response.headers.get", "postman.getResponseHeader"] {
        code = calls(code, name, |call| {
            Some(format!("res.headers[{}]", header(call.arguments.first()?)?))
        })?;
    }
    code = calls(code, "pm.cookies.get", |call| {
        Some(format!("res.cookies[{}][0].value", call.arguments.first()?))
    })?;
    let own = declared(&code);
    for (from, to) in EXPRESSIONS {
        let root = from.split('.').next().unwrap_or_default();
        if own.iter().any(|name| name == root) {
            continue;
        }
        // Masking leaves only the letters of expressions that contain a call.
        while let Some(at) = occurrences(&mask(&code), from).next() {
            code.replace_range(at..at + from.len(), to);
        }
    }
    let is_unknown = |token: &&str| {
        let root = token.trim_end_matches(|c: char| !is_name(c));
        mentions(&code, token) && !own.iter().any(|name| name == root)
    };
    let balanced =
        call(&format!("({code})"), &mask(&format!("({code})")), 0)?.end == code.len() + 2;
    (balanced && !UNKNOWN.iter().any(is_unknown)).then_some(code)
}

/// Replaces each call of a function.
fn calls(
    mut code: String,
    name: &str,
    replace: impl Fn(&CallExpression) -> Option<String>,
) -> Option<String> {
    let open = format!("{name}(");
    loop {
        let masked = mask(&code);
        let Some(at) = occurrences(&masked, &open).next() else { return Some(code) };
        let call = call(&code, &masked, at + open.len() - 1)?;
        code.replace_range(at..call.end, &replace(&call)?);
    }
}

/// `vars.name`, or `vars[expression]`.
fn variable(argument: &str) -> Option<String> {
    Some(match string(argument) {
        Some(name) => format!("vars.{}", variable_name(name)),
        None if argument.is_empty() => return None,
        None => format!("vars[{argument}]"),
    })
}

fn read(call: &CallExpression) -> Option<String> {
    variable(call.arguments.first()?)
}

fn write(call: &CallExpression) -> Option<String> {
    match call.arguments.as_slice() {
        [name, value] => Some(format!("{} = {value}", variable(name)?)),
        _ => None,
    }
}

fn remove(call: &CallExpression) -> Option<String> {
    Some(format!("delete {}", variable(call.arguments.first()?)?))
}

/// The text of a plain string literal.
fn string(literal: &str) -> Option<&str> {
    let inner = literal.get(1..literal.len().checked_sub(1)?)?;
    let quote = literal.chars().next().filter(|c| ['"', '\'', '`'].contains(c))?;
    let plain = literal.ends_with(quote) && !inner.contains([quote, '\\']);
    (plain && !inner.contains("${")).then_some(inner)
}

/// A header name in k6's spelling: `Content-Type`.
fn header(literal: &str) -> Option<String> {
    let words = string(literal)?.split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_uppercase() + &rest.to_lowercase()
    });
    Some(quoted(&words.collect::<Vec<_>>().join("-")))
}

/// A test as a check: `pm.test(name, function)`, `tests[name] = expression`.
fn check(statement: &str) -> Option<String> {
    let masked = mask(statement);
    let (name, holds) = if masked.starts_with("tests[") {
        let (left, _) = masked.split_once('=')?;
        let name = statement[6..left.trim_end().len()].strip_suffix(']')?;
        let holds = expression(statement[left.len() + 1..].trim().trim_end_matches(';'))?;
        (name.to_owned(), holds)
    } else if masked.starts_with("pm.test(") {
        let call = call(statement, &masked, "pm.test".len())?;
        let [name, function] = call.arguments.as_slice() else { return None };
        (name.clone(), test_body(function)?)
    } else {
        return None;
    };
    let name = match string(&name) {
        Some(name) => quoted(name),
        None => format!("[{}]", expression(&name)?),
    };
    // A test that throws does not hold.
    let holds = match holds.contains(['(', '{', '[']) {
        true => format!("holds(() => {holds})"),
        false => holds,
    };
    Some(format!("check(res, {{ {name}: () => {holds} }});"))
}

/// The expectation in a test function, as an expression or a block that returns it.
fn test_body(function: &str) -> Option<String> {
    let masked = mask(function);
    if masked.starts_with("async") {
        return None;
    }
    let body = match masked.find("=>") {
        Some(at) if masked[..at].trim_end().ends_with(')') && !masked.starts_with("function") => {
            function[at + 2..].trim()
        }
        _ => &function[masked.find('{')?..],
    };
    let inner = body.strip_prefix('{').and_then(|body| body.strip_suffix('}'));
    let mut declarations = String::new();
    let mut holds: Vec<String> = Vec::new();
    for statement in statements(inner.unwrap_or(body)) {
        if let Some(expectation) = super::expect::expectation(&statement) {
            holds.push(expression(&expectation)?);
        } else if !declared(&statement).is_empty() && holds.is_empty() {
            declarations.push_str(&format!("{}; ", expression(statement.trim_end_matches(';'))?));
        } else if !mask(&statement).starts_with("console.") {
            return throwing(inner?);
        }
    }
    if holds.is_empty() {
        return throwing(inner?);
    }
    let holds = holds.join(" && ");
    Some(match declarations.is_empty() {
        true => holds,
        false => format!("{{ {declarations}return {holds}; }}"),
    })
}

/// The body of a test in which a violated expectation throws.
fn throwing(body: &str) -> Option<String> {
    let mut body = body.trim().to_owned();
    loop {
        let masked = mask(&body);
        let starts = ["pm.expect(", "pm.response.to."];
        let Some(at) = starts.iter().filter_map(|start| masked.find(start)).min() else { break };
        let mut depth = 0;
        let end = masked[at..].char_indices().find(|(offset, c)| {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            let end = at + offset;
            let is_line = *c == '\n' && is_end(&masked[at..end], &masked[end..]);
            depth < 0 || depth == 0 && (*c == ';' || is_line)
        });
        let end = end.map_or(body.len(), |(offset, _)| at + offset);
        let holds = super::expect::expectation(&body[at..end])?;
        body.replace_range(at..end, &format!("if (!({holds})) throw new Error('not as expected')"));
    }
    Some(format!("{{\n  {}\n  return true;\n}}", expression(&body)?))
}
