//! The module `k6/secrets`: values that the log never shows.

use std::rc::Rc;

use rquickjs::function::Func;
use rquickjs::{Ctx, Function, Object};

use super::value::evaluate;
use crate::user::vu::Vu;

/// Makes the module of a function that gives a value or says why there is none.
const SECRETS: &str = "(read) => {
    const get = (source) => async (name) => {
        const [value, wrong] = read(source, String(name));
        if (wrong !== undefined && wrong !== null) throw wrong;
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
        Err(wrong) => vec![None, Some(wrong)],
    };
    let make: Function<'js> = evaluate(ctx, SECRETS)?;
    make.call((Func::from(read),))
}
