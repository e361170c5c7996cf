//! Modifiers of a whole value: `@reverse`, `@keys`, `@flatten:{"deep":true}`.

use gake_js::value;
use rquickjs::{Array, Ctx, IntoJs, Object, Value};

const NAMES: [&str; 12] = [
    "this", "reverse", "keys", "values", "flatten", "join", "group", "valid", "ugly", "pretty",
    "tostr", "fromstr",
];

/// Whether a path begins with the name of a modifier.
pub(super) fn is_known(path: &str) -> bool {
    let end = path.find(['.', '|', ':']).unwrap_or(path.len());
    NAMES.contains(&&path[..end])
}

/// Applies a modifier; unknown ones return the value itself.
pub(super) fn apply<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    name: &str,
    argument: &str,
) -> rquickjs::Result<Option<Value<'js>>> {
    Ok(Some(match name {
        "reverse" => reversed(ctx, value)?,
        "keys" => {
            let Some(object) = plain(&value) else { return empty(ctx).map(Some) };
            object.keys::<String>().collect::<rquickjs::Result<Vec<_>>>()?.into_js(ctx)?
        }
        "values" => match plain(&value) {
            Some(object) => {
                object.values().collect::<rquickjs::Result<Vec<Value<'js>>>>()?.into_js(ctx)?
            }
            None if value.is_array() => value,
            None => return empty(ctx).map(Some),
        },
        "flatten" => {
            let Some(array) = value.as_array() else { return Ok(Some(value)) };
            let is_deep = argument.replace(' ', "").contains(r#""deep":true"#);
            let mut flat = Vec::new();
            flatten(array, is_deep, &mut flat)?;
            flat.into_js(ctx)?
        }
        "join" => joined(ctx, value)?,
        "group" => grouped(ctx, &value)?,
        "tostr" => {
            let json = ctx.json_stringify(value)?;
            json.map_or_else(|| Ok(Value::new_undefined(ctx.clone())), |json| json.into_js(ctx))?
        }
        "fromstr" => match ctx.json_parse(value::text(ctx, &value)?) {
            Ok(parsed) => parsed,
            Err(_) => {
                let _ = ctx.catch();
                return Ok(None);
            }
        },
        _ => value,
    }))
}

/// An object that is not an array.
fn plain<'a, 'js>(value: &'a Value<'js>) -> Option<&'a Object<'js>> {
    value.as_object().filter(|_| !value.is_array())
}

fn empty<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
    Array::new(ctx.clone()).map(Array::into_value)
}

fn reversed<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    if let Some(array) = value.as_array() {
        let mut elements = array.iter().collect::<rquickjs::Result<Vec<Value<'js>>>>()?;
        elements.reverse();
        return elements.into_js(ctx);
    }
    let Some(object) = value.as_object() else { return Ok(value) };
    let mut all = object.props().collect::<rquickjs::Result<Vec<(String, Value<'js>)>>>()?;
    all.reverse();
    let object = Object::new(ctx.clone())?;
    for (name, value) in all {
        object.set(name, value)?;
    }
    Ok(object.into_value())
}

fn flatten<'js>(
    array: &Array<'js>,
    is_deep: bool,
    flat: &mut Vec<Value<'js>>,
) -> rquickjs::Result<()> {
    for element in array.iter::<Value<'js>>() {
        let element = element?;
        match element.as_array() {
            Some(inner) if is_deep => flatten(inner, true, flat)?,
            Some(inner) => {
                for element in inner.iter() {
                    flat.push(element?);
                }
            }
            None => flat.push(element),
        }
    }
    Ok(())
}

/// Merges the objects of an array; later properties win.
fn joined<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    let Some(array) = value.as_array() else { return Ok(value) };
    let all = Object::new(ctx.clone())?;
    for element in array.iter::<Value<'js>>() {
        let element = element?;
        for property in
            plain(&element).map(Object::props::<String, Value<'js>>).into_iter().flatten()
        {
            let (name, value) = property?;
            all.set(name, value)?;
        }
    }
    Ok(all.into_value())
}

/// An object of arrays as an array of objects.
fn grouped<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Value<'js>> {
    let mut all: Vec<Object<'js>> = Vec::new();
    for property in plain(value).map(Object::props::<String, Value<'js>>).into_iter().flatten() {
        let (name, value) = property?;
        for (index, element) in
            value.as_array().map(Array::iter::<Value<'js>>).into_iter().flatten().enumerate()
        {
            if index == all.len() {
                all.push(Object::new(ctx.clone())?);
            }
            all[index].set(name.as_str(), element?)?;
        }
    }
    all.into_js(ctx)
}
