//! The flags of `gake dashboard`.

use clap::{Args, Subcommand};
use gake_sinks::dashboard::DashboardSource;

use super::values::KnownValues;

/// Databases that dashboards read.
const SOURCES: KnownValues<DashboardSource> =
    KnownValues::new(&["influxdb", "prometheus"], str::parse);

/// Print a dashboard for figures that `gake run --sink` sends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake dashboard grafana > gake.json                       for --sink influxdb
  gake dashboard grafana --source prometheus > gake.json   for --sink prometheus-rw or prometheus
Import the file in Grafana: Dashboards, New, Import.")]
pub struct DashboardArgs {
    /// For what.
    #[command(subcommand)]
    pub kind: DashboardKind,
}

/// What shows a dashboard.
#[derive(Debug, Subcommand)]
pub enum DashboardKind {
    /// Grafana: rates, percentiles, errors by fault, lateness, verdict, the target's levels
    Grafana {
        /// The database: influxdb or prometheus
        #[arg(long, value_name = "SOURCE", default_value = "influxdb", value_parser = SOURCES, hide_possible_values = true)]
        source: DashboardSource,
    },
}
