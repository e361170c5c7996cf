//! The paths of `Response.json(path)`, as k6 has them (the syntax of GJSON): names and places,
//! separated by dots; `*` and `?` in names; `#` for every element of an array, or its length at the
//! end; `#(name=="x")` for the first element that fits, with another `#` for all; `|` for what
//! applies to a result as a whole; `{a,b}`, `[a,b]`; modifiers such as `@reverse`.

mod modifier;
mod query;

use rquickjs::{Array, Ctx, IntoJs, Object, Value};

use self::query::ElementQuery;

/// How deep paths within paths are followed.
const DEPTH_MAX: usize = 32;

/// The part of a value that a path selects; `undefined` when it has none.
pub(super) fn select<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    path: &str,
) -> rquickjs::Result<Value<'js>> {
    let found = part(ctx, value, path, DEPTH_MAX)?;
    Ok(found.unwrap_or_else(|| Value::new_undefined(ctx.clone())))
}

/// What a step of a path selects.
#[derive(Debug, PartialEq)]
enum PathStep<'a> {
    /// A property, or an element by its place. `pattern` is it as written.
    Name { name: String, pattern: &'a str, is_pattern: bool },
    /// Every element.
    Every,
    /// The elements that fit, or the first of them.
    Fitting { query: &'a str, all: bool },
    /// A function of the whole value, and what it is given.
    Modifier { name: &'a str, argument: &'a str },
    /// Several paths, as an object or an array.
    Several { paths: &'a str, is_object: bool },
}

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Nothing,
    /// The rest applies to each result.
    Dot,
    /// The rest applies to the results as a whole.
    Pipe,
}

/// The part of a value that a path selects.
fn part<'js>(
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
        PathStep::Fitting { query, all: false } => {
            let query = ElementQuery::new(query);
            let mut found = None;
            for element in value.as_array().map(Array::iter::<Value<'js>>).into_iter().flatten() {
                let element = element?;
                if query.fits(ctx, &element, depth)? {
                    found = Some(element);
                    break;
                }
            }
            found
        }
        PathStep::Every | PathStep::Fitting { .. } => {
            let Some(array) = value.as_array() else { return Ok(None) };
            let query = match step {
                PathStep::Fitting { query, .. } => Some(ElementQuery::new(query)),
                _ => None,
            };
            if then == Separator::Nothing && query.is_none() {
                return array.len().into_js(ctx).map(Some);
            }
            return each(ctx, array, query.as_ref(), (then, rest), depth);
        }
    };
    match (found, then) {
        (Some(found), Separator::Dot | Separator::Pipe) => part(ctx, found, rest, depth),
        (found, _) => Ok(found),
    }
}

/// The elements that fit, or what the path to the next pipe selects of each; then the rest.
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
            && !query.fits(ctx, &element, depth)?
        {
            continue;
        }
        let selected = match of_each {
            "" => Some(element),
            path => part(ctx, element, path, depth)?,
        };
        if let Some(selected) = selected {
            found.set(len, selected)?;
            len += 1;
        }
    }
    match of_all {
        Some(rest) => part(ctx, found.into_value(), rest, depth),
        None => Ok(Some(found.into_value())),
    }
}

/// The property of an object, or the element of an array, of this name.
fn named<'js>(
    value: &Value<'js>,
    name: &str,
    pattern: &str,
    is_pattern: bool,
) -> rquickjs::Result<Option<Value<'js>>> {
    if let Some(array) = value.as_array() {
        return match name.parse::<usize>() {
            Ok(place) if place < array.len() => array.get(place).map(Some),
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

/// What several paths select, where they select anything.
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
        if let Some(part) = part(ctx, value.clone(), path.trim(), depth)? {
            found.push((name, part));
        }
    }
    if !is_object {
        let parts: Vec<Value<'js>> = found.into_iter().map(|(_, part)| part).collect();
        return parts.into_js(ctx);
    }
    let object = Object::new(ctx.clone())?;
    for (name, part) in found {
        object.set(name, part)?;
    }
    Ok(object.into_value())
}

/// The first step of a path, what follows it, and the rest.
fn step(path: &str) -> Option<(PathStep<'_>, Separator, &str)> {
    let (step, rest) = match path.chars().next()? {
        '#' => match path[1..].strip_prefix('(') {
            Some(inner) => {
                let end = closing(inner, ')')?;
                let rest = &inner[end + 1..];
                let all = rest.starts_with('#');
                (PathStep::Fitting { query: &inner[..end], all }, &rest[usize::from(all)..])
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
        _ => {
            let (step, rest) = name_step(path);
            (step, rest)
        }
    };
    let (then, rest) = match rest.chars().next() {
        None => (Separator::Nothing, rest),
        Some('.') => (Separator::Dot, &rest[1..]),
        Some('|') => (Separator::Pipe, &rest[1..]),
        Some(_) => return None,
    };
    Some((step, then, rest))
}

/// A name up to the next dot or pipe. A backslash takes the meaning from what follows it.
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

/// Where what an opening bracket began is closed, outside of texts and of brackets within it.
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

/// Where what a modifier is given ends.
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

/// A path up to its next pipe, and what follows that.
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

/// The characters outside of texts and brackets, and where they are.
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

/// What commas separate, outside of texts and brackets.
fn items(text: &str) -> Vec<&str> {
    let (mut items, mut start) = (Vec::new(), 0);
    for (at, _) in outside(text).filter(|(_, c)| *c == ',') {
        items.push(text[start..at].trim());
        start = at + 1;
    }
    items.push(text[start..].trim());
    items
}

/// A text in quotes that begins here, and what follows it.
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

/// The name under which a path's result is kept: its last one.
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

    /// What a path selects, as JSON.
    fn at(path: &str) -> String {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            let value = ctx.json_parse(JSON).unwrap();
            let found = select(&ctx, value, path).unwrap();
            let json = ctx.json_stringify(found).unwrap();
            json.map_or_else(|| "undefined".to_owned(), |json| json.to_string().unwrap())
        })
    }

    /// The examples of GJSON's own description of its syntax, and k6's results for the others.
    #[test]
    fn paths_are_those_of_gjson() {
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
