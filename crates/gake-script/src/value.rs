//! Values that go into a script and come out of it.

#![expect(
    unsafe_code,
    reason = "the bytes of a script's typed array are lent by QuickJS, and copied at once"
)]

use bytes::Bytes;
use rquickjs::function::IntoArgs;
use rquickjs::object::{Filter, Property};
use rquickjs::{Array, Ctx, IntoJs, Object, TypedArray};

/// How deep values may be nested.
const DEPTH_MAX: usize = 32;
/// How many values one may hold in all.
const VALUES_MAX: usize = 65_536;

/// What JSON has, and bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `undefined` or `null`; `null` on the way in.
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
    /// An object: its own enumerable properties, in its order. Functions and what is `undefined`
    /// are left out.
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

    /// The property of an object, if there is one.
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
                for (place, value) in values.into_iter().enumerate() {
                    array.set(place, value)?;
                }
                array.into_js(ctx)
            }
            Self::Map(properties) => {
                let object = Object::new(ctx.clone())?;
                for (name, value) in properties {
                    // Defined, not set: a header may be called `__proto__`.
                    let value = Property::from(value).writable().enumerable().configurable();
                    object.prop(name, value)?;
                }
                object.into_js(ctx)
            }
        }
    }
}

/// Arguments of a call.
pub(crate) struct Arguments(pub(crate) Vec<Value>);

impl<'js> IntoArgs<'js> for Arguments {
    fn num_args(&self) -> usize {
        self.0.len()
    }

    fn into_args(self, args: &mut rquickjs::function::Args<'js>) -> rquickjs::Result<()> {
        args.push_args(self.0)
    }
}

/// Why a value stays where it is.
#[derive(Debug)]
pub(crate) enum TakeError {
    /// The script threw while it was read.
    Thrown(rquickjs::Error),
    /// It has no counterpart here.
    Foreign(&'static str),
}

impl From<rquickjs::Error> for TakeError {
    fn from(error: rquickjs::Error) -> Self {
        match error {
            rquickjs::Error::Utf8(_) => {
                Self::Foreign("a string that is not Unicode (half of a surrogate pair)")
            }
            error => Self::Thrown(error),
        }
    }
}

/// Takes a value out of a script. Runs the script's code if it has getters.
pub(crate) fn take(value: &rquickjs::Value<'_>) -> Result<Value, TakeError> {
    Taker { left: VALUES_MAX }.take(value, 0)
}

struct Taker {
    left: usize,
}

impl Taker {
    fn take(&mut self, value: &rquickjs::Value<'_>, depth: usize) -> Result<Value, TakeError> {
        if depth > DEPTH_MAX {
            return Err(TakeError::Foreign("a value that is nested too deep"));
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
            // Checked before the walk: an empty array may be four billion long.
            let len = array.as_object().get::<_, f64>("length")? as usize;
            self.count(len)?;
            return (0..len)
                .map(|place| self.take(&array.get(place)?, depth + 1))
                .collect::<Result<_, _>>()
                .map(Value::List);
        }
        let Some(object) = value.as_object().filter(|_| !value.is_function()) else {
            return if value.is_null() || value.is_undefined() {
                Ok(Value::Null)
            } else {
                Err(TakeError::Foreign("a function, a symbol or a BigInt"))
            };
        };
        if let Some(bytes) = object.as_typed_array::<u8>() {
            // SAFETY: no code of the script runs until they are copied.
            let bytes = unsafe { bytes.as_bytes() }.map(Bytes::copy_from_slice);
            return bytes.map(Value::Bytes).ok_or(TakeError::Foreign("bytes that are detached"));
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

    fn count(&mut self, values: usize) -> Result<(), TakeError> {
        self.left = self
            .left
            .checked_sub(values)
            .ok_or(TakeError::Foreign("more values than can be taken"))?;
        Ok(())
    }
}
