//! Sample values of schemas.

use serde_json::{Map, Value, json};

use super::{Description, object};

/// The deepest nesting: schemas may be recursive.
const DEPTH_MAX: usize = 8;

/// Samples of strings, by format.
const FORMATS: [(&str, &str); 14] = [
    ("date-time", "2026-01-01T12:00:00Z"),
    ("date", "2026-01-01"),
    ("time", "12:00:00Z"),
    ("duration", "PT1M"),
    ("uuid", "3fa85f64-5717-4562-b3fc-2c963f66afa6"),
    ("email", "user@example.com"),
    ("uri", "https://example.com/"),
    ("url", "https://example.com/"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("byte", "c3RyaW5n"),
    ("password", "password"),
    ("phone", "+15550100"),
];

pub(super) fn sample<'a>(description: &mut Description<'a>, schema: &'a Value) -> Value {
    of(description, schema, 0)
}

/// Whether a schema specifies a value: by an example, default, enumeration, format or bound.
pub(super) fn is_given<'a>(description: &mut Description<'a>, schema: &'a Value) -> bool {
    let schema = description.resolve(schema);
    given(schema).is_some()
        || ["format", "minimum", "maximum"].iter().any(|key| schema.get(key).is_some())
        || matches!(kind(schema), "boolean" | "integer" | "number" | "object")
        || schema.get("items").is_some_and(|items| is_given(description, items))
        || ["allOf", "oneOf", "anyOf"].iter().any(|key| {
            let inner = schema.get(key).and_then(|list| list.get(0));
            inner.is_some_and(|inner| is_given(description, inner))
        })
}

fn given(schema: &Value) -> Option<&Value> {
    let keys = ["example", "x-example", "const", "default"];
    let own = keys.iter().find_map(|key| schema.get(key)).filter(|value| !value.is_null());
    own.or_else(|| schema.pointer("/examples/0")).or_else(|| schema.pointer("/enum/0"))
}

/// The type; in version 3.1 there may be several.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "",
    }
}

fn of<'a>(description: &mut Description<'a>, schema: &'a Value, depth: usize) -> Value {
    let schema = description.resolve(schema);
    if let Some(value) = given(schema) {
        return value.clone();
    }
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
        let mut joined = Map::new();
        for one in all {
            match of(description, one, depth + 1) {
                Value::Object(entries) => joined.extend(entries),
                Value::Null => {}
                value => return value,
            }
        }
        if let Value::Object(own) = properties(description, schema, depth) {
            joined.extend(own);
        }
        return Value::Object(joined);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(first) = schema.get(key).and_then(|list| list.get(0)) {
            return of(description, first, depth + 1);
        }
    }
    match kind(schema) {
        "array" => {
            let item = schema.get("items").map(|items| of(description, items, depth + 1));
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 10);
            match item {
                Some(Value::Null) | None => json!([]),
                Some(item) => Value::Array(vec![item; usize::try_from(count).unwrap_or(1)]),
            }
        }
        "integer" => number(schema).into(),
        "number" => match schema.get("minimum") {
            Some(least) if schema.get("exclusiveMinimum").is_none() => least.clone(),
            _ => number(schema).into(),
        },
        "boolean" => Value::Bool(true),
        "string" => Value::from(string(schema)),
        "object" => properties(description, schema, depth),
        "" if schema.is_object() && schema.get("format").is_some() => Value::from(string(schema)),
        _ => Value::Null,
    }
}

/// An object with its required properties and those with an example; with all if none is required.
fn properties<'a>(description: &mut Description<'a>, schema: &'a Value, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut own = Map::new();
    for (name, property) in object(schema.get("properties")) {
        let resolved = description.resolve(property);
        if resolved.get("readOnly") == Some(&Value::Bool(true)) {
            continue;
        }
        let is_wanted = required.is_empty() || required.contains(&name.as_str());
        if is_wanted || given(resolved).is_some() {
            let value = of(description, property, depth + 1);
            if !value.is_null() || required.contains(&name.as_str()) {
                own.insert(name.clone(), value);
            }
        }
    }
    Value::Object(own)
}

fn number(schema: &Value) -> i64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    // A boolean in version 3.0, a number in 3.1.
    let above = match schema.get("exclusiveMinimum") {
        Some(Value::Bool(true)) => bound("minimum").map(|least| least.floor() + 1.0),
        Some(Value::Number(least)) => least.as_f64().map(|least| least.floor() + 1.0),
        _ => bound("minimum").map(f64::ceil),
    };
    let step = bound("multipleOf").filter(|step| *step >= 1.0).unwrap_or(1.0);
    let value = match (above, bound("maximum")) {
        (Some(least), _) => least,
        (None, Some(most)) => most.floor().min(1.0),
        (None, None) => 1.0,
    };
    ((value / step).ceil() * step) as i64
}

fn string(schema: &Value) -> String {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let known = FORMATS.iter().find(|known| known.0 == format);
    let mut text = known.map_or("string", |known| known.1).to_owned();
    let length = |key: &str| {
        schema.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok())
    };
    if known.is_none() {
        while text.len() < length("minLength").unwrap_or(0).min(4096) {
            text.push('x');
        }
        text.truncate(length("maxLength").unwrap_or(usize::MAX).max(1));
    }
    text
}

/// A value as text, without JSON's quotes.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
