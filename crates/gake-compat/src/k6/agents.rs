//! Agents of a k6 run: what they cannot do, by the names of k6's flags, what happens to them, and
//! how their run is shown by a process that continues it.

use std::sync::Arc;

use gake_core::spec::RunSpec;
use gake_k6::options::K6Options;
use gake_k6::test::{LogLevel, Test};
use gake_run::script::ScriptSettings;
use gake_session::fleet::unsupported;
use gake_session::options::AttachArgs;
use serde::{Deserialize, Serialize};

use super::flags::RunFlags;

/// What k6's flags call what agents have themselves.
const NAMES: [&str; 2] = ["--local-ips", "--execution-segment"];

/// What of a script's run agents cannot do, by name; `None` when they can.
pub(super) fn cannot(flags: &RunFlags, options: &K6Options, spec: &RunSpec) -> Option<String> {
    if !flags.out.is_empty() {
        let why = "--out: the samples of agents do not travel one by one; use --sink";
        return Some(format!("agents cannot do {why}"));
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
pub(super) struct Showing {
    no_thresholds: bool,
    summary_mode: Option<String>,
    summary_export: Option<String>,
    verbose: bool,
}

impl Showing {
    /// By the flags of `k6 run`.
    pub(super) fn of(flags: &RunFlags) -> Self {
        Self {
            no_thresholds: flags.settings.no_thresholds,
            summary_mode: flags.summary_mode.clone(),
            summary_export: flags.summary_export.clone(),
            verbose: flags.verbose,
        }
    }

    /// The same as it stands in the journal of the run.
    pub(super) fn text(&self) -> String {
        // Texts and truth values: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The flags of a run of an archive that is shown so.
    pub(super) fn flags(self, args: &AttachArgs) -> Result<RunFlags, String> {
        let flags = RunFlags::read(&["archive.tar".to_owned()])?;
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
        let flags = RunFlags::read(&line.map(str::to_owned)).unwrap().unwrap();
        let read: Showing = serde_json::from_str(&Showing::of(&flags).text()).unwrap();
        assert!(read.no_thresholds && !read.verbose);
        assert_eq!(read.summary_mode.as_deref(), Some("full"));
        assert_eq!(read.summary_export.as_deref(), Some("a.json"));
    }
}
