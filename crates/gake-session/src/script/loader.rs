//! Loads the scripts of a command's run.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use gake_k6::test::ScriptLog;
use gake_run::script::{ConfiguredScript, ScriptSettings, UnloadedScript};
use gake_run::{RunError, Scripts};

use super::{Repeats, source};

/// Loads the scripts of a spec with the settings of a command. A script that was loaded for its
/// options is the first that runs.
pub struct ScriptLoader {
    settings: ScriptSettings,
    log: ScriptLog,
    repeats: Repeats,
    ready: RefCell<Vec<(PathBuf, ConfiguredScript)>>,
}

impl ScriptLoader {
    /// Loads with these settings; scripts write to `log`, with repeated lines bounded.
    #[must_use]
    pub fn new(settings: ScriptSettings, log: ScriptLog) -> Self {
        let repeats = Repeats::default();
        Self { settings, log: repeats.bounding(log), repeats, ready: RefCell::default() }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &ScriptSettings {
        &self.settings
    }

    /// Number of repeated log lines that were not written, if any.
    #[must_use]
    pub fn left_out(&self) -> Option<u64> {
        self.repeats.left_out()
    }

    /// Loads the script in `archive` in place of the one at `path`, with the options in it, and
    /// without the environment of this machine.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_archive(archive: &[u8], path: &Path, log: ScriptLog) -> Result<Self, String> {
        let source = UnloadedScript::of_archive(archive).map_err(|error| error.to_string())?;
        let loader = Self::new(ScriptSettings::default(), log);
        let script = ConfiguredScript::load(source, &loader.settings, loader.log.clone());
        loader.keep(path, script.map_err(|error| error.to_string())?);
        Ok(loader)
    }

    /// Uses a loaded script for the next run of `path`.
    pub fn keep(&self, path: &Path, script: ConfiguredScript) {
        self.ready.borrow_mut().push((path.to_owned(), script));
    }
}

impl Scripts for ScriptLoader {
    fn load(&self, path: &Path) -> Result<ConfiguredScript, RunError> {
        let mut ready = self.ready.borrow_mut();
        if let Some(at) = ready.iter().position(|(known, _)| known == path) {
            return Ok(ready.swap_remove(at).1);
        }
        let name = path.to_string_lossy();
        let source = source(&name).map_err(|why| RunError::cannot(format!("{name}: {why}")))?;
        let script = ConfiguredScript::load(source, &self.settings, self.log.clone());
        script.map_err(|error| RunError::cannot(format!("{name}: {error}")))
    }
}

impl fmt::Debug for ScriptLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptLoader").field("settings", &self.settings).finish_non_exhaustive()
    }
}
