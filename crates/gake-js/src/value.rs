//! Converts JavaScript values as k6 does: arguments of functions, the text of `console.log`.

#![expect(
    unsafe_code,
    reason = "the bytes of a script's buffer are lent by QuickJS, and copied at once"
)]

use std::fmt::Write;

use gake_script::user::{Builtins, HeapCharge, add_builtins, throw_out_of_memory};
use rquickjs::array::ArrayIter;
use rquickjs::{Array, Coerced, Ctx, Exception, FromJs, Object, Value};

use crate::errors::go_error;

/// The nesting of shown values.
const DEPTH_MAX: usize = 16;

/// Bytes of a shown value: a sparse array may have four billion elements.
const SHOWN_MAX: usize = 1 << 20;

/// Elements of an array that is converted as a whole.
const ELEMENTS_MAX: u32 = 1 << 24;

/// `String(value)`.
pub fn text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<String> {
    if let Some(text) = value.as_string() {
        return lossy(ctx, text);
    }
    Coerced::<String>::from_js(ctx, value.clone()).map(|text| text.0)
}

/// Bytes that native functions encode, decrypt or convert at once, in about a millisecond; more of
/// them beside the worker.
pub const AT_ONCE: usize = 1 << 20;

/// Bytes of two strings beside their content.
pub const PAIR: usize = 2 * size_of::<String>();

/// A copy of bytes of a script; a large one only if its heap has room for it.
fn copied(ctx: &Ctx<'_>, bytes: &[u8]) -> rquickjs::Result<Vec<u8>> {
    if bytes.len() > 1 << 20 {
        drop(HeapCharge::new(ctx, bytes.len())?);
    }
    Ok(bytes.to_vec())
}

/// A string with lone surrogates replaced by U+FFFD.
pub fn lossy<'js>(ctx: &Ctx<'js>, text: &rquickjs::String<'js>) -> rquickjs::Result<String> {
    match text.to_string() {
        Ok(text) => Ok(text),
        Err(rquickjs::Error::Utf8(_)) => {
            let whole: rquickjs::Function<'js> = ctx.eval("(s) => s.toWellFormed()")?;
            whole.call::<_, rquickjs::String<'js>>((text.clone(),))?.to_string()
        }
        Err(error) => Err(error),
    }
}

/// A text argument: `String(value)`, or empty if missing or `null`.
pub fn text_argument<'js>(ctx: &Ctx<'js>, value: Option<Value<'js>>) -> rquickjs::Result<String> {
    let value = value.filter(|value| !value.is_null());
    value.map_or_else(|| Ok(String::new()), |value| text(ctx, &value))
}

/// A number argument: `Number(value)`, or 0 if missing.
pub fn number_argument<'js>(ctx: &Ctx<'js>, value: Option<Value<'js>>) -> rquickjs::Result<f64> {
    let number = value.map(|value| Coerced::<f64>::from_js(ctx, value)).transpose()?;
    Ok(number.map_or(0.0, |number| number.0))
}

/// `Boolean(value)`.
pub fn truthy<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<bool> {
    Coerced::<bool>::from_js(ctx, value).map(|truth| truth.0)
}

/// A value that is neither `undefined` nor `null`.
pub fn given<'js>(value: Option<Value<'js>>) -> Option<Value<'js>> {
    value.filter(|value| !value.is_undefined() && !value.is_null())
}

/// The tags of an object in its order, or k6's error.
pub fn tags<'js>(
    ctx: &Ctx<'js>,
    value: Option<Value<'js>>,
) -> rquickjs::Result<Result<Vec<(String, String)>, String>> {
    let Some(value) = given(value) else { return Ok(Ok(Vec::new())) };
    if value.is_string() {
        // The properties of a string are its characters.
        let text = text(ctx, &value)?;
        let named = text.chars().enumerate();
        return Ok(Ok(named.map(|(index, c)| (index.to_string(), c.to_string())).collect()));
    }
    // Other primitives have none.
    let Some(object) = value.as_object() else { return Ok(Ok(Vec::new())) };
    let mut tags = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        let (name, value) = property?;
        if !(value.is_string() || value.is_number() || value.is_bool()) {
            return Ok(Err(format!(
                "invalid value for metric tag '{name}': only String, Boolean and Number types are \
                 accepted as a metric tag values"
            )));
        }
        tags.push((name, text(ctx, &value)?));
    }
    Ok(Ok(tags))
}

/// The length of an array, which may exceed an `i32`.
pub fn length(array: &Object<'_>) -> rquickjs::Result<u32> {
    array.get::<_, f64>("length").map(|length| length as u32)
}

/// The elements of an array; throws if there are too many.
pub fn elements<'js>(
    ctx: &Ctx<'js>,
    array: &Array<'js>,
) -> rquickjs::Result<ArrayIter<'js, Value<'js>>> {
    if length(array.as_object())? > ELEMENTS_MAX {
        return Err(Exception::throw_range(ctx, "the array has too many elements"));
    }
    Ok(array.iter())
}

