//! Modules made from an object instead of a source text.

#![cfg_attr(
    patched_quickjs,
    expect(
        unsafe_code,
        reason = "JS_OpenModule of the patched QuickJS, which rquickjs does not have"
    )
)]

use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Function, Module, Object};

const DEFAULT: &str = "default";

struct ObjectModule;

impl ModuleDef for ObjectModule {
    fn declare<'js>(declarations: &Declarations<'js>) -> rquickjs::Result<()> {
        declarations.declare(DEFAULT)?;
        for name in open::names() {
            declarations.declare(name)?;
        }
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> rquickjs::Result<()> {
        let value = open::value(ctx, exports)?;
        let default = match value.as_object() {
            Some(object) if object.contains_key(DEFAULT)? => object.get(DEFAULT)?,
            _ => value,
        };
        exports.export(DEFAULT, default).map(drop)
    }
}

/// A module that exports the properties of an object, and its `default` (the object itself if it
/// has none). As in k6, a missing name is `undefined`, or `null` with `lacks_null`; with the
/// published QuickJS its import is a syntax error.
///
/// # Errors
/// When there is no memory.
pub fn object_module<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    exports: &Object<'js>,
    lacks_null: bool,
) -> rquickjs::Result<Module<'js, Declared>> {
    open::module(ctx, name, exports.as_value(), lacks_null)
}

/// As [`object_module`], of what `make` returns when the module's turn to run comes, or before that
/// for a namespace. Anything but an object is only the default. With the published QuickJS, `make`
/// is called at once.
///
/// # Errors
/// When there is no memory, or what `make` throws.
pub fn deferred_module<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    make: &Function<'js>,
) -> rquickjs::Result<Module<'js, Declared>> {
    open::deferred(ctx, name, make)
}

/// The namespace of a module that is loaded under this name, whose code runs unless it has. With
/// the published QuickJS, no module is found.
///
/// # Errors
/// What the module throws.
pub fn loaded_module<'js>(ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Option<Object<'js>>> {
    open::loaded(ctx, name)
}

/// Modules whose exports are found when they are imported.
#[cfg(patched_quickjs)]
mod open {
    use std::ffi::{CString, c_char, c_int};

    use rquickjs::module::{Declared, Exports};
    use rquickjs::{Ctx, Function, Module, Object, Value, qjs};

    use super::ObjectModule;

    unsafe extern "C" {
        fn JS_OpenModule(
            ctx: *mut qjs::JSContext,
            name: *const c_char,
            object: qjs::JSValue,
            lacks_null: bool,
            is_pending: bool,
        ) -> c_int;
        fn JS_OpenedModule(ctx: *mut qjs::JSContext, name: *const c_char) -> qjs::JSValue;
        fn JS_RequireModule(ctx: *mut qjs::JSContext, name: *const c_char) -> qjs::JSValue;
    }

    pub(super) fn loaded<'js>(ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Option<Object<'js>>> {
        let name = CString::new(name)?;
        // SAFETY: the context is alive.
        let found = unsafe { JS_RequireModule(ctx.as_raw().as_ptr(), name.as_ptr()) };
        owned(ctx, found).map(Value::into_object)
    }

    /// A value that QuickJS returned.
    fn owned<'js>(ctx: &Ctx<'js>, raw: qjs::JSValue) -> rquickjs::Result<Value<'js>> {
        // SAFETY: a new reference to a value of this context.
        let value = unsafe { Value::from_raw(ctx.clone(), raw) };
        if value.is_exception() { Err(rquickjs::Error::Exception) } else { Ok(value) }
    }

    /// Names to declare: none.
    pub(super) fn names() -> Vec<String> {
        Vec::new()
    }

    pub(super) fn value<'js>(
        ctx: &Ctx<'js>,
        exports: &Exports<'js>,
    ) -> rquickjs::Result<Value<'js>> {
        let name = CString::new(exports.module().name::<String>()?)?;
        // SAFETY: the context is alive.
        let value = unsafe { JS_OpenedModule(ctx.as_raw().as_ptr(), name.as_ptr()) };
        owned(ctx, value)
    }

    pub(super) fn module<'js>(
        ctx: &Ctx<'js>,
        name: &str,
        exports: &Value<'js>,
        lacks_null: bool,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        declared(ctx, name, exports, lacks_null, false)
    }

    pub(super) fn deferred<'js>(
        ctx: &Ctx<'js>,
        name: &str,
        make: &Function<'js>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        declared(ctx, name, make.as_value(), false, true)
    }

    fn declared<'js>(
        ctx: &Ctx<'js>,
        name: &str,
        value: &Value<'js>,
        lacks_null: bool,
        is_pending: bool,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let module = Module::declare_def::<ObjectModule, _>(ctx.clone(), name)?;
        let (raw, name) = (ctx.as_raw().as_ptr(), CString::new(name)?);
        // SAFETY: the value is one of this context, which is alive.
        let opened =
            unsafe { JS_OpenModule(raw, name.as_ptr(), value.as_raw(), lacks_null, is_pending) };
        if opened == 0 { Ok(module) } else { Err(rquickjs::Error::Unknown) }
    }
}

/// Modules whose exports are declared.
#[cfg(not(patched_quickjs))]
mod open {
    use std::cell::RefCell;

    use rquickjs::module::{Declared, Exports};
    use rquickjs::{Ctx, Function, Module, Object, Value};

    use super::{DEFAULT, ObjectModule};

    /// The property of `import.meta` that holds the object until the module is evaluated.
    const OBJECT: &str = "exports";

    thread_local! {
        /// The names of the module that is being declared: its declaration gets no argument.
        static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn names() -> Vec<String> {
        NAMES.take()
    }

    fn names_of(object: &Object<'_>) -> Vec<String> {
        object.keys::<String>().flatten().filter(|name| name != DEFAULT).collect()
    }

    pub(super) fn value<'js>(_: &Ctx<'js>, exports: &Exports<'js>) -> rquickjs::Result<Value<'js>> {
        let value: Value<'js> = exports.module().meta()?.get(OBJECT)?;
        if let Some(object) = value.as_object() {
            for name in names_of(object) {
                let value: Value<'_> = object.get(&name)?;
                exports.export(name, value)?;
            }
        }
        Ok(value)
    }

    pub(super) fn module<'js>(
        ctx: &Ctx<'js>,
        name: &str,
        exports: &Value<'js>,
        _: bool,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        NAMES.set(exports.as_object().map(names_of).unwrap_or_default());
        let module = Module::declare_def::<ObjectModule, _>(ctx.clone(), name)?;
        module.meta()?.set(OBJECT, exports.clone())?;
        Ok(module)
    }

    pub(super) fn loaded<'js>(_: &Ctx<'js>, _: &str) -> rquickjs::Result<Option<Object<'js>>> {
        Ok(None)
    }

    pub(super) fn deferred<'js>(
        ctx: &Ctx<'js>,
        name: &str,
        make: &Function<'js>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let exports: Value<'js> = make.call(())?;
        module(ctx, name, &exports, false)
    }
}
