//! Lazily installed built-ins, a third of the memory of an empty user: before evaluating a text,
//! install what it names.

#![expect(
    unsafe_code,
    reason = "QuickJS adds parts of the language to a context that exists; rquickjs only to a new one"
)]

use std::cell::Cell;

use rquickjs::context::intrinsic::{Eval, Json, Promise, Proxy, RegExp, RegExpCompiler};
use rquickjs::{Ctx, JsLifetime, qjs};

/// Built-ins that every user has.
pub(super) type Always = (Eval, RegExpCompiler, RegExp, Json, Proxy, Promise);

/// A set of built-ins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Builtins(u8);

/// Built-ins that are installed together, and substrings of texts that may use them.
struct BuiltinGroup {
    names: &'static [&'static str],
    add: unsafe extern "C" fn(*mut qjs::JSContext) -> std::ffi::c_int,
}

const GROUPS: [BuiltinGroup; 6] = [
    BuiltinGroup {
        names: &[
            "Buffer", "Int8", "Uint", "Int16", "Int32", "Float", "BigInt64", "DataView", "Atomics",
        ],
        add: qjs::JS_AddIntrinsicTypedArrays,
    },
    BuiltinGroup { names: &["Date"], add: qjs::JS_AddIntrinsicDate },
    BuiltinGroup { names: &["Map", "Set"], add: qjs::JS_AddIntrinsicMapSet },
    BuiltinGroup { names: &["WeakRef", "Finalization"], add: qjs::JS_AddIntrinsicWeakRef },
    BuiltinGroup { names: &["DOMException", "atob", "btoa"], add: qjs::JS_AddIntrinsicAToB },
    BuiltinGroup { names: &["performance"], add: qjs::JS_AddPerformance },
];

/// Substrings of texts that may access any built-in without its name.
const ANY: &[&str] = &["eval", "Function", ".constructor(", "global", "self", "window"];

impl Builtins {
    /// All built-ins.
    pub const ALL: Self = Self((1 << GROUPS.len()) - 1);

    /// `ArrayBuffer`, its views, `Atomics`.
    pub const BUFFERS: Self = Self(1);

    /// The built-ins that a text may use.
    #[must_use]
    pub fn named_in(text: &str) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
        if has(ANY) {
            return Self::ALL;
        }
        let named = GROUPS.iter().enumerate().filter(|(_, group)| has(group.names));
        Self(named.fold(0, |set, (number, _)| set | 1 << number))
    }
}

/// The built-ins of a context besides [`Always`].
#[derive(Default)]
struct InstalledBuiltins(Cell<u8>);

// SAFETY: it holds no references to a context.
unsafe impl<'js> JsLifetime<'js> for InstalledBuiltins {
    type Changed<'to> = Self;
}

/// Installs missing built-ins.
///
/// # Errors
/// When the user's memory is full.
pub fn add_builtins(ctx: &Ctx<'_>, wanted: Builtins) -> rquickjs::Result<()> {
    if ctx.userdata::<InstalledBuiltins>().is_none() {
        let _ = ctx.store_userdata(InstalledBuiltins::default());
    }
    let Some(added) = ctx.userdata::<InstalledBuiltins>() else { return Ok(()) };
    let missing = wanted.0 & !added.0.get();
    for (number, group) in
        GROUPS.iter().enumerate().filter(|(number, _)| missing >> number & 1 == 1)
    {
        added.0.set(added.0.get() | 1 << number);
        // SAFETY: the context is alive, and lacks these built-ins.
        if unsafe { (group.add)(ctx.as_raw().as_ptr()) } < 0 {
            return Err(rquickjs::Error::Exception);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_what_it_may_use() {
        assert_eq!(Builtins::named_in("let a = [1].map((x) => /a/.test(x)); sleep(1)").0, 0);
        assert_eq!(Builtins::named_in("open('a', 'b'); new Uint8Array(3)"), Builtins::BUFFERS);
        assert_eq!(Builtins::named_in("Date.now()").0, 2);
        assert_eq!(Builtins::named_in("new Set(x); btoa(y)").0, 4 | 16);
        for text in ["globalThis['D' + 'ate']", "(0, eval)(x)", "new Function(x)"] {
            assert_eq!(Builtins::named_in(text), Builtins::ALL, "{text}");
        }
    }
}
