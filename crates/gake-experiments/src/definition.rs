//! The format of an experiment file: `experiments/*.toml`.
//!
//! Texts are templates with `{...}`; numbers may be expressions, and conditions are (`arithmetic`).
//! All can use the columns of `each`, `values` and `texts`, what earlier steps saved, and after a
//! run its figures (`figures`).

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

/// The experiments, in the order in which they are listed.
pub const FILES: [&str; 11] = [
    include_str!("../experiments/spike.toml"),
    include_str!("../experiments/pool.toml"),
    include_str!("../experiments/users-db.toml"),
    include_str!("../experiments/gc.toml"),
    include_str!("../experiments/leak.toml"),
    include_str!("../experiments/slow-client.toml"),
    include_str!("../experiments/noisy-neighbour.toml"),
    include_str!("../experiments/shadow.toml"),
    include_str!("../experiments/overload.toml"),
    include_str!("../experiments/cliff.toml"),
    include_str!("../experiments/capacity.toml"),
];

/// An experiment.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: String,
    /// Its purpose, in a sentence.
    pub about: String,
    /// Whether its load makes sense on any server.
    pub takes_target: bool,
    /// Whether it also runs on a real database.
    pub takes_database: bool,
    /// Why agents cannot run its load, if they cannot.
    pub no_agents: Option<String>,
    /// Numbers by name.
    pub values: BTreeMap<String, CellValue>,
    /// Texts by name: a template, or conditions with templates, of which the first true one counts;
    /// a final template without a condition is the default.
    pub texts: BTreeMap<String, TextTemplate>,
    /// The steps, in order.
    pub step: Vec<StepDefinition>,
}

/// A number or text; for a number, the text is its expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum CellValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// A template, or the first one whose condition is true.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum TextTemplate {
    /// Unconditional.
    Template(String),
    /// Conditions with templates.
    Cases(Vec<Vec<String>>),
}

/// Columns of the same length.
pub type Columns = BTreeMap<String, Vec<CellValue>>;

/// The target of a step: the built-in lab, the user's own server (`--target`), either, or the lab
/// on a real database (`--db`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepTarget {
    #[default]
    Lab,
    Target,
    Any,
    Database,
}

/// The action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// Runs its load once.
    #[default]
    Load,
    /// Doubles `users` until throughput stops growing, and saves `capacity` and `users`.
    Saturate,
    /// Runs its load alternately on production and through the proxy.
    Alternate,
    /// Runs no load: adds a note about where the throughput of the curve's steps stops growing.
    Throughput,
}

/// A step, or several with different columns of `each`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepDefinition {
    /// The setting that changes in it, in a few words.
    pub name: String,
    /// A name that similar steps refer to, and the step whose keys are its defaults.
    pub id: Option<String>,
    pub like: Option<String>,
    pub on: StepTarget,
    pub kind: StepKind,
    /// The columns it is repeated for: every row of one table with every row of the others.
    pub each: Vec<Columns>,
    /// Numbers by name, which take precedence over the experiment's.
    pub values: BTreeMap<String, CellValue>,
    /// The condition of its inclusion.
    pub when: Option<String>,
    /// Why it is not run.
    pub left_out: Vec<ConditionalText>,
    /// Concurrent connections it needs: if they are not possible, it is left out or, if it shrinks,
    /// runs with as many as there can be.
    pub connections: Option<String>,
    pub shrinks: bool,
    /// Whether later steps need what it saves: it then runs if one of them does.
    pub calibrates: bool,
    /// Flags of the lab, and of a second one, whose URL is `{other}`.
    pub server: String,
    pub other: Option<String>,
    /// The proxy between the load and the lab.
    pub proxy: Option<ProxyTemplate>,
    /// Connections that send a body a byte at a time during the run.
    pub slow_clients: Option<String>,
    /// The path of its requests on the lab, `/fast` by default.
    pub path: Option<String>,
    /// The scenario of its spec, an additional one, and the rest of the spec.
    pub load: Table,
    pub beside: Option<Table>,
    pub connection: Table,
    pub warmup: Option<String>,
    /// Whether the lab's own metrics are not sampled: the sampler holds a connection.
    pub unwatched: bool,
    /// Whether the lab's process and its sockets are sampled.
    pub watches_process: bool,
    /// Whether it is part of the curve of throughput over users.
    pub in_curve: bool,
    /// Preceding runs with other values, each on a server of its own.
    pub probe: Vec<Probe>,
    /// Why it is left out after the probes.
    pub lacking: Vec<ConditionalText>,
    /// The scenario whose figures are shown and compared.
    pub subject: Option<usize>,
    /// Notes before and after the run.
    pub note: Vec<ConditionalText>,
    pub note_after: Vec<ConditionalText>,
    /// Why the experiment stops or fails after it.
    pub stop: Vec<ConditionalText>,
    pub fail: Vec<ConditionalText>,
    /// Figures saved for later steps.
    pub save: BTreeMap<String, String>,
    /// The predictions of theory.
    pub expect: Vec<Prediction>,
}

/// A run with other values of which only figures are saved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub values: BTreeMap<String, f64>,
    pub save: BTreeMap<String, String>,
}

/// The shadow proxy of a step.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyTemplate {
    /// Flags of the sandbox.
    pub sandbox: String,
    /// The name of the sandbox's user; without one no server listens there.
    pub user: String,
    /// Flags of the proxy.
    pub flags: String,
    /// Whether production has a second instance, for noise.
    pub has_second: bool,
}

/// A text with a condition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionalText {
    pub when: Option<String>,
    pub text: String,
}

/// A prediction of theory for a step.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prediction {
    /// The condition; absent is always true.
    pub when: Option<String>,
    /// The figure's name, and the expression of its value unless `seen` is set.
    pub what: String,
    /// The predicted value, with its formula.
    pub theory: String,
    /// An expression, a colon, and a format (a count by default).
    pub seen: Option<String>,
    /// Displayed instead of the value.
    pub shown: Option<String>,
    /// The minimum, the maximum, or the exact value.
    pub from: Option<CellValue>,
    pub to: Option<CellValue>,
    pub is: Option<CellValue>,
    /// This cause is named with no wrong one before it; those in `beside` are correct, too.
    pub cause: Option<String>,
    pub beside: Vec<String>,
    /// One of these causes is named first.
    pub first_cause: Option<Vec<String>>,
    /// No cause is named.
    pub no_cause: bool,
    /// There is one row per ok request.
    pub rows: bool,
    /// The comparison finds differences in these fields, and possibly a slower shadow.
    pub found: Option<Vec<String>>,
    pub slower: bool,
}

impl StepDefinition {
    /// The path of its requests on the lab.
    pub fn path(&self) -> &str {
        self.path.as_deref().unwrap_or("/fast")
    }
}

impl Experiment {
    /// Reads a file.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut file: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        if let Some(Value::Array(steps)) = file.get_mut("step") {
            for at in 0..steps.len() {
                let (before, rest) = steps.split_at_mut(at);
                let Some(Value::Table(step)) = rest.first_mut() else { continue };
                let Some(like) = step.get("like").cloned() else { continue };
                let model = before.iter().find(|one| one.get("id") == Some(&like));
                let model = model.and_then(Value::as_table);
                for (key, value) in model.ok_or_else(|| format!("no step has the id {like}"))? {
                    step.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        file.try_into().map_err(|error| error.to_string())
    }
}
