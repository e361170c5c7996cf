//! Paths of `Response.json(path)` in the syntax of GJSON: names and indices separated by dots; `*`
//! and `?` in names; `#` for every element of an array, or its length at the end; `#(name=="x")`
//! for the first matching element, with another `#` for all; `|` for a step on the whole result;
//! `{a,b}`, `[a,b]`; modifiers such as `@reverse`.

mod modifier;
mod query;

use rquickjs::{Array, Ctx, IntoJs, Object, Value};

use self::query::ElementQuery;

/// The nesting of paths.
const DEPTH_MAX: usize = 32;

/// The value at a path, or `undefined`.
pub(super) fn select<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    path: &str,
) -> rquickjs::Result<Value<'js>> {
    let found = value_at(ctx, value, path, DEPTH_MAX)?;
    Ok(found.unwrap_or_else(|| Value::new_undefined(ctx.clone())))
}

#[derive(Debug, PartialEq)]
enum PathStep<'a> {
    /// A property, or the index of an element. `pattern` is its source.
    Name { name: String, pattern: &'a str, is_pattern: bool },
    /// Every element.
    Every,
    /// All matching elements, or the first one.
    Matching { query: &'a str, all: bool },
    /// A function of the whole value.
    Modifier { name: &'a str, argument: &'a str },
    /// Several paths, as an object or an array.
    Several { paths: &'a str, is_object: bool },
}

/// The separator after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Nothing,
    /// The rest applies to each result.
    Dot,
    /// The rest applies to the results as a whole.
    Pipe,
}

/// The value at a path.
fn value_at<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    path: &str,
    depth: usize,
) -> rquickjs::Result<Option<Value<'js>>> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
    let Some((step, then, rest)) = step(path) else { return Ok(None) };
    let found = match step {
        PathStep::Name { name, pattern, is_pattern } => named(&value, &name, pattern, is_pattern)?,
        PathStep::Modifier { name, argument } => modifier::apply(ctx, value, name, argument)?,
        PathStep::Several { paths, is_object } => {
            Some(several(ctx, &value, paths, is_object, depth)?)
        }
        PathStep::Matching { query, all: false } => {
            let query = ElementQuery::new(query);
            let mut found = None;
            for element in value.as_array().map(Array::iter::<Value<'js>>).into_iter().flatten() {
                let element = element?;
                if query.matches(ctx, &element, depth)? {
                    found = Some(element);
                    break;
                }
            }
            found
        }
        PathStep::Every | PathStep::Matching { .. } => {
            let Some(array) = value.as_array() else { return Ok(None) };
            let query = match step {
                PathStep::Matching { query, .. } => Some(ElementQuery::new(query)),
                _ => None,
            };
            if then == Separator::Nothing && query.is_none() {
                return array.len().into_js(ctx).map(Some);
            }
            return each(ctx, array, query.as_ref(), (then, rest), depth);
        }
    };
    match (found, then) {
        (Some(found), Separator::Dot | Separator::Pipe) => value_at(ctx, found, rest, depth),
        (found, _) => Ok(found),
    }
}

/// The matching elements, or their values at the path up to the next pipe; the rest of the path.
fn each<'js>(
    ctx: &Ctx<'js>,
    array: &Array<'js>,
    query: Option<&ElementQuery<'_>>,
    (then, rest): (Separator, &str),
    depth: usize,
) -> rquickjs::Result<Option<Value<'js>>> {
    let (of_each, of_all) = match then {
        Separator::Dot => split_at_pipe(rest),
        Separator::Pipe => ("", Some(rest)),
        Separator::Nothing => ("", None),
    };
    let found = Array::new(ctx.clone())?;
    let mut len = 0;
    for element in array.iter::<Value<'js>>() {
        let element = element?;
        if let Some(query) = query
            && !query.matches(ctx, &element, depth)?
        {
            continue;
        }
        let selected = match of_each {
            "" => Some(element),
            path => value_at(ctx, element, path, depth)?,
        };
        if let Some(selected) = selected {
            found.set(len, selected)?;
            len += 1;
        }
    }
    match of_all {
        Some(rest) => value_at(ctx, found.into_value(), rest, depth),
        None => Ok(Some(found.into_value())),
    }
}

/// The property of an object, or the element of an array.
fn named<'js>(
    value: &Value<'js>,
    name: &str,
    pattern: &str,
    is_pattern: bool,
) -> rquickjs::Result<Option<Value<'js>>> {
    if let Some(array) = value.as_array() {
        return match name.parse::<usize>() {
            Ok(index) if index < array.len() => array.get(index).map(Some),
            _ => Ok(None),
        };
    }
    let Some(object) = value.as_object() else { return Ok(None) };
    if is_pattern {
        for property in object.props::<String, Value<'js>>() {
            let (known, value) = property?;
            if query::is_like(&known, pattern) {
                return Ok(Some(value));
            }
        }
        return Ok(None);
    }
    match object.contains_key(name)? {
        true => object.get(name).map(Some),
        false => Ok(None),
    }
}

