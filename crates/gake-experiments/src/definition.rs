//! The form of an experiment's file: `experiments/*.toml`.
//!
//! Texts are templates in which `{...}` is filled; numbers may be expressions, and conditions are
//! (`arithmetic`). All see the columns of `each`, `values` and `texts`, what earlier steps saved, and
//! after a run its figures (`figures`).

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
    /// What it shows, in a sentence.
    pub about: String,
    /// Whether the same load makes sense on any server.
    pub takes_target: bool,
    /// Whether it runs on a real database too.
    pub takes_database: bool,
    /// Why agents cannot have its load, if they cannot.
    pub no_agents: Option<String>,
    /// Numbers by name.
    pub values: BTreeMap<String, Cell>,
    /// Texts by name: a template, or conditions and templates of which the first that holds counts; a
    /// last template alone is for all other cases.
    pub texts: BTreeMap<String, Text>,
    /// The steps, in order.
    pub step: Vec<StepDefinition>,
}

/// A number, or a text: of a number, its expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// A template, or the first one whose condition holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// Always the same template.
    Template(String),
    /// Conditions and templates.
    Cases(Vec<Vec<String>>),
}

/// Columns of the same length.
pub type Columns = BTreeMap<String, Vec<Cell>>;

/// What is loaded: the built-in lab, the user's own server (`--target`), either, or the lab on a real
/// database (`--db`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepTarget {
    #[default]
    Lab,
    Target,
    Any,
    Database,
}

/// What a step does.
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
    /// Runs no load: notes where the steps that are part of the curve stop growing.
    Throughput,
}

/// A step, or several that differ in the columns of `each`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepDefinition {
    /// What is different in it, in a few words.
    pub name: String,
    /// Its name for steps that are like it, and the one whose keys it has where it sets none.
    pub id: Option<String>,
    pub like: Option<String>,
    pub on: StepTarget,
    pub kind: StepKind,
    /// The columns it is repeated for: each row of one table with each of the others.
    pub each: Vec<Columns>,
    /// Numbers by name, in front of the experiment's.
    pub values: BTreeMap<String, Cell>,
    /// Whether it is part of the experiment.
    pub when: Option<String>,
    /// Why it is not run.
    pub left_out: Vec<Note>,
    /// Connections it needs at once: it is left out where there cannot be as many, or, if it shrinks,
    /// run with as many as there can be.
    pub connections: Option<String>,
    pub shrinks: bool,
    /// Whether later steps need what it saves: it is run if one of them is.
    pub calibrates: bool,
    /// Flags of the lab, and of another one, whose URL is `{other}`.
    pub server: String,
    pub other: Option<String>,
    /// The proxy between the load and the lab.
    pub proxy: Option<ProxyTemplate>,
    /// Connections that send a body a byte at a time meanwhile.
    pub slow_clients: Option<String>,
    /// The path of its requests on the lab; `/fast` without.
    pub path: Option<String>,
    /// The scenario of its spec, another one beside it, and the rest of the spec.
    pub load: Table,
    pub beside: Option<Table>,
    pub connection: Table,
    pub warmup: Option<String>,
    /// Whether the lab's own figures are not sampled: the sampler holds a connection.
    pub unwatched: bool,
    /// Whether the lab's process and its sockets are sampled.
    pub watches_process: bool,
    /// Whether it is part of the curve of throughput over users.
    pub in_curve: bool,
    /// Runs before it with other values, each on a server of its own.
    pub probe: Vec<Probe>,
    /// Why it is left out after the probes.
    pub lacking: Vec<Note>,
    /// The scenario whose figures are shown and compared.
    pub subject: Option<usize>,
    /// What is noted before the run, and after it.
    pub note: Vec<Note>,
    pub note_after: Vec<Note>,
    /// Why the experiment ends after it, or fails.
    pub stop: Vec<Note>,
    pub fail: Vec<Note>,
    /// Figures that later steps see.
    pub save: BTreeMap<String, String>,
    /// What theory expects.
    pub expect: Vec<Prediction>,
}

/// A run with other values, whose figures are only saved.
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
    /// The name of the sandbox's user; without one, nothing listens there.
    pub user: String,
    /// Flags of the proxy.
    pub flags: String,
    /// Whether production has a second instance, for noise.
    pub has_second: bool,
}

/// A text that stands where its condition holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub when: Option<String>,
    pub text: String,
}

/// What theory expects of a step.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prediction {
    /// Whether it is expected; always without.
    pub when: Option<String>,
    /// The figure's name, and the expression of its value without `seen`.
    pub what: String,
    /// What theory says, with its formula and number.
    pub theory: String,
    /// An expression, a colon, and a format: by default a count.
    pub seen: Option<String>,
    /// What is shown in place of the value.
    pub shown: Option<String>,
    /// The least, the most, or exactly what is expected.
    pub from: Option<Cell>,
    pub to: Option<Cell>,
    pub is: Option<Cell>,
    /// This cause is named, and no wrong one before it; `beside` are true as well.
    pub cause: Option<String>,
    pub beside: Vec<String>,
    /// One of these causes is named first.
    pub first_cause: Option<Vec<String>>,
    /// No cause is named.
    pub no_cause: bool,
    /// There is a row for each request that was ok.
    pub rows: bool,
    /// The comparison finds a difference in these fields, and perhaps a slower shadow.
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
