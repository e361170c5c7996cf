//! Resolves and loads modules: k6's own, ES modules, CommonJS, JSON; `open` and `require`.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of what a context keeps: unsafe to implement"
)]

mod common_js;
pub(super) mod open;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use gake_js::errors::{go_error, go_error_of, through_native};
use gake_js::native::named;
use gake_script::Exception as Caught;
use gake_script::is_es_module;
use gake_script::typescript::is_typescript;
use gake_script::user::{add_builtins, loaded_module, object_module};
use rquickjs::function::Opt;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::object::Accessor;
use rquickjs::{Coerced, Ctx, JsLifetime, Module, Object, Persistent, Value};
use url::Url;

use super::import_errors::{NO_SPECIAL, init_only, not_local, not_on_disk, not_retrieved};
use super::vu::{Vu, VuStage};
use crate::modules;
use crate::paths::{FILE, file_path, folder, imported, resolved};
use crate::source_maps::{names_map, typescript_column};
use crate::test::LogLevel;

/// Modules whose text contains this get `import.meta.resolve`.
const META: &str = "import.meta";

const HTTPS: &str = "https://";

/// k6's function behind `require`, which is in stacks.
const REQUIRE: &str = "go.k6.io/k6/v2/internal/js.(*requireImpl).require-fm";

/// Calls in which the module that runs is looked for.
const STACK_MAX: isize = 128;

/// The modules of one user.
#[derive(Clone)]
pub(crate) struct Modules {
    vu: Rc<Vu>,
    /// Loaded modules by name; dropped before the user's runtime.
    made: Rc<RefCell<HashMap<String, Persistent<Object<'static>>>>>,
    /// Why the last import could not be resolved.
    unresolved: Rc<RefCell<Option<String>>>,
    /// Required modules whose code runs, the innermost last.
    running: Rc<RefCell<Vec<String>>>,
    /// While the imports of the main module are resolved, those that k6 does not know: it names all
    /// of them, if no other import fails.
    unknown: Rc<RefCell<Option<BTreeSet<String>>>>,
}

impl Modules {
    pub(crate) fn new(vu: &Rc<Vu>) -> Self {
        let (made, unresolved, running, unknown) = Default::default();
        Self { vu: Rc::clone(vu), made, unresolved, running, unknown }
    }

    /// Why an import could not be resolved, if `thrown` is that error.
    pub(crate) fn unresolved(&self, thrown: &Caught) -> Option<String> {
        let why = self.unresolved.borrow().clone()?;
        (thrown.message.strip_prefix("GoError: ")? == why).then_some(why)
    }

    /// Drops everything that belongs to the user's runtime.
    pub(crate) fn forget(&self) {
        self.made.borrow_mut().clear();
    }

    pub(super) fn of(ctx: &Ctx<'_>) -> rquickjs::Result<Self> {
        let known = ctx.userdata::<ModulesUserData>().map(|kept| kept.0.clone());
        known.ok_or(rquickjs::Error::Unknown)
    }

    pub(crate) fn store_in(&self, ctx: &Ctx<'_>) {
        // Fails only if the data is borrowed; it does not exist yet.
        let _ = ctx.store_userdata(ModulesUserData(self.clone()));
    }

