//! Request bodies in specs: a string, or a table with `file` or `base64`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::request::BodySpec;

/// A body: a string, or a table with `file` or `base64`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "BodySchema"))]
pub struct BodyValue(pub BodySpec);

/// A body as a table.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum BodyTable {
    /// The contents of a file; `-` is standard input.
    File(PathBuf),
    /// These bytes.
    Base64(String),
}

#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the JSON schema of BodyValue")]
enum BodySchema {
    Text(String),
    Table(BodyTable),
}

impl Serialize for BodyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            BodySpec::File(path) => BodyTable::File(path.clone()).serialize(serializer),
            BodySpec::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => serializer.serialize_str(text),
                Err(_) => BodyTable::Base64(STANDARD.encode(bytes)).serialize(serializer),
            },
        }
    }
}

impl<'de> Deserialize<'de> for BodyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BodyVisitor).map(Self)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = BodySpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, { file = \"PATH\" } or { base64 = \"...\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<BodySpec, E> {
        Ok(BodySpec::text(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BodySpec, A::Error> {
        match BodyTable::deserialize(MapAccessDeserializer::new(map))? {
            BodyTable::File(path) => Ok(BodySpec::File(path)),
            BodyTable::Base64(text) => match STANDARD.decode(text.trim()) {
                Ok(bytes) => Ok(BodySpec::Bytes(Arc::from(bytes))),
                Err(error) => Err(A::Error::custom(format!("this is not base64: {error}"))),
            },
        }
    }
}
