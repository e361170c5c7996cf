//! Compares JSON by structure.
//!
//! All elements of an array share the path `[*]`, and all keys that look like identifiers `.{id}`: a
//! path denotes a field of the schema, not of one document.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use gake_text::redact::{Redacted, Redactor};
use serde_json::{Map, Value};

use super::field::{DifferenceKind, Differences};
use super::template::placeholder;

/// Members that may identify the elements of an array, in order of preference.
const IDENTITIES: &[&str] = &["id", "_id", "uuid", "key", "name", "code", "slug"];

pub(super) fn compare(expected: &Value, actual: &Value, out: &mut Differences<'_>) {
    let mut walk = Walk { path: "$".to_owned(), secret: false };
    walk.values(expected, actual, out);
}

struct Walk {
    path: String,
    /// Whether an enclosing name is secret.
    secret: bool,
}

impl Walk {
    fn values(&mut self, expected: &Value, actual: &Value, out: &mut Differences<'_>) {
        match (expected, actual) {
            (Value::Object(expected), Value::Object(actual)) => self.objects(expected, actual, out),
            (Value::Array(expected), Value::Array(actual)) => self.arrays(expected, actual, out),
            (Value::Number(a), Value::Number(b)) => {
                let is_within_tolerance = || {
                    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return false };
                    out.tolerances.allow(&self.path, a, b)
                };
                if a != b && !is_within_tolerance() {
                    self.note(DifferenceKind::Value, Some(expected), Some(actual), out);
                }
            }
            _ if kind(expected) != kind(actual) => {
                self.note(DifferenceKind::Type, Some(expected), Some(actual), out);
            }
            _ if expected != actual => {
                self.note(DifferenceKind::Value, Some(expected), Some(actual), out)
            }
            _ => {}
        }
    }

    fn objects(
        &mut self,
        expected: &Map<String, Value>,
        actual: &Map<String, Value>,
        out: &mut Differences<'_>,
    ) {
        let redactor = out.redactor;
        for (key, value) in expected {
            self.within(key, redactor, |walk| match actual.get(key) {
                Some(other) => walk.values(value, other, out),
                None => walk.note(DifferenceKind::Missing, Some(value), None, out),
            });
        }
        for (key, value) in actual.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            self.within(key, redactor, |walk| {
                walk.note(DifferenceKind::Added, None, Some(value), out)
            });
        }
    }

    fn arrays(&mut self, expected: &[Value], actual: &[Value], out: &mut Differences<'_>) {
        if expected == actual {
            return;
        }
        let before = self.path.len();
        self.path.push_str("[*]");
        if let Some(identity) = identity(expected, actual) {
            self.by_identity(identity, expected, actual, out);
        } else {
            self.by_value(expected, actual, out);
        }
        self.path.truncate(before);
    }

    /// Compares elements with the same identity, whatever their positions.
    fn by_identity(
        &mut self,
        identity: &str,
        expected: &[Value],
        actual: &[Value],
        out: &mut Differences<'_>,
    ) {
        let positions: HashMap<String, usize> = actual
            .iter()
            .enumerate()
            .map(|(at, value)| (value[identity].to_string(), at))
            .collect();
        let mut matched = vec![false; actual.len()];
        let mut last = 0;
        let mut in_order = true;
        for value in expected {
            let Some(&at) = positions.get(&value[identity].to_string()) else {
                self.note(DifferenceKind::Missing, Some(value), None, out);
                continue;
            };
            in_order &= last <= at;
            last = at;
            matched[at] = true;
            self.values(value, &actual[at], out);
        }
        for (value, _) in actual.iter().zip(matched).filter(|(_, matched)| !matched) {
            self.note(DifferenceKind::Added, None, Some(value), out);
        }
        if !in_order {
            self.order(expected, actual, out);
        }
    }

    /// Compares elements without an identity: equal ones are matched whatever their positions, the
    /// rest in order.
    fn by_value(&mut self, expected: &[Value], actual: &[Value], out: &mut Differences<'_>) {
        if expected.len() == actual.len() {
            let mut hashes = [expected, actual].map(|all| all.iter().map(hash).collect::<Vec<_>>());
            hashes.iter_mut().for_each(|all| all.sort_unstable());
            if hashes[0] == hashes[1] {
                self.order(expected, actual, out);
                return;
            }
            for (expected, actual) in expected.iter().zip(actual) {
                self.values(expected, actual, out);
            }
            return;
        }
        let mut spare: HashMap<u64, usize> = HashMap::new();
        actual.iter().for_each(|value| *spare.entry(hash(value)).or_default() += 1);
        let take = |value: &Value, spare: &mut HashMap<u64, usize>| {
            let left = spare.get_mut(&hash(value)).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_none()
        };
        let missing: Vec<_> = expected.iter().filter(|value| take(value, &mut spare)).collect();
        let mut new = actual.iter().filter(|value| !take(value, &mut spare)).collect::<Vec<_>>();
        new.reverse();
        for value in missing {
            match new.pop() {
                Some(other) => self.values(value, other, out),
                None => self.note(DifferenceKind::Missing, Some(value), None, out),
            }
        }
        for value in new {
            self.note(DifferenceKind::Added, None, Some(value), out);
        }
    }

    fn order(&self, expected: &[Value], actual: &[Value], out: &mut Differences<'_>) {
        let redactor = out.redactor;
        let shown = |all: &[Value]| self.shown(Some(&Value::Array(all.to_vec())), redactor);
        out.note(&self.path, DifferenceKind::Order, || (shown(expected), shown(actual)));
    }

    fn within(&mut self, key: &str, redactor: &Redactor, body: impl FnOnce(&mut Self)) {
        let (before, secret) = (self.path.len(), self.secret);
        // A member of a secret may be named by one.
        let tag = (secret && !redactor.is_off()).then(|| redactor.tag(key.as_bytes()));
        let key = tag.as_deref().unwrap_or(key);
        self.secret |= redactor.is_secret_name(key);
        match placeholder(key) {
            Some(id) => {
                self.path.push('.');
                self.path.push_str(id);
            }
            None if is_name(key) => {
                self.path.push('.');
                self.path.push_str(key);
            }
            None => {
                self.path.push_str("['");
                self.path.push_str(&redactor.text(key));
                self.path.push_str("']");
            }
        }
        body(self);
        self.path.truncate(before);
        self.secret = secret;
    }

    fn note(
        &self,
        kind: DifferenceKind,
        expected: Option<&Value>,
        actual: Option<&Value>,
        out: &mut Differences<'_>,
    ) {
        let redactor = out.redactor;
        let shown = |value| self.shown(value, redactor);
        out.note(&self.path, kind, || (shown(expected), shown(actual)));
    }

    /// A redacted value. Equal values have equal placeholders, so differences stay visible.
    fn shown(&self, value: Option<&Value>, redactor: &Redactor) -> Redacted {
        let Some(value) = value else { return Redacted::plain("nothing") };
        let written = value.to_string();
        if self.secret {
            return redactor.json(&written, true);
        }
        // Redaction depends on the member's name, which is the last of the path.
        let name = self.path.rsplit('.').next().unwrap_or_default();
        let member = format!("{{{}:{written}}}", Value::from(name));
        let hidden = redactor.json(&member, false);
        hidden.slice(member.len() - written.len() - 1..hidden.len() - 1)
    }
}

