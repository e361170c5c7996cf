//! Values as YAML in block style.

use serde_json::Value;

/// Words that YAML does not read as text.
const WORDS: &[&str] = &["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

/// Writes each value as a document.
pub fn documents(values: &[Value]) -> String {
    let mut text = String::new();
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            text.push_str("---\n");
        }
        block(value, 0, &mut text);
    }
    text
}

/// Writes a map or list, a line for each scalar, indented by `depth`.
fn block(value: &Value, depth: usize, text: &mut String) {
    match value {
        empty if is_empty(empty) => text.push_str(&format!("{}{empty}\n", " ".repeat(depth))),
        Value::Object(map) => {
            for (key, value) in map {
                text.push_str(&" ".repeat(depth));
                text.push_str(&scalar(&Value::from(key.as_str())));
                text.push(':');
                under(value, depth + 2, text);
            }
        }
        Value::Array(list) => {
            for value in list {
                let mut item = String::new();
                block(value, depth + 2, &mut item);
                // The dash replaces the indentation of the first line.
                let dash = format!("{}- ", " ".repeat(depth));
                text.push_str(&dash);
                text.push_str(item.get(dash.len()..).unwrap_or_default());
            }
        }
        plain => {
            text.push_str(&" ".repeat(depth));
            text.push_str(&scalar(plain));
            text.push('\n');
        }
    }
}

/// Writes the value behind a key.
fn under(value: &Value, depth: usize, text: &mut String) {
    if is_empty(value) || !(value.is_object() || value.is_array()) {
        text.push_str(&format!(" {}\n", scalar(value)));
    } else {
        text.push('\n');
        block(value, depth, text);
    }
}

/// Whether the value is an empty map or list.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A scalar, or an empty map or list: as JSON, which is valid YAML, unless it is a plain word.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_word(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./-_".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(is_plain)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_are_indented_and_odd_texts_quoted() {
        let value = json!({
            "a": {"b": [1, "two", {"c": true, "d": []}, ["x", "y"], {}]},
            "no": "yes",
            "port": "1024 65535",
            "v": "2",
        });
        let text = "a:\n  b:\n    - 1\n    - two\n    - c: true\n      d: []\n    - - x\n      - \"y\"\n    - {}\n\
                    \"no\": \"yes\"\nport: \"1024 65535\"\nv: \"2\"\n";
        assert_eq!(documents(std::slice::from_ref(&value)), text);
        assert_eq!(documents(&[value.clone(), value]), format!("{text}---\n{text}"));
    }
}
