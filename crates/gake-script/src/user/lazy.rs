//! Lazy properties of host objects, created on first lookup.
//!
//! A script uses few of them, and a function takes some 250 bytes for each user. The patched
//! QuickJS does the same for its built-in objects; with the published one, objects have all
//! properties from the start.

use std::ffi::{CStr, CString};

use rquickjs::Object;

#[cfg(patched_quickjs)]
mod host;
#[cfg(not(patched_quickjs))]
#[path = "lazy/eager.rs"]
mod host;

use host::HostList;

/// Names of lazy properties, and the function that creates one.
#[derive(Debug)]
pub struct LazyList {
    names: &'static [&'static CStr],
    make: fn(&Object<'_>, &'static CStr) -> rquickjs::Result<()>,
    #[cfg_attr(not(patched_quickjs), expect(dead_code, reason = "it has no content"))]
    host: HostList,
}

impl LazyList {
    /// A list. `make` defines the property with a name on an object.
    #[must_use]
    pub const fn new(
        names: &'static [&'static CStr],
        make: fn(&Object<'_>, &'static CStr) -> rquickjs::Result<()>,
    ) -> Self {
        Self { names, make, host: HostList::new() }
    }

    /// A list of names known only at run time. Leaked.
    #[must_use]
    pub fn leaked(
        names: Vec<CString>,
        make: fn(&Object<'_>, &'static CStr) -> rquickjs::Result<()>,
    ) -> &'static Self {
        let names: Vec<&'static CStr> =
            names.into_iter().map(|name| &*Box::leak(name.into_boxed_c_str())).collect();
        Box::leak(Box::new(Self::new(names.leak(), make)))
    }

    /// The names of the properties.
    #[must_use]
    pub fn names(&self) -> &'static [&'static CStr] {
        self.names
    }
}

/// Registers lists, once for the process and before its first user. Objects with unregistered lists
/// have all properties from the start.
pub fn share_lists<L>(lists: impl FnOnce() -> L)
where
    L: IntoIterator<Item = &'static LazyList>,
{
    static SHARED: std::sync::Once = std::sync::Once::new();
    SHARED.call_once(|| host::register(lists()));
}

/// Defines the properties of a list on an object that has none of them.
///
/// # Errors
/// When a property that is created immediately throws.
pub fn lazily(object: &Object<'_>, list: &'static LazyList) -> rquickjs::Result<()> {
    host::define(object, list)
}

#[cfg(test)]
#[cfg(patched_quickjs)]
mod tests {
    use std::cell::Cell;

    use rquickjs::{Context, Runtime};

    use super::*;

    thread_local! {
        static MADE: Cell<usize> = const { Cell::new(0) };
    }

    static LIST: LazyList = LazyList::new(&[c"one", c"two", c"three"], |object, name| {
        MADE.set(MADE.get() + 1);
        let name = name.to_string_lossy();
        object.set(&*name, name.len())
    });

    static OTHER: LazyList = LazyList::new(&[c"five", c"six"], |object, name| {
        MADE.set(MADE.get() + 1);
        object.set(&*name.to_string_lossy(), 0)
    });

    /// The result of a script with such an object, and the number of properties created.
    fn of(script: &str) -> (String, usize) {
        share_lists(|| [&LIST, &OTHER]);
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        MADE.set(0);
        let text = context.with(|ctx| {
            let object = Object::new(ctx.clone()).unwrap();
            lazily(&object, &LIST).unwrap();
            ctx.globals().set("it", object).unwrap();
            ctx.eval::<String, _>(format!("String({script})")).unwrap()
        });
        (text, MADE.get())
    }

    #[test]
    fn a_property_is_created_on_lookup() {
        assert_eq!(of("1"), ("1".to_owned(), 0));
        assert_eq!(of("it.two + it.two"), ("6".to_owned(), 1));
        assert_eq!(of("it.four"), ("undefined".to_owned(), 0));
        assert_eq!(of("(it.one = 9, it.one)"), ("9".to_owned(), 1));
    }

    #[test]
    fn an_object_can_have_two_lists() {
        share_lists(|| [&LIST, &OTHER]);
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            let object = Object::new(ctx.clone()).unwrap();
            lazily(&object, &LIST).unwrap();
            lazily(&object, &OTHER).unwrap();
            ctx.globals().set("it", object).unwrap();
            MADE.set(0);
            assert_eq!(ctx.eval::<i32, _>("it.six + it.three + it.six").unwrap(), 5);
            assert_eq!(MADE.get(), 2);
            let all = "six,three,one,two,five";
            assert_eq!(ctx.eval::<String, _>("Object.keys(it).join()").unwrap(), all);
            assert_eq!(MADE.get(), 5);
        });
    }

    #[test]
    fn enumeration_includes_lazy_properties() {
        let all = r#"{"one":3,"two":3,"three":5}"#.to_owned();
        assert_eq!(of("JSON.stringify(it)"), (all.clone(), 3));
        assert_eq!(of("JSON.stringify({ ...it })"), (all.clone(), 3));
        assert_eq!(of("JSON.stringify(Object.freeze(it))"), (all, 3));
        assert_eq!(of("(delete it.two, Object.keys(it))"), ("one,three".to_owned(), 3));
        assert_eq!(of("(() => { let s = ''; for (const n in it) s += n; return s })()").1, 3);
    }
}
