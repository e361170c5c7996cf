//! Scripts: where modules from the network are kept.

use std::path::PathBuf;

/// Where modules from the network are kept: below `XDG_CACHE_HOME`, or `.cache` at home.
#[must_use]
pub fn module_folder() -> Option<PathBuf> {
    // A relative path is to be ignored, by the specification of base directories.
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("gake/modules"))
}
