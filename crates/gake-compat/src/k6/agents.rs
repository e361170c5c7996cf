//! Agents of a k6 run: the flags that they do not support, their log lines, and how another process
//! that continues their run shows the result.

use std::sync::Arc;

use gake_core::spec::RunSpec;
use gake_k6::options::K6Options;
use gake_k6::test::{LogLevel, Test};
use gake_k6::version::K6Version;
use gake_run::script::ScriptSettings;
use gake_session::fleet::unsupported;
use gake_session::options::AttachArgs;
use serde::{Deserialize, Serialize};

use super::flags::RunFlags;

/// The flags of k6 for which agents have flags of their own.
const NAMES: [&str; 2] = ["--local-ips", "--execution-segment"];

/// The part of a script's run that agents do not support, named by its flag; `None` if they support
/// all of it.
pub(super) fn cannot(flags: &RunFlags, options: &K6Options, spec: &RunSpec) -> Option<String> {
    if !flags.out.is_empty() {
        let why = "--out: the samples of agents do not travel one by one; use --sink";
        return Some(format!("agents do not support {why}"));
    }
    unsupported(&flags.settings, options, spec, NAMES)
}

/// Logs what happens to the agents of a run.
pub(super) fn events(
    flags: &RunFlags,
    test: &Arc<Test>,
) -> Option<impl Fn(&str) + Send + Sync + 'static> {
    let test = Arc::clone(test);
    (!flags.quiet).then_some(move |text: &str| test.log(LogLevel::Warning, text, &[]))
}

/// How the result of a run is shown, by the flags of the process that started it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ResultDisplay {
    no_thresholds: bool,
    summary_mode: Option<String>,
    summary_export: Option<String>,
    verbose: bool,
}

impl ResultDisplay {
    /// By the flags of `k6 run`.
    pub(super) fn of(flags: &RunFlags) -> Self {
        Self {
            no_thresholds: flags.settings.no_thresholds,
            summary_mode: flags.summary_mode.clone(),
            summary_export: flags.summary_export.clone(),
            verbose: flags.verbose,
        }
    }

    /// The text for the journal of the run.
    pub(super) fn text(&self) -> String {
        // Only strings and booleans: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The flags of an archive's run whose result is shown this way.
    pub(super) fn flags(self, args: &AttachArgs) -> Result<RunFlags, String> {
        let flags = RunFlags::read(&["archive.tar".to_owned()], K6Version::default())?;
        let flags = flags.ok_or("a script has no options")?;
        let Self { no_thresholds, summary_mode, summary_export, verbose } = self;
        let (quiet, no_color) = (args.output.quiet, args.output.no_color);
        let settings = ScriptSettings { no_thresholds, ..flags.settings };
        Ok(RunFlags { settings, summary_mode, summary_export, verbose, quiet, no_color, ..flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_run_is_shown_comes_back() {
        let line = ["--no-thresholds", "--summary-mode=full", "--summary-export=a.json", "s.js"];
        let flags =
            RunFlags::read(&line.map(str::to_owned), K6Version::default()).unwrap().unwrap();
        let read: ResultDisplay = serde_json::from_str(&ResultDisplay::of(&flags).text()).unwrap();
        assert!(read.no_thresholds && !read.verbose);
        assert_eq!(read.summary_mode.as_deref(), Some("full"));
        assert_eq!(read.summary_export.as_deref(), Some("a.json"));
    }
}