/// The bytes of a string, an `ArrayBuffer` or a view of one.
pub fn bytes<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Option<Vec<u8>>> {
    if let Some(text) = value.as_string() {
        return lossy(ctx, text).map(|text| Some(text.into_bytes()));
    }
    let Some(object) = value.as_object() else { return Ok(None) };
    if let Some(buffer) = object.as_array_buffer() {
        // SAFETY: no script runs until the bytes are copied.
        return unsafe { buffer.as_bytes() }.map(|bytes| copied(ctx, bytes)).transpose();
    }
    // Without the constructor there are no views.
    let buffers: Option<Object<'js>> = ctx.globals().get("ArrayBuffer")?;
    let Some(buffers) = buffers else { return Ok(None) };
    let is_view: rquickjs::Function<'js> = buffers.get("isView")?;
    if !is_view.call::<_, bool>((object.clone(),))? {
        return Ok(None);
    }
    let buffer: rquickjs::ArrayBuffer<'js> = object.get("buffer")?;
    let (offset, len): (usize, usize) = (object.get("byteOffset")?, object.get("byteLength")?);
    // SAFETY: no script runs until the bytes are copied.
    let all = unsafe { buffer.as_bytes() };
    let bytes = all.and_then(|all| all.get(offset..offset.checked_add(len)?));
    bytes.map(|bytes| copied(ctx, bytes)).transpose()
}

/// Why a value has no bytes.
#[derive(Debug)]
pub enum BytesError {
    /// Its type, in k6's words, has none.
    Type(&'static str),
    /// Reading them threw.
    Thrown(rquickjs::Error),
}

impl BytesError {
    /// k6's error, with a prefix.
    pub fn into_js(self, ctx: &Ctx<'_>, before: &str) -> rquickjs::Error {
        match self {
            Self::Thrown(error) => error,
            Self::Type(name) => go_error(
                ctx,
                &format!("{before}invalid type {name}, expected string, []byte or ArrayBuffer"),
            ),
        }
    }
}

/// A bytes argument: a string, an `ArrayBuffer` or a view.
pub fn bytes_argument<'js>(
    ctx: &Ctx<'js>,
    value: Option<Value<'js>>,
) -> Result<Vec<u8>, BytesError> {
    let Some(value) = given(value) else { return Err(BytesError::Type("<nil>")) };
    bytes(ctx, &value).map_err(BytesError::Thrown)?.ok_or_else(|| {
        BytesError::Type(match () {
            () if value.is_bool() => "bool",
            () if value.is_int() => "int64",
            () if value.is_number() => "float64",
            () if value.is_array() => "[]interface {}",
            () => "map[string]interface {}",
        })
    })
}

/// An `ArrayBuffer` with a copy of these bytes.
pub fn buffer<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> rquickjs::Result<rquickjs::ArrayBuffer<'js>> {
    add_builtins(ctx, Builtins::BUFFERS)?;
    // A copy, for the script's heap has a bound.
    rquickjs::ArrayBuffer::new_copy(ctx.clone(), bytes)
}

/// As many zeroes as a script asks for, if its heap has room for them.
pub fn zeroes(ctx: &Ctx<'_>, count: usize) -> rquickjs::Result<Vec<u8>> {
    drop(HeapCharge::new(ctx, count)?);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count).map_err(|_| throw_out_of_memory(ctx))?;
    bytes.resize(count, 0);
    Ok(bytes)
}

/// Evaluates the JavaScript of a module.
pub fn evaluate<'js, T: FromJs<'js>>(ctx: &Ctx<'js>, text: &str) -> rquickjs::Result<T> {
    add_builtins(ctx, Builtins::named_in(text))?;
    ctx.eval(text)
}

/// Like [`evaluate`], with a name of the text for stacks.
pub fn evaluate_as<'js, T: FromJs<'js>>(
    ctx: &Ctx<'js>,
    text: &str,
    name: &str,
) -> rquickjs::Result<T> {
    add_builtins(ctx, Builtins::named_in(text))?;
    let mut options = rquickjs::context::EvalOptions::default();
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(text, options)
}

/// A value as `console.log` shows it.
pub fn shown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(string) = value.as_string() {
        return lossy(ctx, string).unwrap_or_default();
    }
    let mut shown = String::new();
    show(ctx, value, &mut Vec::new(), &mut shown);
    shown
}

