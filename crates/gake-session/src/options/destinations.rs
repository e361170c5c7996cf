//! Where the results and figures of `gake run` go.

use std::path::{Path, PathBuf};

use clap::Args;
use gake_report::Format;
use gake_sinks::SinkAddress;

use super::output::{self, OutputSpec, ResultFormat};
use super::values;

/// Formats and files of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// text, json, csv (one row per second), csv-summary, markdown, html, junit, openmetrics or
    /// hdrplot; with =FILE into a file, otherwise printed. May be repeated; the default is text
    #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_RUN, hide_possible_values = true)]
    pub formats: Vec<OutputSpec>,

    /// Write the report with charts, one HTML file: short for -o html=FILE
    #[arg(long, value_name = "FILE", value_parser = output::html)]
    pub html: Option<OutputSpec>,

    /// Write the run file: an HdrHistogram log that `gake report` and others read
    #[arg(long, value_name = "FILE", value_parser = output::run_file)]
    pub out: Option<PathBuf>,

    /// Log every request: .csv, or .json for one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// The databases and dashboards.
    #[command(flatten)]
    pub sinks: SinkArgs,

    /// Print only the verdict and the objectives, or the result in the format asked for
    #[arg(short, long)]
    pub quiet: bool,

    /// Also print a line per second
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Show the run full-screen: rates, percentiles, histogram, faults, objectives;
    /// `tui = true` in ~/.config/gake/config.toml makes it the default
    #[arg(long, conflicts_with_all = ["quiet", "verbose"])]
    pub tui: bool,

    /// No colour: short for --color=never
    #[arg(long)]
    pub no_color: bool,
}

/// Databases and dashboards that receive figures during the run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct SinkArgs {
    /// Send metrics there during the run: influxdb=URL/DATABASE, prometheus=ADDRESS,
    /// prometheus-rw=URL, otlp=URL, otlp-grpc=URL, statsd=ADDRESS, graphite=ADDRESS, nats=URL,
    /// json=FILE or csv=FILE; env:NAME or file:PATH holds the value; may be repeated
    #[arg(long, value_name = "KIND=ADDRESS", value_parser = values::sink)]
    pub sink: Vec<SinkAddress>,

    /// Annotate the charts of a Grafana with begin, stages, findings and end of the run:
    /// grafana=URL, or env:NAME or file:PATH that holds it; its token comes from GRAFANA_TOKEN
    #[arg(long, value_name = "grafana=URL", value_parser = values::annotated)]
    pub annotate: Vec<SinkAddress>,

    /// Most bytes on disk of figures that a sink has not taken yet; they are delivered after the run
    /// (default 2GB, at most a tenth of the free disk)
    #[arg(long, value_name = "SIZE", value_parser = gake_text::size::parse_size)]
    pub sink_spill: Option<u64>,

    /// Do not start unless every sink is reachable
    #[arg(long)]
    pub sink_required: bool,
}

impl OutputArgs {
    /// All requested results.
    pub fn results(&self) -> impl Iterator<Item = &OutputSpec> {
        self.formats.iter().chain(&self.html)
    }

    /// Whether the printed result is text for people.
    pub fn is_text_printed(&self) -> bool {
        let printed = self.results().find(|output| output.file.is_none());
        printed.is_none_or(|output| {
            matches!(output.format, ResultFormat::Summary(Format::Text | Format::Markdown))
        })
    }

    /// All requested files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let own = [&self.out, &self.log].into_iter().flatten().map(PathBuf::as_path);
        let sinks = self.sinks.sink.iter().filter_map(|sink| sink.file().map(Path::new));
        own.chain(sinks).chain(output::files(self.results()))
    }
}