/// The member that identifies the elements of both arrays: present in all, and unique.
fn identity(expected: &[Value], actual: &[Value]) -> Option<&'static str> {
    if expected.is_empty() || actual.is_empty() {
        return None;
    }
    let names = |all: &[Value], name: &str| {
        let of = |value: &Value| match value.get(name) {
            Some(id @ (Value::String(_) | Value::Number(_))) => Some(hash(id)),
            _ => None,
        };
        let mut ids = all.iter().map(of).collect::<Option<Vec<_>>>()?;
        ids.sort_unstable();
        ids.windows(2).all(|two| two[0] != two[1]).then_some(ids)
    };
    IDENTITIES.iter().copied().find(|name| {
        let (Some(a), Some(b)) = (names(expected, name), names(actual, name)) else { return false };
        // Identities generated per response match nothing.
        a.iter().any(|id| b.binary_search(id).is_ok())
    })
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_name(key: &str) -> bool {
    !key.is_empty()
        && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        && !key.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rules::Tolerances;
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([1; 16], gake_text::redact::SecretNames::default())
    }

    fn found(expected: &Value, actual: &Value) -> Vec<String> {
        let redactor = redactor();
        let mut out = Differences::new(Tolerances::default(), &redactor);
        compare(expected, actual, &mut out);
        out.fields.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn differences_have_a_path_and_a_kind() {
        let expected =
            json!({"a": {"b": 1, "c": [1, 2]}, "s": "x", "gone": {"deep": 1}, "n": null});
        let actual = json!({"a": {"b": 2, "c": [1, "2"]}, "s": "y", "new": 1, "n": false});
        assert_eq!(
            found(&expected, &actual),
            [
                "$.a.b value",
                "$.a.c[*] type",
                "$.gone missing",
                "$.n type",
                "$.new added",
                "$.s value"
            ]
        );
        assert!(found(&expected, &expected).is_empty());
        assert_eq!(found(&json!({"a b": 1}), &json!({"a b": 2})), ["$['a b'] value"]);
        assert_eq!(found(&json!({"17": 1}), &json!({"17": 2})), ["$.{id} value"]);
        assert_eq!(found(&json!(1), &json!([1])), ["$ type"]);
    }

    #[test]
    fn elements_are_matched_by_identity() {
        let of = |ids: &[i32], price: i32| {
            json!(ids.iter().map(|id| json!({"id": id, "price": price})).collect::<Vec<_>>())
        };
        assert!(found(&of(&[1, 2, 3], 5), &of(&[1, 2, 3], 5)).is_empty());
        assert_eq!(found(&of(&[1, 2, 3], 5), &of(&[3, 1, 2], 5)), ["$[*] order"]);
        assert_eq!(found(&of(&[1, 2, 3], 5), &of(&[1, 3], 5)), ["$[*] missing"]);
        assert_eq!(found(&of(&[1, 3], 5), &of(&[1, 2, 3], 6)), ["$[*] added", "$[*].price value"]);
        // Identities generated per response are ordinary values.
        assert_eq!(found(&of(&[1, 2], 5), &of(&[7, 8], 5)), ["$[*].id value"]);
    }

    #[test]
    fn elements_without_identity_are_matched_by_value() {
        assert_eq!(found(&json!([1, 2, 3]), &json!([3, 2, 1])), ["$[*] order"]);
        assert_eq!(found(&json!([1, 2, 3]), &json!([1, 3])), ["$[*] missing"]);
        assert_eq!(found(&json!([1, 3]), &json!([1, 2, 3])), ["$[*] added"]);
        assert_eq!(found(&json!([1, 2, 3]), &json!([1, 9, 3])), ["$[*] value"]);
        assert_eq!(found(&json!([]), &json!([1])), ["$[*] added"]);
        assert_eq!(found(&json!([[1], [2]]), &json!([[1], [2, 3]])), ["$[*][*] added"]);
    }

    #[test]
    fn secrets_are_redacted() {
        let redactor = redactor();
        let mut out = Differences::new(Tolerances::default(), &redactor);
        let of = |n: u32| json!({"token": {"value": n}, "list": [{"password": n}], "x": n});
        compare(&of(1), &json!({"x": {"api_key": 2}}), &mut out);
        let shown = format!("{:?}", out.fields);
        assert!(shown.contains("redacted") && !shown.contains("password\\\":1"), "{shown}");
        assert!(!shown.contains("api_key\\\":2"), "{shown}");
    }
}
