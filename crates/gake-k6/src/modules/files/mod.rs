//! The modules `k6/experimental/fs` and `csv`. All users of a process share files and rows.

use gake_js::native::named;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use gake_js::errors::{fail, go_error};
use gake_js::value;
use rquickjs::object::Property;
use rquickjs::{Ctx, Function, Object, Value};

use super::data::proxied;
use crate::paths::{folder, normal};
use crate::user::loader::check_local;
use crate::user::vu::{Vu, VuStage};

/// Creates both modules from native functions.
const FILES: &str = include_str!("files.js");

/// The hidden global that caches both modules, which share their class of files.
const CACHE: &str = "__files";

/// The module `fs` or `csv`.
pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>, name: &str) -> rquickjs::Result<Object<'js>> {
    if let Some(kit) = ctx.globals().get::<_, Option<Object<'js>>>(CACHE)? {
        return kit.get(name);
    }
    let make: Function<'js> = value::evaluate(ctx, FILES)?;
    let kit: Object<'js> = make.call((native(ctx, vu)?,))?;
    ctx.globals().prop(CACHE, Property::from(kit.clone()))?;
    kit.get(name)
}

fn native<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let user = Rc::clone(vu);
    native.set("isInit", named("fs", "isInit", move || user.stage.get() == VuStage::Init))?;
    native.set("fail", named("fs", "fail", fail))?;
    let user = Rc::clone(vu);
    let path = move |ctx: Ctx<'js>, name: String| {
        check_local(&ctx, &name)?;
        let name = name.strip_prefix("file://").unwrap_or(&name);
        Ok::<_, rquickjs::Error>(normal(&folder(&user.test.main).join(name)).display().to_string())
    };
    native.set("path", named("fs", "path", path))?;
    let user = Rc::clone(vu);
    let size = move |path: String| user.test.file(Path::new(&path)).ok().map(|bytes| bytes.len());
    native.set("size", named("fs", "size", size))?;
    let user = Rc::clone(vu);
    let slice = move |ctx: Ctx<'js>, path: String, from: usize, to: usize| {
        let bytes = file(&ctx, &user, &path)?;
        let slice = bytes.get(from..to.min(bytes.len())).unwrap_or_default();
        value::buffer(&ctx, slice.to_vec())
    };
    native.set("slice", named("fs", "slice", slice))?;
    let user = Rc::clone(vu);
    let rows = move |ctx: Ctx<'js>, path: String, at: usize, options: Object<'js>| {
        let options = RowOptions {
            delimiter: options.get("delimiter")?,
            from: options.get("from")?,
            to: options.get("to")?,
            as_objects: options.get("asObjects")?,
        };
        rows(&ctx, &user, &path, at, &options)
    };
    native.set("rows", named("fs", "rows", rows))?;
    Ok(native)
}

fn file(ctx: &Ctx<'_>, vu: &Vu, path: &str) -> rquickjs::Result<Arc<[u8]>> {
    let file = vu.test.file(&PathBuf::from(path));
    file.map_err(|error| go_error(ctx, &format!("{path} cannot be read: {error}")))
}

#[derive(Debug)]
struct RowOptions {
    delimiter: String,
    /// The first line, from 0.
    from: usize,
    /// The last line.
    to: Option<usize>,
    /// Whether the first line has the names of the fields.
    as_objects: bool,
}

/// The rows of a file from byte `at` on, as a shared array.
fn rows<'js>(
    ctx: &Ctx<'js>,
    vu: &Vu,
    path: &str,
    at: usize,
    options: &RowOptions,
) -> rquickjs::Result<Value<'js>> {
    let name = format!("\0csv {path} {at} {options:?}");
    let shared = match vu.test.arrays.get(&name) {
        Some(known) => known,
        None => {
            let bytes = file(ctx, vu, path)?;
            let rows = read(bytes.get(at..).unwrap_or_default(), options);
            let rows = rows.map_err(|error| {
                go_error(ctx, &format!("failed to read the rows of {path}; reason: {error}"))
            })?;
            let bound = vu.test.settings().bodies;
            vu.test.arrays.keep(&name, rows, bound).map_err(|why| go_error(ctx, &why))?
        }
    };
    proxied(ctx, &shared)
}

/// Parses rows, each into JSON.
fn read(bytes: &[u8], options: &RowOptions) -> Result<Vec<String>, csv::Error> {
    let delimiter = options.delimiter.bytes().next().unwrap_or(b',');
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).delimiter(delimiter).from_reader(bytes);
    let mut records = reader.records();
    let names = match options.as_objects {
        true => records.next().transpose()?,
        false => None,
    };
    let first = options.from.saturating_sub(usize::from(options.as_objects));
    let most = options.to.map_or(usize::MAX, |to| (to + 1).saturating_sub(options.from));
    let mut rows = Vec::new();
    for record in records.skip(first).take(most) {
        let record = record?;
        let row = match &names {
            Some(names) => names
                .iter()
                .zip(&record)
                .map(|(name, field)| (name.to_owned(), field.into()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            None => serde_json::Value::from(record.iter().collect::<Vec<_>>()),
        };
        rows.push(row.to_string());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(from: usize, to: Option<usize>, as_objects: bool) -> Vec<String> {
        let options = RowOptions { delimiter: ";".to_owned(), from, to, as_objects };
        read(b"a;b\n1;\"x; y\"\n2;z\n", &options).unwrap()
    }

    #[test]
    fn rows_are_lists_or_objects() {
        assert_eq!(rows(0, None, false), [r#"["a","b"]"#, r#"["1","x; y"]"#, r#"["2","z"]"#]);
        assert_eq!(rows(1, Some(1), false), [r#"["1","x; y"]"#]);
        assert_eq!(rows(0, None, true), [r#"{"a":"1","b":"x; y"}"#, r#"{"a":"2","b":"z"}"#]);
        assert_eq!(rows(2, None, false), [r#"["2","z"]"#]);
    }

    #[test]
    fn rows_of_another_length_are_refused() {
        let options =
            RowOptions { delimiter: ",".to_owned(), from: 0, to: None, as_objects: false };
        assert!(read(b"a,b\n1\n", &options).is_err());
    }
}
