//! The `#gake` lines.

use gake_core::clock::Nanos;
use gake_core::metric::SeriesTable;
use gake_core::plan::Plan;
use gake_core::record::{
    AgentRecord, Counts, FailedBodies, FaultCount, Provenance, ScenarioRun, SeriesPoint, Tally,
};
use gake_text::redact::Redacted;
use serde::{Deserialize, Serialize};

use crate::json_types::run::{EndingJson, EventJson, GeneratorJson};
use crate::json_types::watched::{ReadingsJson, SettingJson};

/// The prefix of such a line.
pub(super) const PREFIX: &str = "#gake ";

/// The name and version of the format.
pub(super) const FORMAT: &str = "gake.runfile/1";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GakeLine {
    /// The first line: the plan and the start.
    Run(Box<RunLine>),
    /// Commands, hosts, versions and objectives; absent in older files.
    Origin(OriginJson),
    /// The last line of a second: its data besides the histograms.
    Second(Box<SecondLine>),
    Event(EventJson),
    /// The readings of the watched target at an instant.
    Watched(ReadingsJson),
    /// Settings of the watched target.
    Settings(Vec<SettingJson>),
    /// The last line of a complete run.
    End(Box<EndLine>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunLine {
    pub(super) format: String,
    /// The version of gake that wrote it.
    pub(super) gake: String,
    pub(super) started_unix_ns: u64,
    pub(super) plan: Plan,
}

/// [`Provenance`] as the file has it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct OriginJson {
    #[serde(default)]
    commands: Vec<Redacted>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    versions: Vec<String>,
    #[serde(default)]
    objectives: Vec<String>,
    /// As printed by `--print-spec=json`, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    specs: Vec<Redacted>,
}

impl From<&Provenance> for OriginJson {
    fn from(origin: &Provenance) -> Self {
        let Provenance { commands, hosts, versions, objectives, specs } = origin.clone();
        Self { commands, hosts, versions, objectives, specs }
    }
}

impl From<OriginJson> for Provenance {
    fn from(form: OriginJson) -> Self {
        let OriginJson { commands, hosts, versions, objectives, specs } = form;
        Self { commands, hosts, versions, objectives, specs }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SecondLine {
    /// Its start, in seconds since the start of the run.
    pub(super) at: u64,
    pub(super) asked: Option<f64>,
    pub(super) counts: Counts,
    pub(super) warmup: Counts,
    /// Status code and count.
    pub(super) statuses: Vec<(u16, u64)>,
    pub(super) faults: Vec<FaultCount>,
    /// By label number.
    pub(super) labels: Vec<Counts>,
    /// A 128-bit number, and so a string.
    pub(super) in_flight_ns: String,
    /// Arrivals fired in it, whenever they ended; absent in older files.
    #[serde(default)]
    pub(super) fired: Option<u64>,
    pub(super) open: u64,
    pub(super) peak: u64,
    pub(super) cpu_ns: u64,
    /// Exact figures of the histograms, which their buckets do not contain.
    pub(super) exact: Vec<ExactFigures>,
    /// Checks and custom metrics.
    #[serde(default, skip_serializing_if = "SeriesTable::is_empty")]
    pub(super) series: SeriesTable,
    /// The tally of each scenario, when the run has several: the figures above are their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) scenarios: Vec<Tally>,
    /// Its tenths as they are drawn, in a run of up to a minute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tenths: Vec<SeriesPoint>,
}

/// The exact figures of a histogram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExactFigures {
    pub(super) tag: String,
    pub(super) count: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    /// A 128-bit number, and so a string.
    pub(super) sum: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EndLine {
    pub(super) ending: EndingJson,
    pub(super) measured_ns: u64,
    pub(super) sending_ns: u64,
    /// `None` in files of older versions.
    pub(super) completing_ns: Option<u64>,
    pub(super) elapsed_ns: u64,
    pub(super) asked_rate: Option<f64>,
    pub(super) peak_connections: u64,
    pub(super) generator: GeneratorJson,
    pub(super) events: Vec<EventJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<AgentRecord>,
    /// The plan, when its rates were changed during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<Plan>,
    /// Of the whole run, to detect seconds that could not be written.
    pub(super) sent: u64,
    pub(super) dropped: u64,
    /// Bodies of failed responses, when they were recorded, without secrets.
    #[serde(default, skip_serializing_if = "FailedBodies::is_empty")]
    pub(super) bodies: FailedBodies,
    /// The scenarios, when the run has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) scenarios: Vec<ScenarioEnd>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ScenarioEnd {
    pub(super) measured_ns: Nanos,
    pub(super) sending_ns: Nanos,
    pub(super) completing_ns: Nanos,
    pub(super) asked_rate: Option<f64>,
    pub(super) warmup: Counts,
}

impl From<&ScenarioRun> for ScenarioEnd {
    fn from(run: &ScenarioRun) -> Self {
        Self {
            measured_ns: run.measured,
            sending_ns: run.sending,
            completing_ns: run.completing,
            asked_rate: run.asked_rate,
            warmup: run.warmup,
        }
    }
}
