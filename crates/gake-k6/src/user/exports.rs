//! Modules made from an object instead of a source text.

use gake_script::user::open_module;
use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Module, Value};

/// The property of `import.meta` that holds the object until the module is evaluated.
const OBJECT: &str = "exports";

const DEFAULT: &str = "default";

struct ObjectModule;

impl ModuleDef for ObjectModule {
    fn declare<'js>(declarations: &Declarations<'js>) -> rquickjs::Result<()> {
        declarations.declare(DEFAULT).map(drop)
    }

    fn evaluate<'js>(_: &Ctx<'js>, exports: &Exports<'js>) -> rquickjs::Result<()> {
        let value: Value<'js> = exports.module().meta()?.get(OBJECT)?;
        let default = match value.as_object() {
            Some(object) if object.contains_key(DEFAULT)? => object.get(DEFAULT)?,
            _ => value,
        };
        exports.export(DEFAULT, default).map(drop)
    }
}

/// A module that exports the properties of an object, and its `default` (the object itself if it
/// has none). Any other value is only the default. As in k6, a missing name is `undefined`, or
/// `null` if the module is a built-in one.
pub(super) fn module_of<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    exports: &Value<'js>,
    is_builtin: bool,
) -> rquickjs::Result<Module<'js, Declared>> {
    let module = Module::declare_def::<ObjectModule, _>(ctx.clone(), name)?;
    module.meta()?.set(OBJECT, exports.clone())?;
    if let Some(object) = exports.as_object() {
        open_module(ctx, name, object, is_builtin)?;
    }
    Ok(module)
}
