//! JSON whose objects keep the order of their members, for checks and groups in the script's order.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use serde_json::ser::{PrettyFormatter, Serializer as JsonSerializer};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum OrderedJson {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<OrderedJson>),
    Object(Vec<(String, OrderedJson)>),
}

impl OrderedJson {
    pub(super) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.members().iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The members of an object; empty for other values.
    pub(super) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// Pretty-printed with an indent of four blanks.
    pub(super) fn pretty(&self) -> String {
        let mut bytes = Vec::new();
        let mut out =
            JsonSerializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b"    "));
        // Writing to memory cannot fail.
        let _ = self.serialize(&mut out);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl From<serde_json::Value> for OrderedJson {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(list) => Self::List(list.into_iter().map(Self::from).collect()),
            Value::Object(map) => {
                Self::Object(map.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}

impl Serialize for OrderedJson {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Bool(truth) => out.serialize_bool(*truth),
            Self::Number(number) => number.serialize(out),
            Self::Text(text) => out.serialize_str(text),
            Self::List(list) => {
                let mut all = out.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|value| all.serialize_element(value))?;
                all.end()
            }
            Self::Object(members) => {
                let mut all = out.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| all.serialize_entry(name, value))?;
                all.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OrderedJsonVisitor)
    }
}

struct OrderedJsonVisitor;

impl<'de> Visitor<'de> for OrderedJsonVisitor {
    type Value = OrderedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<OrderedJson, E> {
        Ok(Number::from_f64(number).map_or(OrderedJson::Null, OrderedJson::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<OrderedJson, E> {
        Ok(OrderedJson::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<OrderedJson, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = from.next_element()? {
            list.push(value);
        }
        Ok(OrderedJson::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<OrderedJson, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        Ok(OrderedJson::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order() {
        let text =
            "{\n    \"z\": [\n        1,\n        -2,\n        0.5\n    ],\n    \"a\": {}\n}";
        let json: OrderedJson = serde_json::from_str(text).unwrap();
        assert_eq!(json.pretty(), text);
        assert_eq!(json.get("a"), Some(&OrderedJson::Object(Vec::new())));
    }
}