/// The existing values at several paths.
fn several<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    paths: &str,
    is_object: bool,
    depth: usize,
) -> rquickjs::Result<Value<'js>> {
    let mut found = Vec::new();
    for path in items(paths) {
        let (name, path) = match quoted(path) {
            Some((name, rest)) if rest.trim_start().starts_with(':') => {
                (name, &rest.trim_start()[1..])
            }
            _ => (last_name(path), path),
        };
        if let Some(value) = value_at(ctx, value.clone(), path.trim(), depth)? {
            found.push((name, value));
        }
    }
    if !is_object {
        let values: Vec<Value<'js>> = found.into_iter().map(|(_, value)| value).collect();
        return values.into_js(ctx);
    }
    let object = Object::new(ctx.clone())?;
    for (name, value) in found {
        object.set(name, value)?;
    }
    Ok(object.into_value())
}

/// The first step of a path, its separator, and the rest.
fn step(path: &str) -> Option<(PathStep<'_>, Separator, &str)> {
    let (step, rest) = match path.chars().next()? {
        '#' => match path[1..].strip_prefix('(') {
            Some(inner) => {
                let end = closing(inner, ')')?;
                let rest = &inner[end + 1..];
                let all = rest.starts_with('#');
                (PathStep::Matching { query: &inner[..end], all }, &rest[usize::from(all)..])
            }
            None => (PathStep::Every, &path[1..]),
        },
        open @ ('{' | '[') => {
            let close = if open == '{' { '}' } else { ']' };
            let end = closing(&path[1..], close)? + 1;
            let paths = &path[1..end];
            (PathStep::Several { paths, is_object: open == '{' }, &path[end + 1..])
        }
        '@' if modifier::is_known(&path[1..]) => {
            let end = path.find(['.', '|', ':']).unwrap_or(path.len());
            let (name, rest) = (&path[1..end], &path[end..]);
            match rest.strip_prefix(':') {
                Some(given) => {
                    let (argument, rest) = given.split_at(argument_end(given));
                    (PathStep::Modifier { name, argument }, rest)
                }
                None => (PathStep::Modifier { name, argument: "" }, rest),
            }
        }
        _ => name_step(path),
    };
    let (then, rest) = match rest.chars().next() {
        None => (Separator::Nothing, rest),
        Some('.') => (Separator::Dot, &rest[1..]),
        Some('|') => (Separator::Pipe, &rest[1..]),
        Some(_) => return None,
    };
    Some((step, then, rest))
}

/// A name up to the next dot or pipe; a backslash escapes a character.
fn name_step(path: &str) -> (PathStep<'_>, &str) {
    let (mut name, mut is_pattern) = (String::new(), false);
    let mut characters = path.char_indices();
    let mut end = path.len();
    while let Some((at, c)) = characters.next() {
        match c {
            '.' | '|' => {
                end = at;
                break;
            }
            '\\' => name.extend(characters.next().map(|(_, c)| c)),
            c => {
                is_pattern |= matches!(c, '*' | '?');
                name.push(c);
            }
        }
    }
    (PathStep::Name { name, pattern: &path[..end], is_pattern }, &path[end..])
}

/// The index of the closing bracket, skipping strings and nested brackets.
fn closing(text: &str, close: char) -> Option<usize> {
    let mut open = vec![close];
    let mut is_text = false;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '"' => is_text = !is_text,
            _ if is_text => {}
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.last() == Some(&c) => {
                open.pop();
                if open.is_empty() {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The end of a modifier's argument.
fn argument_end(text: &str) -> usize {
    match text.chars().next() {
        Some(open @ ('{' | '[')) => {
            let close = if open == '{' { '}' } else { ']' };
            closing(&text[1..], close).map_or(text.len(), |end| end + 2)
        }
        Some('"') => quoted(text).map_or(text.len(), |(_, rest)| text.len() - rest.len()),
        _ => text.find(['.', '|']).unwrap_or(text.len()),
    }
}

/// A path up to its next pipe, and the rest.
fn split_at_pipe(path: &str) -> (&str, Option<&str>) {
    let mut rest = path;
    while let Some((_, then, after)) = step(rest) {
        match then {
            Separator::Nothing => return (path, None),
            Separator::Pipe => {
                let end = path.len() - after.len() - 1;
                return (&path[..end], Some(after));
            }
            Separator::Dot => rest = after,
        }
    }
    (path, None)
}

/// The characters outside of strings and brackets, with their indices.
fn outside(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    text.char_indices().filter(move |(_, c)| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match c {
            '\\' => is_escaped = true,
            '"' => is_text = !is_text,
            _ if is_text => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    })
}

/// Comma-separated items; commas in strings and brackets do not count.
fn items(text: &str) -> Vec<&str> {
    let (mut items, mut start) = (Vec::new(), 0);
    for (at, _) in outside(text).filter(|(_, c)| *c == ',') {
        items.push(text[start..at].trim());
        start = at + 1;
    }
    items.push(text[start..].trim());
    items
}

/// The quoted string at the start of a text, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut characters = inner.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '"' => {
                let end = text.len() - inner.len() + at + 1;
                return Some((serde_json::from_str(&text[..end]).ok()?, &text[end..]));
            }
            _ => {}
        }
    }
    None
}

