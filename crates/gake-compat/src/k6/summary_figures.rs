//! The figures of the summary, in either of k6's two forms.

use std::path::Path;

use gake_k6::summary::{SummaryData, SummaryOrigin, export, export_machine_readable};
use gake_k6::test::Test;

use super::flags::RunFlags;

/// The figures as `handleSummary` gets them, and as `--summary-export` writes them.
pub(super) struct SummaryFigures {
    /// The argument of `handleSummary`, as JSON.
    pub(super) argument: String,
    export: fn(&str) -> Option<String>,
}

impl SummaryFigures {
    /// The figures of a run, in the form that its flags choose.
    pub(super) fn new(data: &SummaryData, flags: &RunFlags, test: &Test) -> Self {
        if !flags.machine_readable {
            return Self { argument: data.for_script(), export };
        }
        let main = test.main.strip_prefix("file://").unwrap_or(&test.main);
        let script = test.file(Path::new(main)).unwrap_or_default();
        let origin = SummaryOrigin {
            script: &String::from_utf8_lossy(&script),
            version: flags.settings.version.full_name(),
            unix_ns: test.unix_ns(),
        };
        Self { argument: data.machine_readable(origin), export: export_machine_readable }
    }

    /// The content of the file: the figures as `handleSummary` left them, unless they are no longer
    /// JSON.
    pub(super) fn exported(&self, changed: Option<&str>) -> String {
        let changed = changed.and_then(self.export);
        changed.or_else(|| (self.export)(&self.argument)).unwrap_or_default()
    }
}
