//! `open`: the files of scripts.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use gake_js::errors::{go_error, go_error_of};
use rquickjs::function::Opt;
use rquickjs::{Ctx, Value};

use super::super::import_errors::init_only;
use super::super::vu::VuStage;
use super::{Modules, caller, modules_on_stack};
use crate::modules::OpenedBinaries;
use crate::paths::{FILE, file_path, file_url, folder, normal};
use crate::test::LogLevel;

/// The global `open`.
pub(in crate::user) fn open<'js>(
    ctx: Ctx<'js>,
    name: String,
    mode: Opt<String>,
) -> rquickjs::Result<Value<'js>> {
    Modules::of(&ctx)?.open(&ctx, &name, mode.0.as_deref())
}

impl Modules {
    fn open<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        mode: Option<&str>,
    ) -> rquickjs::Result<Value<'js>> {
        use rquickjs::IntoJs;
        if self.vu.stage.get() != VuStage::Init {
            return Err(go_error(ctx, &init_only("open")));
        }
        const NATIVE: &str = "go.k6.io/k6/v2/internal/js.(*Bundle).setInitGlobals.func3";
        self.local_caller(ctx, name)?;
        if name.is_empty() {
            return Err(go_error_of(ctx, NATIVE, "open() can't be used with an empty filename"));
        }
        let path = match name.starts_with(FILE) {
            true => file_path(name),
            false if name.starts_with('/') => normal(name.as_ref()),
            false => normal(&self.open_folder(ctx).join(name)),
        };
        let bytes = self.vu.test.file(&path).map_err(|error| {
            let path = path.display();
            let message = match error.kind() {
                ErrorKind::NotFound => format!("stat {path}: no such file or directory"),
                ErrorKind::PermissionDenied => format!("open {path}: permission denied"),
                ErrorKind::IsADirectory => {
                    format!("open() can't be used with directories, path: \"{path}\"")
                }
                _ => format!("open {path}: {error}"),
            };
            go_error_of(ctx, NATIVE, &message)
        })?;
        match mode {
            Some("b") => gake_js::value::buffer(ctx, bytes.to_vec())?.into_js(ctx),
            _ => {
                let text = String::from_utf8_lossy(&bytes);
                if matches!(text, Cow::Owned(_)) {
                    OpenedBinaries::of(&self.vu).push(Arc::clone(&bytes));
                }
                text.into_owned().into_js(ctx)
            }
        }
    }

    /// The folder to which paths of `open` are relative: as in k6, that of the module whose own code
    /// runs, and not that of a function which this code calls. The first load warns of such calls.
    fn open_folder(&self, ctx: &Ctx<'_>) -> PathBuf {
        let main = &self.vu.test.main;
        let own = caller(ctx).unwrap_or_else(|| main.clone());
        let running = self.running.borrow().last().cloned();
        let running = running.or_else(|| modules_on_stack(ctx).last());
        let base = folder(running.as_ref().unwrap_or(main));
        if base != folder(&own) && self.vu.test.settings.get().is_none() {
            let own =
                own.strip_prefix(FILE).map_or_else(|| own.clone(), |path| file_url(path.as_ref()));
            let warning = format!(
                "open() was used and is currently relative to '{}/', but in the future it will be \
                 aligned with how `require` and imports work and will be relative to '{own}'. This \
                 means that in the future open will open relative path relative to the module/file it \
                 is written in. You can future proof this by using `import.meta.resolve()` to get \
                 relative paths to the file it is written in the current k6 version.",
                file_url(&base).trim_end_matches('/')
            );
            self.vu.test.log(LogLevel::Warning, &warning, &[]);
        }
        base
    }
}
