//! The flags of `gake report`.

use std::path::PathBuf;

use clap::Args;
use gake_judge::Objective;

use super::run::FormatArg;

/// Show what run files hold.
///
/// Several files are merged exactly, as if one generator had made them all.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run files, as `gake run --out` writes them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Format
    #[arg(short = 'o', long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,

    /// Judge again, against these objectives; may be repeated
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Objective>,

    /// No colours (also: NO_COLOR)
    #[arg(long)]
    pub no_color: bool,
}