    pub(crate) fn main<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let text = self.text(ctx, name)?;
        self.unknown.replace(Some(BTreeSet::new()));
        let declared = self.declare(ctx, name, text);
        let unknown = self.unknown.take().unwrap_or_default();
        if declared.is_err() || unknown.is_empty() {
            return declared;
        }
        let names: Vec<&str> = unknown.iter().map(String::as_str).collect();
        let why = modules::unknown(&self.vu.test, &names);
        self.unresolved.replace(Some(why.clone()));
        Err(go_error(ctx, &why))
    }

    fn find(&self, base: &str, name: &str) -> Result<String, String> {
        if modules::is_builtin(name) {
            return match modules::is_known(&self.vu.test, name) || self.postpones(name) {
                true => Ok(name.to_owned()),
                false => Err(modules::unknown(&self.vu.test, &[name])),
            };
        }
        if name.starts_with("http://") {
            return Err(format!(
                "only supported schemes for imports are file and https, {name} has `http`"
            ));
        }
        let is_path = ["./", "../", "/"].iter().any(|start| name.starts_with(start));
        if let Some(url) = remote(base, name, is_path) {
            self.vu.test.remote(&url).map_err(|error| not_retrieved(name, &url, &error))?;
            return Ok(url);
        }
        if is_remote(base) && name.starts_with(FILE) {
            return Err(not_local(base, name));
        }
        let path = match name.strip_prefix(FILE) {
            Some(_) => file_path(name),
            None if is_path => imported(&folder(base), name),
            None if name.starts_with("github.com/") => {
                return Err(format!(
                    "github.com {NO_SPECIAL} going to github and copy-pasting the full url to the \
                     actual raw JavaScript file"
                ));
            }
            None if name.starts_with("cdnjs.com/libraries/") => {
                return Err(format!(
                    "cdnjs.com {NO_SPECIAL} going to cdnjs and copy-pasting the full url to the \
                     actual JavaScript file"
                ));
            }
            None => {
                return Err(format!(
                    "The moduleSpecifier {name:?} couldn't be recognised as something k6 supports."
                ));
            }
        };
        self.vu.test.file(&path).map_err(|_| not_on_disk(name))?;
        Ok(format!("{FILE}{}", path.display()))
    }

    /// Notes an unknown module, if its error can wait.
    fn postpones(&self, name: &str) -> bool {
        let mut unknown = self.unknown.borrow_mut();
        // Code of required modules runs already.
        let unknown = unknown.as_mut().filter(|_| self.running.borrow().is_empty());
        unknown.map(|names| names.insert(name.to_owned())).is_some()
    }

    fn require<'js>(&self, ctx: &Ctx<'js>, base: &str, name: &str) -> rquickjs::Result<Value<'js>> {
        if self.vu.stage.get() != VuStage::Init {
            return Err(go_error(ctx, &init_only("require")));
        }
        let name = self.find(base, name).map_err(|why| go_error_of(ctx, REQUIRE, &why))?;
        if modules::is_builtin(&name) {
            return self.builtin(ctx, &name).map(Object::into_value);
        }
        let text = self.text(ctx, &name)?;
        if name.ends_with(".json") {
            return ctx.json_parse(text);
        }
        through_native(ctx, REQUIRE, self.required(ctx, &name, text))
    }

    /// The exports of a required module.
    fn required<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        text: String,
    ) -> rquickjs::Result<Value<'js>> {
        if !is_es_module(&text) {
            return self.common_js(ctx, name, &text)?.get("exports");
        }
        // One that another module imports, too, runs once.
        if let Some(namespace) = self.running(name, || loaded_module(ctx, name))? {
            return Ok(namespace.into_value());
        }
        let module = self.declare(ctx, name, text)?;
        let (module, promise) = self.running(name, || module.eval())?;
        promise.finish::<()>()?;
        module.namespace().map(Object::into_value)
    }

    fn builtin<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Object<'js>> {
        if let Some(made) = self.made.borrow().get(name) {
            return made.clone().restore(ctx);
        }
        let exports = modules::make(ctx, &self.vu, name)?;
        let kept = Persistent::save(ctx, exports.clone());
        self.made.borrow_mut().insert(name.to_owned(), kept);
        Ok(exports)
    }

    /// Runs the code of a required module.
    fn running<T>(&self, name: &str, run: impl FnOnce() -> T) -> T {
        self.running.borrow_mut().push(name.to_owned());
        let result = run();
        self.running.borrow_mut().pop();
        result
    }

    /// The source of a loaded module.
    fn source(&self, name: &str) -> Option<String> {
        let bytes = match is_remote(name) {
            true => self.vu.test.remote(name).ok()?,
            false => self.vu.test.file(&file_path(name)).ok()?,
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn text<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<String> {
        let bytes = match is_remote(name) {
            true => self.vu.test.remote(name),
            false => {
                let path = PathBuf::from(name.strip_prefix(FILE).unwrap_or(name));
                self.vu.test.file(&path).map_err(|error| error.to_string())
            }
        };
        let bytes =
            bytes.map_err(|error| go_error(ctx, &format!("{name} cannot be read: {error}")))?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_typescript(name) {
            let javascript = self.vu.test.stripped.javascript(name, &text);
            let javascript = javascript.map_err(|why| {
                let why = format!("{name}{why}");
                self.unresolved.replace(Some(why.clone()));
                go_error(ctx, &why)
            })?;
            text = javascript.as_ref().to_owned();
        } else if names_map(&text) {
            self.learn_map(name, &text);
        }
        add_builtins(ctx, self.vu.test.builtins(name, &text))?;
        Ok(text)
    }

    /// Takes the source map that a module names. One that cannot be used is a warning, two for a
    /// module that k6 parses twice.
    fn learn_map(&self, name: &str, text: &str) {
        let test = &self.vu.test;
        let load = |url: &str| {
            if is_remote(url) {
                return test.remote(url).map_err(|error| not_retrieved(url, url, &error));
            }
            let is_local = url.starts_with(FILE) && !is_remote(name);
            let read = is_local.then(|| test.file(&file_path(url)).ok()).flatten();
            read.ok_or_else(|| not_on_disk(url))
        };
        if let Err(why) = test.source_maps.learn(name, text, load) {
            let warning = format!("Couldn't load source map for {name}");
            for _ in 0..if is_es_module(text) { 1 } else { 2 } {
                test.log(LogLevel::Warning, &warning, &[("error", &why)]);
            }
        }
    }

    fn declare<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        text: String,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        if name.ends_with(".json") {
            // JSON is a subset of JavaScript, line separators included (ES2019).
            return Module::declare(ctx.clone(), name, format!("export default {text}"));
        }
        if !is_es_module(&text) {
            return self.deferred_common_js(ctx, name, &text);
        }
        let has_meta = text.contains(META);
        let module = Module::declare(ctx.clone(), name, text)?;
        if has_meta {
            let base = name.to_owned();
            let resolve = move |ctx: Ctx<'js>, name: Opt<Coerced<String>>| {
                let name = name.0.map(|name| name.0).unwrap_or_default();
                resolved(&base, &name).map_err(|why| go_error(&ctx, &why))
            };
            module.meta()?.set("resolve", named("", "resolve", resolve))?;
        }
        Ok(module)
    }

    /// The module that asks for the local file `name`, by default the main one.
    ///
    /// # Errors
    /// When it came from the network, or may have: files of this machine are not its business.
    pub(crate) fn local_caller(&self, ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<String> {
        let refused = |module: &str| Err(go_error(ctx, &not_local(module, name)));
        match caller(ctx) {
            Some(module) if is_remote(&module) => refused(&module),
            Some(module) => Ok(module),
            // Called by the engine, for example as the handler of a promise.
            None if self.vu.test.files.has_remote() => refused("unknown"),
            None => Ok(self.vu.test.main.clone()),
        }
    }

    /// The place in the source of a bundled module.
    pub(super) fn origin(&self, module: &str, row: u32, column: u32) -> Option<(String, u32, u32)> {
        if is_typescript(module) {
            let text = self.source(module)?;
            let stripped = self.vu.test.stripped.javascript(module, &text).ok()?;
            let line =
                |text: &str| Some(text.lines().nth(row.checked_sub(1)? as usize)?.to_owned());
            let column = typescript_column(&line(&text)?, &line(&stripped)?, column);
            return Some((module.to_owned(), row, column));
        }
        // The map does not know the line before the code of a required module.
        let wrapped = u32::from(self.made.borrow().contains_key(module));
        self.vu.test.source_maps.origin(module, row.checked_sub(wrapped)?, column)
    }
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        // Thrown, so that it reads as k6's error and not as one of QuickJS's resolver.
        let found = self.find(base, name).map_err(|why| {
            self.unresolved.replace(Some(why.clone()));
            go_error(ctx, &why)
        })?;
        self.vu.test.note_import(&found);
        Ok(found)
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        if modules::is_builtin(name) {
            let exports = match modules::why_removed(&self.vu.test, name) {
                // Not before the modules ahead of it have run.
                Some(why) => throwing(ctx, why)?,
                None if !modules::is_known(&self.vu.test, name) => Object::new(ctx.clone())?,
                None => self.builtin(ctx, name)?,
            };
            return object_module(ctx, name, &exports, modules::has_names(name));
        }
        let text = self.text(ctx, name)?;
        self.declare(ctx, name, text)
    }
}

