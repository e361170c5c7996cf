//! Imports of scripts: files below the script's folder, by relative paths.

use std::path::{Path, PathBuf};

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Result};

use crate::source;

/// Maximum modules of a script.
const MODULES_MAX: usize = 256;

/// Resolves and loads modules, which are named by their path from the folder: `lib/users.js`.
#[derive(Debug, Clone)]
pub(crate) struct Imports {
    folder: Option<PathBuf>,
    loaded: usize,
}

impl Imports {
    /// Allows imports from a folder, a path without links, and those below; without one, no
    /// imports.
    pub(crate) fn below(folder: Option<PathBuf>) -> Self {
        Self { folder, loaded: 0 }
    }

    fn find(&self, base: &str, name: &str) -> std::result::Result<String, String> {
        let Some(folder) = &self.folder else {
            return Err("this script cannot import modules".to_owned());
        };
        if !(name.starts_with("./") || name.starts_with("../")) {
            return Err(
                "only files can be imported, by a path that starts with ./ or ../".to_owned()
            );
        }
        let parent = Path::new(base).parent().unwrap_or(Path::new(""));
        let path = folder.join(parent).join(name);
        // Resolve links before the check.
        let path = path.canonicalize().map_err(|error| error.to_string())?;
        let inside = path
            .strip_prefix(folder)
            .map_err(|_| "it is outside the script's folder".to_owned())?;
        inside.to_str().map(str::to_owned).ok_or_else(|| "its name is not UTF-8".to_owned())
    }
}

impl Resolver for Imports {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        self.find(base, name).map_err(|why| Error::new_resolving_message(base, name, why))
    }
}

impl Loader for Imports {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        self.loaded += 1;
        if self.loaded > MODULES_MAX {
            return Err(Error::new_loading_message(name, "too many modules"));
        }
        let path = self.folder.as_deref().unwrap_or(Path::new("")).join(name);
        let text = source::read(&path)
            .map_err(|error| Error::new_loading_message(name, error.to_string()))?;
        Module::declare(ctx.clone(), name, text)
    }
}
