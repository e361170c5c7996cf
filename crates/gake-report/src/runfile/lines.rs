//! The `#gake` lines.

use gake_core::clock::Nanos;
use gake_core::metric::SeriesTable;
use gake_core::plan::Plan;
use gake_core::record::{
    AgentRecord, Counts, FailedBodies, FaultCount, Provenance, ScenarioRun, SeriesPoint, Tally,
};
use serde::{Deserialize, Serialize};

use crate::forms::run::{EndingForm, EventForm, GeneratorForm};
use crate::forms::watched::{ReadingsForm, SettingForm};

/// What such a line starts with.
pub(super) const PREFIX: &str = "#gake ";

/// The name of the format and its version.
pub(super) const FORMAT: &str = "gake.runfile/1";

/// One `#gake` line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first: what was asked, and when it started.
    Run(Box<RunLine>),
    /// Who asked, where, and with which objectives; older files do not say.
    Origin(OriginForm),
    /// What a second held beside its histograms; its last line.
    Second(Box<SecondLine>),
    /// Something happened.
    Event(EventForm),
    /// What the watched target said at an instant.
    Watched(ReadingsForm),
    /// Settings in force at the watched target.
    Settings(Vec<SettingForm>),
    /// The last line of a run that ended.
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
pub(super) struct OriginForm {
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    versions: Vec<String>,
    #[serde(default)]
    objectives: Vec<String>,
    /// As `--print-spec=json` has them, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    specs: Vec<String>,
}

impl From<&Provenance> for OriginForm {
    fn from(origin: &Provenance) -> Self {
        let Provenance { commands, hosts, versions, objectives, specs } = origin.clone();
        Self { commands, hosts, versions, objectives, specs }
    }
}

impl From<OriginForm> for Provenance {
    fn from(form: OriginForm) -> Self {
        let OriginForm { commands, hosts, versions, objectives, specs } = form;
        Self { commands, hosts, versions, objectives, specs }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SecondLine {
    /// Where it starts, in seconds since the start of the run.
    pub(super) at: u64,
    pub(super) asked: Option<f64>,
    pub(super) counts: Counts,
    pub(super) warmup: Counts,
    /// Status code and count.
    pub(super) statuses: Vec<(u16, u64)>,
    pub(super) faults: Vec<FaultCount>,
    /// By label number.
    pub(super) labels: Vec<Counts>,
    /// A 128-bit number, hence a text.
    pub(super) in_flight_ns: String,
    /// Arrivals fired in it, whenever they ended; older files do not say.
    #[serde(default)]
    pub(super) fired: Option<u64>,
    pub(super) open: u64,
    pub(super) peak: u64,
    pub(super) cpu_ns: u64,
    /// The histograms of the second, with what a histogram's buckets do not tell exactly.
    pub(super) exact: Vec<Exact>,
    /// Checks and metrics of the run's own.
    #[serde(default, skip_serializing_if = "SeriesTable::is_empty")]
    pub(super) series: SeriesTable,
    /// What each scenario recorded, when the run has several: the figures above are their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) scenarios: Vec<Tally>,
    /// Its tenths as they are drawn, of a run of up to a minute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tenths: Vec<SeriesPoint>,
}

/// A histogram's exact figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exact {
    pub(super) tag: String,
    pub(super) count: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    /// A 128-bit number, hence a text.
    pub(super) sum: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EndLine {
    pub(super) ending: EndingForm,
    pub(super) measured_ns: u64,
    pub(super) sending_ns: u64,
    /// `None` in files of older versions.
    pub(super) completing_ns: Option<u64>,
    pub(super) elapsed_ns: u64,
    pub(super) asked_rate: Option<f64>,
    pub(super) peak_connections: u64,
    pub(super) generator: GeneratorForm,
    pub(super) events: Vec<EventForm>,
    /// The agents, when a fleet did it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<AgentRecord>,
    /// The plan, when its rates were changed during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<Plan>,
    /// Of the whole run, so that a second that could not be written is missed.
    pub(super) sent: u64,
    pub(super) dropped: u64,
    /// Bodies of failed answers, when they were asked for; secrets are hidden already.
    #[serde(default, skip_serializing_if = "FailedBodies::is_empty")]
    pub(super) bodies: FailedBodies,
    /// Each scenario's, when the run has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) scenarios: Vec<ScenarioEnd>,
}

/// What the end of a run tells of one scenario.
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
