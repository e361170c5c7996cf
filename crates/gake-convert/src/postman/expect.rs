//! The expectations of tests, as JavaScript expressions.

use super::lexer::mask;

/// Chain words without an effect.
const FILLERS: [&str; 12] =
    ["to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "of"];

/// Expected properties of a response that take no argument.
const STATES: [(&str, &str); 8] = [
    ("ok", "res.status === 200"),
    ("success", "res.status >= 200 && res.status < 300"),
    ("redirection", "res.status >= 300 && res.status < 400"),
    ("clientError", "res.status >= 400 && res.status < 500"),
    ("serverError", "res.status >= 500"),
    ("error", "res.status >= 400"),
    ("withBody", "res.body.length > 0"),
    ("json", "typeof res.json() === 'object'"),
];

/// Comparisons: chain words, and an expression of the value `{a}` and the argument `{b}`.
const COMPARISONS: [(&[&str], &str); 16] = [
    (&["equal", "equals", "eq"], "{a} === {b}"),
    (&["eql", "eqls"], "JSON.stringify({a}) === JSON.stringify({b})"),
    (&["below", "lessThan", "lt"], "{a} < {b}"),
    (&["above", "greaterThan", "gt"], "{a} > {b}"),
    (&["least", "gte", "greaterThanOrEqual"], "{a} >= {b}"),
    (&["most", "lte", "lessThanOrEqual"], "{a} <= {b}"),
    (&["include", "includes", "contain", "contains", "string"], "{a}.includes({b})"),
    (&["oneOf"], "{b}.includes({a})"),
    (&["match", "matches"], "{b}.test({a})"),
    (&["a", "an"], "(Array.isArray({a}) ? 'array' : typeof {a}) === {b}.toLowerCase()"),
    (&["property", "ownProperty", "key"], "{a}[{b}] !== undefined"),
    (&["lengthOf", "length"], "{a}.length === {b}"),
    (&["true"], "{a} === true"),
    (&["false"], "{a} === false"),
    (&["null"], "{a} === null"),
    (&["undefined"], "{a} === undefined"),
];

/// Comparisons without an argument.
const BARE: [(&[&str], &str); 3] = [
    (&["ok"], "Boolean({a})"),
    (&["exist", "exists"], "({a} !== undefined && {a} !== null)"),
    (&["empty"], "Object.keys({a}).length === 0"),
];

/// The expression for `pm.expect(value).to...` or `pm.response.to...`.
pub(super) fn expectation(statement: &str) -> Option<String> {
    let statement = statement.trim().trim_end_matches(';').trim_end();
    let masked = mask(statement);
    let (value, chain) = if let Some(rest) = masked.strip_prefix("pm.expect(") {
        let end = closing(rest)?;
        let start = masked.len() - rest.len();
        // The second argument is a message.
        let value = first_argument(&statement[start..start + end], &rest[..end]);
        (Some(value), start + end + 1)
    } else if masked.starts_with("pm.response.to.") {
        (None, "pm.response".len())
    } else {
        return None;
    };
    let mut is_not = false;
    let mut rest = chain;
    loop {
        let word_at = rest + masked[rest..].find('.')? + 1;
        if !masked[rest..word_at - 1].trim().is_empty() {
            return None;
        }
        let tail = &masked[word_at..];
        let end = tail.find(|c: char| !c.is_alphanumeric()).unwrap_or(tail.len());
        let word = &statement[word_at..word_at + end];
        rest = word_at + end;
        let argument = match masked[rest..].strip_prefix('(') {
            Some(inner) => {
                let end = closing(inner)?;
                let argument = statement[rest + 1..rest + 1 + end].trim();
                rest += end + 2;
                Some(argument)
            }
            None => None,
        };
        let is_last = masked[rest..].trim().is_empty();
        match (word, argument) {
            ("not", None) => is_not = !is_not,
            ("deep", None) => {}
            (word, None) if FILLERS.contains(&word) && !is_last => {}
            _ if !is_last => return None,
            (word, argument) => {
                let holds = match &value {
                    Some(value) => compared(value, word, argument)?,
                    None => response(word, argument)?,
                };
                return Some(if is_not { format!("!({holds})") } else { holds });
            }
        }
    }
}

fn compared(value: &str, word: &str, argument: Option<&str>) -> Option<String> {
    let tables = COMPARISONS.iter().chain(&BARE);
    let form = tables
        .clone()
        .find(|known| known.0.contains(&word) && known.1.contains("{b}") == argument.is_some())?
        .1;
    let is_simple =
        |code: &str| code.chars().all(|c| c.is_alphanumeric() || "_.$'\"[]()".contains(c));
    let value = if is_simple(value) { value.to_owned() } else { format!("({value})") };
    let argument = argument.unwrap_or_default();
    // `property(name, value)` and `within(a, b)` have two arguments.
    if first_argument(argument, &mask(argument)).len() != argument.trim().len() {
        return None;
    }
    let is_text = argument.starts_with(['"', '\'']) || argument.parse::<f64>().is_ok();
    let form = if word.starts_with("eql") && is_text { "{a} === {b}" } else { form };
    Some(form.replace("{a}", &value).replace("{b}", argument))
}

fn response(word: &str, argument: Option<&str>) -> Option<String> {
    match (word, argument) {
        ("status", Some(code)) if code.parse::<u16>().is_ok() => {
            Some(format!("res.status === {code}"))
        }
        ("status", Some(text)) => Some(format!("res.status_text.includes({text})")),
        ("header", Some(name)) if !name.contains(',') => {
            Some(format!("pm.response.headers.get({name}) !== undefined"))
        }
        ("body", Some(text)) if !text.is_empty() => Some(format!("res.body === {text}")),
        ("body", _) => Some("res.body.length > 0".to_owned()),
        ("jsonBody", None | Some("")) => Some("typeof res.json() === 'object'".to_owned()),
        (word, None) => STATES.iter().find(|state| state.0 == word).map(|state| state.1.to_owned()),
        _ => None,
    }
}

/// The index of the bracket that closes one opened before the masked code.
fn closing(masked: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in masked.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn first_argument<'a>(code: &'a str, masked: &str) -> &'a str {
    let mut depth = 0;
    for (at, c) in masked.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => return code[..at].trim(),
            _ => {}
        }
    }
    code.trim()
}
