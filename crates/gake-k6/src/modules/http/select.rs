//! The paths of `Response.json(path)`: names and places, separated by dots; `#` is every element of
//! an array, or its length at the end.

use rquickjs::{Array, Ctx, IntoJs, Value};

/// The part of a value that a path selects; `undefined` when it has none.
pub(super) fn select<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    path: &str,
) -> rquickjs::Result<Value<'js>> {
    steps(ctx, value, &split(path))
}

/// The steps of a path. A backslash takes the meaning from what follows it.
fn split(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut characters = path.chars();
    while let Some(c) = characters.next() {
        let last = steps.len() - 1;
        match c {
            '.' => steps.push(String::new()),
            '\\' => steps[last].extend(characters.next()),
            c => steps[last].push(c),
        }
    }
    steps
}

fn steps<'js>(ctx: &Ctx<'js>, value: Value<'js>, path: &[String]) -> rquickjs::Result<Value<'js>> {
    let Some((step, rest)) = path.split_first() else { return Ok(value) };
    let undefined = || Value::new_undefined(ctx.clone());
    if let Some(array) = value.as_array() {
        if step == "#" {
            return every(ctx, array, rest);
        }
        return match step.parse::<usize>() {
            Ok(place) if place < array.len() => steps(ctx, array.get(place)?, rest),
            _ => Ok(undefined()),
        };
    }
    match value.as_object() {
        Some(object) => {
            let next: Value<'js> = object.get(step.as_str())?;
            if next.is_undefined() { Ok(next) } else { steps(ctx, next, rest) }
        }
        None => Ok(undefined()),
    }
}

fn every<'js>(ctx: &Ctx<'js>, array: &Array<'js>, rest: &[String]) -> rquickjs::Result<Value<'js>> {
    if rest.is_empty() {
        return array.len().into_js(ctx);
    }
    let found = Array::new(ctx.clone())?;
    let mut len = 0;
    for element in array.iter::<Value<'js>>() {
        let selected = steps(ctx, element?, rest)?;
        if !selected.is_undefined() {
            found.set(len, selected)?;
            len += 1;
        }
    }
    found.into_js(ctx)
}
