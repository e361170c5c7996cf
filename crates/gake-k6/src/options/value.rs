//! Parses the JSON values of options, with k6's errors.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::duration::GoDuration;

/// The type of an option.
pub(super) trait OptionValue: Sized {
    /// Parses it; `None` for an empty string, which leaves the option to the lower tier.
    fn from_json(value: &Value) -> Result<Option<Self>, String>;

    /// Parses the entry of a map.
    fn from_entry(_name: &str, value: &Value) -> Result<Option<Self>, String> {
        Self::from_json(value)
    }
}

/// Go's type name of a value; empty for arrays and objects.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "",
    }
}

/// Go's error for a value of a wrong type.
pub(super) fn mismatch(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", type_name(value))
}

impl OptionValue for i64 {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        match value {
            Value::Number(number) => number.as_i64().map(Some).ok_or_else(|| {
                format!("json: cannot unmarshal number {number} into Go value of type int64")
            }),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => text
                .parse()
                .map(Some)
                .map_err(|_| format!("strconv.ParseInt: parsing {text:?}: invalid syntax")),
            other => Err(mismatch(other, "null.Int")),
        }
    }
}

impl OptionValue for bool {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        value.as_bool().map(Some).ok_or_else(|| mismatch(value, "null.Bool"))
    }
}

impl OptionValue for String {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        match value {
            Value::String(text) => Ok(Some(text.clone())),
            other => Err(mismatch(other, "null.String")),
        }
    }
}

impl OptionValue for GoDuration {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        match value {
            Value::Number(number) => Ok(number.as_f64().map(Self::from_millis)),
            Value::String(text) => Self::parse(text).map(Some).map_err(|error| error.to_string()),
            other => Err(format!("'{other}' is not a valid duration value")),
        }
    }
}

impl OptionValue for Value {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        Ok(Some(value.clone()))
    }
}

impl<T: OptionValue> OptionValue for Vec<T> {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        let items = value.as_array().ok_or_else(|| mismatch(value, "[]string"))?;
        let items = items.iter().filter_map(|item| T::from_json(item).transpose());
        items.collect::<Result<_, _>>().map(Some)
    }
}

impl<T: OptionValue> OptionValue for BTreeMap<String, T> {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        let entries = object(value, "map[string]string")?.iter();
        let read = |(key, value): (&String, &Value)| {
            let value = T::from_entry(key, value).transpose()?;
            Some(value.map(|value| (key.clone(), value)))
        };
        entries.filter_map(read).collect::<Result<_, _>>().map(Some)
    }
}

/// A value as an object.
pub(super) fn object<'a>(value: &'a Value, wanted: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| mismatch(value, wanted))
}

/// The entries of an object with these keys (ignoring case, and `null` values), and its first
/// unknown key.
pub(super) fn known<'a>(
    object: &'a Map<String, Value>,
    keys: &[&'static str],
) -> (Vec<(&'static str, &'a Value)>, Option<&'a str>) {
    let mut entries = Vec::new();
    let mut unknown = None;
    for (written, value) in object {
        let key = keys.iter().find(|key| *key == written);
        match key.or_else(|| keys.iter().find(|key| key.eq_ignore_ascii_case(written))) {
            Some(_) if value.is_null() => {}
            Some(key) => entries.push((*key, value)),
            None if unknown.is_none() => unknown = Some(written.as_str()),
            None => {}
        }
    }
    (entries, unknown)
}
