//! CommonJS modules: required ones run at once, imported ones in their turn.

use gake_js::native::named;
use gake_script::user::deferred_module;
use rquickjs::context::EvalOptions;
use rquickjs::function::This;
use rquickjs::module::Declared;
use rquickjs::{Ctx, Function, Module, Object, Persistent, Value};

use super::Modules;
use crate::source_maps::names_map;

impl Modules {
    /// The `module` of a CommonJS file, which runs on first use.
    pub(super) fn common_js<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        text: &str,
    ) -> rquickjs::Result<Object<'js>> {
        self.run_common_js(ctx, name, || Self::common_js_code(ctx, name, text))
    }

    /// The module of a CommonJS file that an ES module imports: it runs in its turn.
    pub(super) fn deferred_common_js<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        text: &str,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        // A syntax error is one of the whole script.
        let code = Self::common_js_code(ctx, name, text)?;
        let (modules, owned) = (self.clone(), name.to_owned());
        let run = move |ctx: Ctx<'js>, code: Function<'js>| -> rquickjs::Result<Value<'js>> {
            modules.run_common_js(&ctx, &owned, || Ok(code))?.get("exports")
        };
        let bind: Function<'js> = ctx.eval("(run, code) => () => run(code)")?;
        let make: Function<'js> = bind.call((named("", "run", run), code))?;
        deferred_module(ctx, name, &make)
    }

    /// The code of a CommonJS file as a function.
    fn common_js_code<'js>(
        ctx: &Ctx<'js>,
        name: &str,
        text: &str,
    ) -> rquickjs::Result<Function<'js>> {
        let mut options = EvalOptions::default();
        options.filename = Some(name.to_owned());
        // As in k6, whose lines of such modules are off by one without the map.
        let start = if names_map(text) { "\n" } else { "" };
        // `require` is the global one. The length of the first line is k6's, as places show it.
        let whole = format!("(function(module, exports){{{start}{text}\n}})");
        ctx.eval_with_options(whole, options)
    }

    fn run_common_js<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        code: impl FnOnce() -> rquickjs::Result<Function<'js>>,
    ) -> rquickjs::Result<Object<'js>> {
        if let Some(made) = self.made.borrow().get(name) {
            return made.clone().restore(ctx);
        }
        let code = code()?;
        let module = Object::new(ctx.clone())?;
        let exports = Object::new(ctx.clone())?;
        module.set("exports", exports.clone())?;
        // Before it runs: modules may be circular.
        let kept = Persistent::save(ctx, module.clone());
        self.made.borrow_mut().insert(name.to_owned(), kept);
        let arguments = (This(exports.clone()), module.clone(), exports);
        if let Err(error) = self.running(name, || code.call::<_, Value<'js>>(arguments)) {
            self.made.borrow_mut().remove(name);
            return Err(error);
        }
        Ok(module)
    }
}
