//! Modules without a text of their own: they export what an object has.

use gake_script::user::open_module;
use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Module, Value};

/// Where a module keeps the object until it is evaluated.
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

/// A module that exports what an object has, and its `default`, which is the object itself where it
/// has none. Anything else is the default alone.
///
/// A name is exported when somebody imports it, and is `undefined` where the object lacks it, as in
/// k6.
pub(super) fn module_of<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    exports: &Value<'js>,
) -> rquickjs::Result<Module<'js, Declared>> {
    let module = Module::declare_def::<ObjectModule, _>(ctx.clone(), name)?;
    module.meta()?.set(OBJECT, exports.clone())?;
    if let Some(object) = exports.as_object() {
        open_module(ctx, name, object)?;
    }
    Ok(module)
}