/// Appends a value. `parents` are the enclosing objects, the outermost first.
fn show<'js>(ctx: &Ctx<'js>, value: &Value<'js>, parents: &mut Vec<Value<'js>>, out: &mut String) {
    if value.is_null() || (value.is_undefined() && !parents.is_empty()) {
        out.push_str("null");
    } else if let Some(string) = value.as_string() {
        // As in k6, quotes are not escaped.
        let _ = write!(out, "\"{}\"", lossy(ctx, string).unwrap_or_default());
    } else if value.is_function() {
        out.push_str("[object Function]");
    } else if let Some(symbol) = value.as_symbol() {
        let description = symbol.description().ok();
        let description = description.and_then(|text_| text(ctx, &text_).ok());
        let description = description.unwrap_or_default();
        match parents.is_empty() {
            true => out.push_str(&description),
            false => drop(write!(out, "\"{description}\"")),
        }
    } else if let (Some(object), false) = (value.as_object(), value.is_error()) {
        if parents.contains(value) {
            out.push_str("[Circular]");
            return;
        }
        parents.push(value.clone());
        show_object(ctx, object, parents, out);
        parents.pop();
    } else {
        out.push_str(&text(ctx, value).unwrap_or_else(|_| {
            // Logging must not throw.
            let _ = ctx.catch();
            value.type_name().to_owned()
        }));
    }
}

fn show_object<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    parents: &mut Vec<Value<'js>>,
    out: &mut String,
) {
    if parents.len() > DEPTH_MAX {
        out.push_str("...");
        return;
    }
    if rquickjs::ArrayBuffer::from_object(object.clone()).is_some() {
        let content = bytes(ctx, object.as_value()).inspect_err(|_| drop(ctx.catch()));
        show_buffer(&content.ok().flatten().unwrap_or_default(), out);
        return;
    }
    let view = view_name(ctx, object);
    if view.is_some() || is_array(ctx, object) {
        if let Some(name) = view {
            let _ = write!(out, "{name}({}) ", length(object).unwrap_or(0));
        }
        out.push('[');
        let length = length(object).unwrap_or(0);
        for index in 0..length {
            if out.len() > SHOWN_MAX {
                break;
            }
            out.push_str(if index == 0 { " " } else { ", " });
            match object.get::<_, Value<'js>>(index) {
                Ok(element) => show(ctx, &element, parents, out),
                Err(_) => drop(ctx.catch()),
            }
        }
        out.push_str(if length == 0 { "]" } else { " ]" });
        return;
    }
    let mut separator = "{ ";
    for property in object.props::<String, Value<'js>>() {
        let Ok((name, value)) = property else {
            let _ = ctx.catch();
            break;
        };
        if out.len() > SHOWN_MAX {
            break;
        }
        let _ = write!(out, "{separator}{name}: ");
        show(ctx, &value, parents, out);
        separator = ", ";
    }
    if separator != "{ " {
        out.push_str(" }");
        return;
    }
    match date(ctx, object) {
        Some(date) => drop(write!(out, "\"{date}\"")),
        None => out.push_str("{}"),
    }
}

/// A `Date` by ISO 8601; `None` for other objects and invalid dates.
pub fn date<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Option<String> {
    let text = || {
        add_builtins(ctx, Builtins::named_in("Date"))?;
        let dates: Value<'js> = ctx.globals().get("Date")?;
        if !dates.is_function() || !object.is_instance_of(&dates) {
            return Ok(None);
        }
        let to_text: rquickjs::Function<'js> = object.get("toISOString")?;
        to_text.call::<_, String>((rquickjs::function::This(object.clone()),)).map(Some)
    };
    text().inspect_err(|_: &rquickjs::Error| drop(ctx.catch())).ok().flatten()
}

/// `Array.isArray(object)`: shared arrays are proxies.
fn is_array<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> bool {
    let is_array = || {
        let arrays: Object<'js> = ctx.globals().get("Array")?;
        let is_array: rquickjs::Function<'js> = arrays.get("isArray")?;
        is_array.call::<_, bool>((object.clone(),))
    };
    object.is_array()
        || (object.is_proxy() && is_array().inspect_err(|_| drop(ctx.catch())).unwrap_or(false))
}

/// The class of a typed array, as `Uint8Array`.
fn view_name<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Option<String> {
    let name = || {
        let buffers: Option<Object<'js>> = ctx.globals().get("ArrayBuffer")?;
        let Some(buffers) = buffers else { return Ok(None) };
        let is_view: rquickjs::Function<'js> = buffers.get("isView")?;
        if !is_view.call::<_, bool>((object.clone(),))? {
            return Ok(None);
        }
        object.get::<_, Object<'js>>("constructor")?.get::<_, Option<String>>("name")
    };
    let name = name().inspect_err(|_: &rquickjs::Error| drop(ctx.catch())).ok().flatten();
    name.filter(|name| name.ends_with("Array"))
}

fn show_buffer(bytes: &[u8], out: &mut String) {
    out.push_str("ArrayBuffer { [Uint8Contents]: <");
    for (index, byte) in bytes.iter().enumerate() {
        if out.len() > SHOWN_MAX {
            break;
        }
        let _ = write!(out, "{}{byte:02x}", if index == 0 { "" } else { " " });
    }
    let _ = write!(out, ">, byteLength: {} }}", bytes.len());
}
