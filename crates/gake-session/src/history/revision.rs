//! The commit and branch of the current folder.

use std::process::{Command, Stdio};

/// A Git commit and its branch, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revision {
    /// The commit's hash, with a `+` if tracked files were changed.
    pub commit: Option<String>,
    /// The branch.
    pub branch: Option<String>,
}

impl Revision {
    /// Asks Git about the current folder. In GitHub Actions the branch is that of the event.
    pub fn current() -> Self {
        let commit = git(&["rev-parse", "HEAD"]).map(|commit| {
            let is_changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some();
            if is_changed { commit + "+" } else { commit }
        });
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let branch = variable("GITHUB_HEAD_REF")
            .or_else(|| variable("GITHUB_REF_NAME"))
            .or_else(|| git(&["symbolic-ref", "--short", "--quiet", "HEAD"]));
        Self { commit, branch }
    }

    /// The first eight digits of the hash, with the `+`.
    pub fn short(&self) -> String {
        let Some(commit) = &self.commit else { return String::new() };
        let mark = if commit.ends_with('+') { "+" } else { "" };
        let hash: String = commit.trim_end_matches('+').chars().take(8).collect();
        hash + mark
    }
}

/// The output of a Git command; `None` if it fails or prints nothing.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
