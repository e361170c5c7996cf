//! `gake dashboard`: prints a dashboard.

use gake_sinks::dashboard;

use crate::cli::{DashboardArgs, DashboardKind};
use gake_session::Console;
use gake_session::{Exit, Failure};

/// Prints a dashboard as JSON.
///
/// # Errors
/// When the output is closed or full.
pub fn run(args: &DashboardArgs, console: &Console) -> Result<Exit, Failure> {
    let DashboardKind::Grafana { source } = args.kind;
    let text = serde_json::to_string_pretty(&dashboard::grafana(source));
    console.result(&(text.map_err(Failure::could_not)? + "\n"))?;
    Ok(Exit::Done)
}
