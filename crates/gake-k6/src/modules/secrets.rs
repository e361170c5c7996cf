//! The module `k6/secrets`: values that the log redacts.

use gake_js::native::named;
use std::rc::Rc;

use gake_js::value::evaluate;
use rquickjs::{Ctx, Function, Object};

use crate::user::vu::Vu;

/// Creates the module from a function that returns a value or an error.
const SECRETS: &str = "(read) => {
    const get = (source) => async (name) => {
        const [value, error] = read(source, String(name));
        if (error !== undefined && error !== null) throw error;
        return value;
    };
    return {
        get: get(''),
        source: (name) => ({ get: get(String(name)) }),
    };
}";

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let user = Rc::clone(vu);
    let read = move |source: String, name: String| match user.test.secrets().get(&source, &name) {
        Ok(value) => vec![Some(value.to_owned()), None],
        Err(error) => vec![None, Some(error)],
    };
    let make: Function<'js> = evaluate(ctx, SECRETS)?;
    make.call((named("secrets", "get", read),))
}