/// Exports whose evaluation throws.
fn throwing<'js>(ctx: &Ctx<'js>, why: &'static str) -> rquickjs::Result<Object<'js>> {
    let exports = Object::new(ctx.clone())?;
    let throws = move |ctx: Ctx<'js>| -> rquickjs::Result<()> { Err(go_error(&ctx, why)) };
    exports.prop("default", Accessor::from(throws))?;
    Ok(exports)
}

/// Checks that the calling module may read the local file `name`.
///
/// # Errors
/// When it came from the network.
pub fn check_local(ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<()> {
    Modules::of(ctx)?.local_caller(ctx, name).map(drop)
}

/// The global `require`.
pub(super) fn require<'js>(ctx: Ctx<'js>, name: String) -> rquickjs::Result<Value<'js>> {
    let modules = Modules::of(&ctx)?;
    let base = match caller(&ctx) {
        Some(base) => base,
        None => modules.local_caller(&ctx, &name)?,
    };
    modules.require(&ctx, &base, &name)
}

/// The user data of a context: its user's modules.
struct ModulesUserData(Modules);

// SAFETY: its values of the script are persistent, and dropped before the runtime.
unsafe impl<'js> JsLifetime<'js> for ModulesUserData {
    type Changed<'to> = Self;
}

fn is_remote(module: &str) -> bool {
    module.starts_with(HTTPS)
}

