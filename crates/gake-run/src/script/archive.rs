//! Scripts in archives: packed for another machine, and loaded there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gake_k6::archive::Archive;
use gake_k6::options::K6Options;
use gake_k6::test::{LogLine, ScriptLog};

use super::{ConfiguredScript, LoadedScript, STDIN, ScriptSettings, UnloadedScript};

impl LoadedScript {
    /// Packs the script and everything that it reads, with these options as given and this
    /// environment.
    ///
    /// # Errors
    /// When the options cannot be written.
    pub fn archive(
        &self,
        given: &K6Options,
        environment: BTreeMap<String, String>,
    ) -> Result<Archive, String> {
        let path = self.test.main.strip_prefix("file://").unwrap_or(STDIN).into();
        let options = serde_json::to_value(given.shown_to_users());
        let files = self.test.files.all().into_iter().map(|(path, bytes)| (path, bytes.to_vec()));
        Ok(Archive {
            script: path,
            options: options.map_err(|error| error.to_string())?,
            environment,
            files: files.collect(),
        })
    }
}

/// An agent checks each target against what it may load.
const NO_BROWSER: &str = "it drives no browser, whose targets it could not check";

/// Loads the script in `archive` with the options in it. It reads no files and no environment of
/// this machine. `seed` is the seed of each user's `Math.random`. Users log to `log`; warnings
/// about options and the log of the init code are dropped, since the machine that packed the
/// archive has logged them.
///
/// # Errors
/// What is wrong with it, in a sentence.
pub fn load_archive(
    archive: &[u8],
    seed: Option<u64>,
    log: ScriptLog,
) -> Result<ConfiguredScript, String> {
    let source = UnloadedScript::of_archive(archive).map_err(|error| error.to_string())?;
    let is_loaded = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&is_loaded);
    let log: ScriptLog = Arc::new(move |line: &LogLine| {
        if is_open.load(Relaxed) {
            log(line);
        }
    });
    let settings = ScriptSettings { seed, ..ScriptSettings::default() };
    let loaded = ConfiguredScript::load(source, &settings, log);
    let loaded = loaded.map_err(|refusal| refusal.with_stack())?;
    if loaded.wants_browser() {
        return Err(NO_BROWSER.to_owned());
    }
    is_loaded.store(true, Relaxed);
    Ok(loaded)
}
