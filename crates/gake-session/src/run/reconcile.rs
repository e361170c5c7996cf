//! `--reconcile`: rows added during a run, against successful responses.

use gake_core::spec::{RequestSource, RunSpec};
use gake_judge::{Evaluation, Summary, WriteCounts, reconcile};

use super::rows::RowSource;
use crate::exit::Failure;
use crate::options::values::secret;

/// Source name for the users of the lab that the run loads.
const LAB: &str = "lab";

/// A counter of rows, with the count before the run.
#[derive(Debug)]
pub struct Reconciliation {
    source: RowSource,
    before: u64,
}

impl Reconciliation {
    /// Counts the rows before a run of `spec`.
    ///
    /// # Errors
    /// When the text does not name a source, or the source gives no number.
    pub fn begin(text: &str, spec: &RunSpec) -> Result<Self, Failure> {
        let usage = |why: String| Failure::usage(format!("--reconcile: {why}"));
        let text = &*secret(text).map_err(usage)?;
        let lab = (text == LAB).then(|| users_of_lab(spec)).transpose().map_err(usage)?;
        // It may contain a password: do not print it.
        let source: RowSource = lab.as_deref().unwrap_or(text).parse().map_err(|error| {
            usage(format!("{error}; or lab, the users of the lab that is loaded"))
        })?;
        let cannot = |why| Failure::could_not(format!("--reconcile {source}: {why}"));
        let before = source.read().map_err(cannot)?;
        Ok(Self { source, before })
    }

    /// Counts again, and adds the evaluation to the objectives.
    pub fn end(self, summary: &mut Summary) {
        let found = self.judge(WriteCounts::of(&summary.run));
        summary.verdict.objectives.push(found);
    }

    /// Counts again, and compares the added rows with `writes`.
    pub fn judge(&self, writes: WriteCounts) -> Evaluation {
        reconcile(writes, self.before, self.source.read())
    }
}

/// The source that counts the users of the lab that a run loads.
fn users_of_lab(spec: &RunSpec) -> Result<String, String> {
    let mut urls = spec.scenarios.iter().filter_map(|scenario| match &scenario.source {
        RequestSource::Url(url) => url.parse::<http::Uri>().ok(),
        _ => None,
    });
    let origin = urls.find_map(|url| {
        let scheme = if url.scheme_str() == Some("https") { "https" } else { "http" };
        Some(format!("{scheme}://{}", url.authority()?))
    });
    let none = "lab counts the users of the lab whose URL is the target, and this run has no URL";
    Ok(format!("http:{}/users/count#count", origin.ok_or(none)?))
}