/// The URL of a remote module that `base` imports by this name.
fn remote(base: &str, name: &str, is_path: bool) -> Option<String> {
    if is_remote(name) {
        return Some(name.to_owned());
    }
    let base = Url::parse(base).ok().filter(|_| is_path && is_remote(base))?;
    base.join(name).ok().map(String::from)
}

/// The module that calls a host function, maybe through functions of the engine.
fn caller(ctx: &Ctx<'_>) -> Option<String> {
    modules_on_stack(ctx).next()
}

/// The modules of the calls on the stack, innermost first.
fn modules_on_stack(ctx: &Ctx<'_>) -> impl Iterator<Item = String> {
    let names =
        (0..STACK_MAX).filter_map(|level| ctx.script_or_module_name(level)?.to_string().ok());
    names.filter(|name| name.starts_with(FILE) || is_remote(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_modules_resolve_imports_against_their_url() {
        let base = "https://a.test/lib/1.0/index.js#sha256=00";
        let found = |name, is_path| remote(base, name, is_path);
        assert_eq!(found("./b.js", true).as_deref(), Some("https://a.test/lib/1.0/b.js"));
        assert_eq!(found("/c.js", true).as_deref(), Some("https://a.test/c.js"));
        assert_eq!(found("https://b.test/d.js", false).as_deref(), Some("https://b.test/d.js"));
        assert_eq!(found("file:///e.js", false), None);
        assert_eq!(remote("file:///a.js", "./b.js", true), None);
    }
}
