//! Modules without a text of their own: they export what an object has.

use std::cell::RefCell;

use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Module, Object, Value};

/// Where a module keeps the object until it is evaluated.
const OBJECT: &str = "exports";

const DEFAULT: &str = "default";

thread_local! {
    /// The names of the module that is being declared.
    static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct OfObject;

impl ModuleDef for OfObject {
    fn declare<'js>(declarations: &Declarations<'js>) -> rquickjs::Result<()> {
        for name in NAMES.take() {
            declarations.declare(name)?;
        }
        declarations.declare(DEFAULT).map(drop)
    }

    fn evaluate<'js>(_: &Ctx<'js>, exports: &Exports<'js>) -> rquickjs::Result<()> {
        let value: Value<'js> = exports.module().meta()?.get(OBJECT)?;
        let mut default = value.clone();
        if let Some(object) = value.as_object() {
            for name in names(object)? {
                let value: Value<'js> = object.get(name.as_str())?;
                match exports.export(name.as_str(), value) {
                    // Another module has added it since this one was declared.
                    Err(rquickjs::Error::InvalidExport) => {}
                    other => drop(other?),
                }
            }
            if object.contains_key(DEFAULT)? {
                default = object.get(DEFAULT)?;
            }
        }
        exports.export(DEFAULT, default).map(drop)
    }
}

/// A module that exports what an object has, and its `default`, which is the object itself where it
/// has none. Anything else is the default alone.
pub(super) fn module_of<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    exports: &Value<'js>,
) -> rquickjs::Result<Module<'js, Declared>> {
    let names = exports.as_object().map_or_else(|| Ok(Vec::new()), names)?;
    NAMES.set(names);
    let module = Module::declare_def::<OfObject, _>(ctx.clone(), name)?;
    module.meta()?.set(OBJECT, exports.clone())?;
    Ok(module)
}

/// The names under which an object's own properties can be imported.
fn names(object: &Object<'_>) -> rquickjs::Result<Vec<String>> {
    let is_named = |name: &String| name != DEFAULT && is_identifier(name);
    let names: Vec<String> = object.keys::<String>().collect::<rquickjs::Result<_>>()?;
    Ok(names.into_iter().filter(is_named).collect())
}

fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_numeric())
}
