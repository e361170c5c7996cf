//! `k6 deps`: what a script imports. With `--lock`, which k6 does not have, the modules from the
//! network are written down with their hashes.

use gake_k6::version::K6Version;
use gake_run::script::{LoadedScript, ModuleLock, ScriptSettings};
use gake_session::Console;
use gake_session::script::{environment, log, source, unlocked_source};
use serde_json::json;

use super::flags::RunFlags;
use super::load::{LoadRefusal, load_source};
use super::{CommandOutput, other_error};

const JSON: &str = "--json";
const LOCK: &str = "--lock";

/// `k6 deps`.
pub(super) fn main(args: &[String], version: K6Version, console: &Console) -> CommandOutput {
    let is_own = |arg: &&String| [JSON, LOCK].contains(&arg.as_str());
    let (own, others): (Vec<_>, Vec<_>) = args.iter().partition(is_own);
    let has = |flag: &str| own.iter().any(|arg| *arg == flag);
    let others: Vec<String> = others.into_iter().cloned().collect();
    let Some(flags) = RunFlags::read(&others, version).map_err(other_error)? else {
        return Ok("Usage: gake as k6 deps [--json] [--lock] script.js\n".to_owned());
    };
    let is_locking = has(LOCK);
    let script = flags.script.as_str();
    if is_locking && script == "-" {
        return Err(other_error(format!(
            "{LOCK} needs the path of a script: the lock is beside it"
        )));
    }
    let log = log::log(console, flags.log_output.as_deref(), flags.log_format, flags.verbose);
    let log = log.map_err(other_error)?;
    let read = if is_locking { unlocked_source(script) } else { source(script) };
    let settings = ScriptSettings { system: environment(), ..flags.settings.clone() };
    let loaded = load_source((script, read.map_err(other_error)?), &settings, log);
    let loaded = loaded.map_err(LoadRefusal::into_error)?.script;
    let shown = if has(JSON) { as_json(&loaded) } else { as_text(&loaded) };
    if is_locking {
        let lock = ModuleLock::of(script, &loaded);
        let path = lock.write().map_err(other_error)?;
        console.note(&format!("{} has {} modules", path.display(), lock.len()));
    }
    Ok(shown)
}

/// What was loaded is built in.
const IS_CUSTOM: bool = false;

fn as_json(script: &LoadedScript) -> String {
    let all = json!({
        "buildDependencies": script.dependencies(),
        "imports": script.imports(),
        "customBuildRequired": IS_CUSTOM,
    });
    // Strings: this cannot fail.
    serde_json::to_string_pretty(&Ordered(&all)).unwrap_or_default() + "\n"
}

/// The members in k6's order.
struct Ordered<'a>(&'a serde_json::Value);

impl serde::Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = ["buildDependencies", "imports", "customBuildRequired"];
        serializer.collect_map(members.map(|name| (name, &self.0[name])))
    }
}

fn as_text(script: &LoadedScript) -> String {
    let mut text = "Build Dependencies:\n".to_owned();
    for (name, version) in script.dependencies() {
        text += &format!("  {name}: {version}\n");
    }
    text += "\nImports:\n";
    for name in script.imports() {
        text += &format!("  {name}\n");
    }
    text + "\nCustom Build Required: no\n"
}
