//! Which secrets are hidden in stored and printed text.

use clap::Args;

/// Redaction of secrets in files and reports.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Secrets")]
pub struct RedactionArgs {
    /// Also hide values whose names contain this word, besides token, password, key, session and
    /// the like; `none` hides nothing. May be repeated
    #[arg(long, value_name = "NAME|none", value_delimiter = ',')]
    pub redact: Vec<String>,

    /// Store and show values with this name, even if they look like secrets; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub keep: Vec<String>,
}
