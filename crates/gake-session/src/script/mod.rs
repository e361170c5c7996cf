//! Scripts of a command: their log, their environment, and where modules from the network are kept.

mod loader;
pub mod log;
mod repeats;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use gake_run::script::ScriptSource;

pub use loader::ScriptLoader;
pub use repeats::Repeats;

/// Whether a target names a script that is there, or an archive of one, by the ending of its name.
#[must_use]
pub fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("js" | "mjs" | "cjs" | "ts" | "tar")) && path.is_file()
}

/// The environment of this process, where it is text.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Where modules from the network are kept: below `XDG_CACHE_HOME`, or `.cache` at home.
#[must_use]
pub fn module_folder() -> Option<PathBuf> {
    // A relative path is to be ignored, by the specification of base directories.
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("gake/modules"))
}

/// Reads the script or archive at `name`; `-` is standard input.
///
/// # Errors
/// When it cannot be read, in k6's words.
pub fn source(name: &str) -> Result<ScriptSource, String> {
    ScriptSource::read(name, module_folder(), Some(&mut io::stdin().lock()))
}
