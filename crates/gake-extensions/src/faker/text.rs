//! Texts of words and templates.

use serde_json::{Value as Json, json};

use super::random::Random;
use super::table::{Source, functions};

/// The depth of templates in templates.
const DEPTH_MAX: usize = 8;

/// The text of a function without arguments.
pub(super) fn text(random: &mut Random, name: &str) -> String {
    nested(random, name, DEPTH_MAX)
}

fn nested(random: &mut Random, name: &str, depth: usize) -> String {
    let (Some(function), true) = (functions().get(name), depth > 0) else { return String::new() };
    match &function.source {
        Source::Words(words) => random.pick(words).copied().unwrap_or_default().to_owned(),
        Source::Templates(templates) => {
            let template = random.pick(templates).copied().unwrap_or_default();
            filled(random, template, depth - 1)
        }
        // None of them is in a template.
        Source::Code => String::new(),
    }
}

/// A template with its parts filled in.
fn filled(random: &mut Random, template: &str, depth: usize) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        let (part, after) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((call, after)) => (called(random, call, depth), after),
            None => (mark(random, c).to_string(), &rest[c.len_utf8()..]),
        };
        text += &part;
        rest = after;
    }
    text
}

/// A call in a template: a name, with a change of its text before it.
fn called(random: &mut Random, call: &str, depth: usize) -> String {
    let (change, name) = call.split_once(':').unwrap_or(("", call));
    let text = nested(random, name, depth);
    match change {
        "_capital" => capital(&text),
        "_lower" => text.to_lowercase(),
        "_letters" => {
            text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
        }
        _ => text,
    }
}

/// A text that begins with a capital.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A digit or letter for a mark.
fn mark(random: &mut Random, c: char) -> char {
    match c {
        '#' => char::from(b'0' + random.below(10) as u8),
        '^' => char::from(b'1' + random.below(9) as u8),
        other => other,
    }
}

/// `count` characters of a set.
pub(super) fn drawn(random: &mut Random, set: &[u8], count: usize) -> String {
    (0..count).filter_map(|_| random.pick(set).map(|byte| char::from(*byte))).collect()
}

/// A text as a value.
pub(super) fn string(text: impl Into<String>) -> Option<Json> {
    Some(json!(text.into()))
}
