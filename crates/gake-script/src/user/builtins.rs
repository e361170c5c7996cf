//! Parts of the language that many scripts never use: a user gets them when a text names them.
//!
//! They are a third of what an empty user takes. Whoever evaluates a text adds what it names first.

#![expect(
    unsafe_code,
    reason = "QuickJS adds parts of the language to a context that exists; rquickjs only to a new one"
)]

use std::cell::Cell;

use rquickjs::context::intrinsic::{Eval, Json, Promise, Proxy, RegExp, RegExpCompiler};
use rquickjs::{Ctx, JsLifetime, qjs};

/// What every user has from the start.
pub(super) type Always = (Eval, RegExpCompiler, RegExp, Json, Proxy, Promise);

/// A set of parts of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Builtins(u8);

/// A part, and what a text has that may use it.
struct Part {
    names: &'static [&'static str],
    add: unsafe extern "C" fn(*mut qjs::JSContext) -> std::ffi::c_int,
}

const PARTS: [Part; 6] = [
    Part {
        names: &[
            "Buffer", "Int8", "Uint", "Int16", "Int32", "Float", "BigInt64", "DataView", "Atomics",
        ],
        add: qjs::JS_AddIntrinsicTypedArrays,
    },
    Part { names: &["Date"], add: qjs::JS_AddIntrinsicDate },
    Part { names: &["Map", "Set"], add: qjs::JS_AddIntrinsicMapSet },
    Part { names: &["WeakRef", "Finalization"], add: qjs::JS_AddIntrinsicWeakRef },
    Part { names: &["DOMException", "atob", "btoa"], add: qjs::JS_AddIntrinsicAToB },
    Part { names: &["performance"], add: qjs::JS_AddPerformance },
];

/// What a text has that may reach any part without its name.
const ANY: &[&str] = &["eval", "Function", ".constructor(", "global", "self", "window"];

impl Builtins {
    /// Every part.
    pub const ALL: Self = Self((1 << PARTS.len()) - 1);

    /// `ArrayBuffer`, its views, `Atomics`.
    pub const BUFFERS: Self = Self(1);

    /// The parts that a text may use.
    #[must_use]
    pub fn named_in(text: &str) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
        if has(ANY) {
            return Self::ALL;
        }
        let named = PARTS.iter().enumerate().filter(|(_, part)| has(part.names));
        Self(named.fold(0, |set, (number, _)| set | 1 << number))
    }
}

/// What a context has besides [`Always`].
#[derive(Default)]
struct Added(Cell<u8>);

// SAFETY: it holds nothing of a context.
unsafe impl<'js> JsLifetime<'js> for Added {
    type Changed<'to> = Self;
}

/// Adds the parts of the language in `wanted` to a user that lacks them.
///
/// # Errors
/// When the user's memory is full.
pub fn add_builtins(ctx: &Ctx<'_>, wanted: Builtins) -> rquickjs::Result<()> {
    if ctx.userdata::<Added>().is_none() {
        let _ = ctx.store_userdata(Added::default());
    }
    let Some(added) = ctx.userdata::<Added>() else { return Ok(()) };
    let missing = wanted.0 & !added.0.get();
    for (number, part) in PARTS.iter().enumerate().filter(|(number, _)| missing >> number & 1 == 1)
    {
        added.0.set(added.0.get() | 1 << number);
        // SAFETY: the context is alive, and lacks the part.
        if unsafe { (part.add)(ctx.as_raw().as_ptr()) } < 0 {
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
