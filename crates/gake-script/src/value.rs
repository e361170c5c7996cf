//! Arguments and results of scripts.

#![expect(
    unsafe_code,
    reason = "the bytes of a script's typed array are lent by QuickJS, and copied at once"
)]

use bytes::Bytes;
use rquickjs::function::IntoArgs;
use rquickjs::object::{Filter, Property};
use rquickjs::{Array, Ctx, IntoJs, Object, TypedArray};

/// Maximum nesting of values.
const DEPTH_MAX: usize = 32;
/// Maximum number of values in a value.
const VALUES_MAX: usize = 65_536;

/// A JSON value, or bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `undefined` or `null`; passed to scripts as `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// A `Uint8Array`.
    Bytes(Bytes),
    /// An array.
    List(Vec<Value>),
    /// An object: its own enumerable properties, in order, without functions and `undefined`.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// A string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An object with these properties.
    pub fn map<const N: usize>(properties: [(&str, Self); N]) -> Self {
        Self::Map(properties.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// A property of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(properties) = self else { return None };
        properties.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<'js> IntoJs<'js> for Value {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<rquickjs::Value<'js>> {
        match self {
            Self::Null => Ok(rquickjs::Value::new_null(ctx.clone())),
            Self::Bool(bool) => Ok(rquickjs::Value::new_bool(ctx.clone(), bool)),
            Self::Number(number) => Ok(rquickjs::Value::new_number(ctx.clone(), number)),
            Self::Text(text) => text.into_js(ctx),
            Self::Bytes(bytes) => TypedArray::<u8>::new_copy(ctx.clone(), bytes)?.into_js(ctx),
            Self::List(values) => {
                let array = Array::new(ctx.clone())?;
                for (index, value) in values.into_iter().enumerate() {
                    array.set(index, value)?;
                }
                array.into_js(ctx)
            }
            Self::Map(properties) => {
                let object = Object::new(ctx.clone())?;
                for (name, value) in properties {
                    // Defined, not set: a header may be named `__proto__`.
                    let value = Property::from(value).writable().enumerable().configurable();
                    object.prop(name, value)?;
                }
                object.into_js(ctx)
            }
        }
    }
}

pub(crate) struct Arguments(pub(crate) Vec<Value>);

impl<'js> IntoArgs<'js> for Arguments {
    fn num_args(&self) -> usize {
        self.0.len()
    }

    fn into_args(self, args: &mut rquickjs::function::Args<'js>) -> rquickjs::Result<()> {
        args.push_args(self.0)
    }
}

/// Why a value cannot be converted.
#[derive(Debug)]
pub(crate) enum ValueError {
    /// A getter threw.
    Thrown(rquickjs::Error),
    /// It has no equivalent; names the kind of value.
    Foreign(&'static str),
}

impl From<rquickjs::Error> for ValueError {
    fn from(error: rquickjs::Error) -> Self {
        match error {
            rquickjs::Error::Utf8(_) => {
                Self::Foreign("a string that is not Unicode (half of a surrogate pair)")
            }
            error => Self::Thrown(error),
        }
    }
}

/// Converts a value of a script. Runs getters.
pub(crate) fn take(value: &rquickjs::Value<'_>) -> Result<Value, ValueError> {
    ValueReader { left: VALUES_MAX }.take(value, 0)
}

struct ValueReader {
    left: usize,
}

impl ValueReader {
    fn take(&mut self, value: &rquickjs::Value<'_>, depth: usize) -> Result<Value, ValueError> {
        if depth > DEPTH_MAX {
            return Err(ValueError::Foreign("a value that is nested too deeply"));
        }
        self.count(1)?;
        if let Some(bool) = value.as_bool() {
            return Ok(Value::Bool(bool));
        }
        if let Some(number) = value.as_number() {
            return Ok(Value::Number(number));
        }
        if let Some(text) = value.as_string() {
            return Ok(Value::Text(text.to_string()?));
        }
        if let Some(array) = value.as_array() {
            // Check first: an empty array may have a length of four billion.
            let len = array.as_object().get::<_, f64>("length")? as usize;
            self.count(len)?;
            return (0..len)
                .map(|index| self.take(&array.get(index)?, depth + 1))
                .collect::<Result<_, _>>()
                .map(Value::List);
        }
        let Some(object) = value.as_object().filter(|_| !value.is_function()) else {
            return if value.is_null() || value.is_undefined() {
                Ok(Value::Null)
            } else {
                Err(ValueError::Foreign("a function, a symbol or a BigInt"))
            };
        };
        if let Some(bytes) = object.as_typed_array::<u8>() {
            // SAFETY: the script does not run until the bytes are copied.
            let bytes = unsafe { bytes.as_bytes() }.map(Bytes::copy_from_slice);
            return bytes.map(Value::Bytes).ok_or(ValueError::Foreign("bytes that are detached"));
        }
        let mut properties = Vec::new();
        let named = Filter::new().string().enum_only();
        for property in object.own_props::<String, rquickjs::Value<'_>>(named) {
            let (name, value) = property?;
            if !value.is_undefined() && !value.is_function() {
                properties.push((name, self.take(&value, depth + 1)?));
            }
        }
        Ok(Value::Map(properties))
    }

    fn count(&mut self, values: usize) -> Result<(), ValueError> {
        self.left = self.left.checked_sub(values).ok_or(ValueError::Foreign("too many values"))?;
        Ok(())
    }
}
