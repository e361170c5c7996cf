//! How native functions become functions of scripts: each under the name by which the watchdog
//! reports one that does not return.

use gake_core::activity::{NativeCall, during};
use rquickjs::Value;
use rquickjs::function::{Func, IntoJsFunc, ParamRequirement, Params};

/// A function with its name.
pub struct NamedFunction<F> {
    call: NativeCall,
    function: F,
}

/// `function`, as a property of `owner`, a module or an object: `http`, `get`.
pub fn named<'js, P, F: IntoJsFunc<'js, P>>(
    owner: &'static str,
    name: &'static str,
    function: F,
) -> Func<NamedFunction<F>, P> {
    Func::new(NamedFunction { call: NativeCall::new(owner, name), function })
}

impl<'js, P, F: IntoJsFunc<'js, P>> IntoJsFunc<'js, P> for NamedFunction<F> {
    fn param_requirements() -> ParamRequirement {
        F::param_requirements()
    }

    fn call<'a>(&self, params: Params<'a, 'js>) -> rquickjs::Result<Value<'js>> {
        during(self.call, || self.function.call(params))
    }
}
