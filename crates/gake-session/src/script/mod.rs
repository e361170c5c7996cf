//! Scripts of a command: their log, their environment, and the cache of modules from the network.

mod loader;
pub mod log;
mod outcome;
mod repeats;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use gake_run::script::{ModuleLock, UnloadedScript, fetcher};
use gake_wire::ProxyError;

use crate::proxy;

pub use loader::ScriptLoader;
pub(crate) use outcome::outcome;
pub use repeats::Repeats;

/// The name of a script on standard input.
const STDIN: &str = "-";

/// The environment of this process, as far as it is UTF-8.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The cache of modules from the network: below `XDG_CACHE_HOME`, or `.cache` at home.
#[must_use]
pub fn module_folder() -> Option<PathBuf> {
    // The base directory specification requires ignoring relative paths.
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("gake/modules"))
}

/// Reads the script or archive at `name`; `-` is standard input.
///
/// # Errors
/// When it cannot be read, in k6's words.
pub fn source(name: &str) -> Result<UnloadedScript, String> {
    let lock = if name == STDIN { None } else { ModuleLock::read(name)? };
    locked_source(name, lock)
}

/// As [`source`], for a script whose lock of modules is not read: it is written anew.
///
/// # Errors
/// When it cannot be read, in k6's words.
pub fn unlocked_source(name: &str) -> Result<UnloadedScript, String> {
    locked_source(name, None)
}

fn locked_source(name: &str, lock: Option<ModuleLock>) -> Result<UnloadedScript, String> {
    let proxy = proxy::of_environment()?.map(|rules| rules.parse()).transpose();
    let proxy = proxy.map_err(|error: ProxyError| error.to_string())?;
    let fetch = fetcher(module_folder(), proxy, lock);
    UnloadedScript::read(name, fetch, Some(&mut io::stdin().lock()))
}