/// The property name of a path's value in an object: its last name.
fn last_name(path: &str) -> String {
    let last = path.rsplit(['.', '|']).next().unwrap_or_default();
    match last.is_empty() || last.contains(['#', '@', '(', '{', '[']) {
        true => "_".to_owned(),
        false => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rquickjs::{Context, Runtime};

    use super::*;

    const JSON: &str = r#"{
        "name": {"first": "Tom", "last": "Anderson"},
        "age": 37,
        "children": ["Sara", "Alex", "Jack"],
        "fav.movie": "Deer Hunter",
        "friends": [
            {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
            {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
            {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
        ],
        "tags": [["a"], ["b", "c"]],
        "on": [true, false, null]
    }"#;

    /// The JSON of the value at a path.
    fn at(path: &str) -> String {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            let value = ctx.json_parse(JSON).unwrap();
            let found = select(&ctx, value, path).unwrap();
            let json = ctx.json_stringify(found).unwrap();
            json.map_or_else(|| "undefined".to_owned(), |json| json.to_string().unwrap())
        })
    }

    /// The examples of GJSON's documentation; the other results are k6's.
    #[test]
    fn paths_select_as_in_gjson() {
        for (path, found) in [
            ("name.last", r#""Anderson""#),
            ("age", "37"),
            ("children", r#"["Sara","Alex","Jack"]"#),
            ("children.#", "3"),
            ("children.1", r#""Alex""#),
            ("child*.2", r#""Jack""#),
            ("c?ildren.0", r#""Sara""#),
            (r"fav\.movie", r#""Deer Hunter""#),
            ("friends.#.first", r#"["Dale","Roger","Jane"]"#),
            ("friends.1.last", r#""Craig""#),
            (r#"friends.#(last=="Murphy").first"#, r#""Dale""#),
            (r#"friends.#(last=="Murphy")#.first"#, r#"["Dale","Jane"]"#),
            ("friends.#(age>45)#.last", r#"["Craig","Murphy"]"#),
            (r#"friends.#(first%"D*").last"#, r#""Murphy""#),
            (r#"friends.#(first!%"D*").last"#, r#""Craig""#),
            (r#"friends.#(nets.#(=="fb"))#.first"#, r#"["Dale","Roger"]"#),
            (r#"children.#(!%"*a*")"#, r#""Alex""#),
            (r#"children.#(%"*a*")#"#, r#"["Sara","Jack"]"#),
            ("friends.#(nope)", "undefined"),
            ("friends.#(nope)#", "[]"),
            ("friends.#.nope", "[]"),
            ("on.#(==true)", "true"),
            ("on.#(!=true)#", "[false]"),
            ("children|@reverse", r#"["Jack","Alex","Sara"]"#),
            ("children.@reverse.0", r#""Jack""#),
            ("@this.age", "37"),
            ("name.@keys", r#"["first","last"]"#),
            ("name|@values|1", r#""Anderson""#),
            ("tags|@flatten", r#"["a","b","c"]"#),
            ("friends.#.nets|@flatten", r#"["ig","fb","tw","fb","tw","ig","tw"]"#),
            ("friends.#.nets.#", "[3,2,2]"),
            ("friends.#.first|#", "3"),
            ("{name.first,age}", r#"{"first":"Tom","age":37}"#),
            (r#"{"who":name.first,nope}"#, r#"{"who":"Tom"}"#),
            ("[name.first,age,nope]", r#"["Tom",37]"#),
            ("friends.0.{first,age}", r#"{"first":"Dale","age":44}"#),
            ("friends.#.{first}", r#"[{"first":"Dale"},{"first":"Roger"},{"first":"Jane"}]"#),
            ("nope.a.b", "undefined"),
            ("name.first.x", "undefined"),
            ("children.9", "undefined"),
            ("", "undefined"),
            ("friends.#(", "undefined"),
            ("{a", "undefined"),
        ] {
            assert_eq!(at(path), found, "{path}");
        }
    }
}
