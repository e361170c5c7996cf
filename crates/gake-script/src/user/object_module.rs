//! Modules made from an object instead of a source text.

#![cfg_attr(
    patched_quickjs,
    expect(
        unsafe_code,
        reason = "JS_OpenModule of the patched QuickJS, which rquickjs does not have"
    )
)]

use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Module, Object, Value};

/// The property of `import.meta` that holds the object until the module is evaluated.
const OBJECT: &str = "exports";

const DEFAULT: &str = "default";

struct ObjectModule;

impl ModuleDef for ObjectModule {
    fn declare<'js>(declarations: &Declarations<'js>) -> rquickjs::Result<()> {
        declarations.declare(DEFAULT)?;
        #[cfg(not(patched_quickjs))]
        for name in names::take() {
            declarations.declare(name)?;
        }
        Ok(())
    }

    fn evaluate<'js>(_: &Ctx<'js>, exports: &Exports<'js>) -> rquickjs::Result<()> {
        let value: Value<'js> = exports.module().meta()?.get(OBJECT)?;
        let default = match value.as_object() {
            Some(object) if object.contains_key(DEFAULT)? => object.get(DEFAULT)?,
            _ => value.clone(),
        };
        #[cfg(not(patched_quickjs))]
        if let Some(object) = value.as_object() {
            for name in names::of(object) {
                let value: Value<'_> = object.get(&name)?;
                exports.export(name, value)?;
            }
        }
        exports.export(DEFAULT, default).map(drop)
    }
}

/// A module that exports the properties of an object, and its `default` (the object itself if it
/// has none). Any other value is only the default. As in k6, a missing name is `undefined`, or
/// `null` if the module is a built-in one; with the published QuickJS its import is a syntax error.
///
/// # Errors
/// When there is no memory.
pub fn object_module<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    exports: &Value<'js>,
    is_builtin: bool,
) -> rquickjs::Result<Module<'js, Declared>> {
    #[cfg(not(patched_quickjs))]
    names::give(exports.as_object().map(names::of).unwrap_or_default());
    let module = Module::declare_def::<ObjectModule, _>(ctx.clone(), name)?;
    module.meta()?.set(OBJECT, exports.clone())?;
    if let Some(object) = exports.as_object() {
        open(ctx, name, object, is_builtin)?;
    }
    Ok(module)
}

/// Lets the declared module `name` also export the properties of an object.
#[cfg(patched_quickjs)]
fn open(ctx: &Ctx<'_>, name: &str, object: &Object<'_>, lacks_null: bool) -> rquickjs::Result<()> {
    use std::ffi::{CString, c_char, c_int};

    use rquickjs::qjs;

    unsafe extern "C" {
        fn JS_OpenModule(
            ctx: *mut qjs::JSContext,
            name: *const c_char,
            object: qjs::JSValue,
            lacks_null: bool,
        ) -> c_int;
    }
    let name = CString::new(name)?;
    let context = ctx.as_raw().as_ptr();
    // SAFETY: the object is one of this context, which is alive.
    match unsafe { JS_OpenModule(context, name.as_ptr(), object.as_raw(), lacks_null) } {
        0 => Ok(()),
        _ => Err(rquickjs::Error::Unknown),
    }
}

#[cfg(not(patched_quickjs))]
fn open(_: &Ctx<'_>, _: &str, _: &Object<'_>, _: bool) -> rquickjs::Result<()> {
    Ok(())
}

/// The names of the module that is being declared: its declaration gets no argument.
#[cfg(not(patched_quickjs))]
mod names {
    use std::cell::RefCell;

    use rquickjs::Object;

    thread_local! {
        static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn give(names: Vec<String>) {
        NAMES.set(names);
    }

    pub(super) fn take() -> Vec<String> {
        NAMES.take()
    }

    pub(super) fn of(object: &Object<'_>) -> Vec<String> {
        object.keys::<String>().flatten().filter(|name| name != super::DEFAULT).collect()
    }
}
