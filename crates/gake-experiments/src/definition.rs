//! The form of an experiment's file: `experiments/*.toml`.
//!
//! Texts in which `{...}` is filled are templates; numbers may be expressions ([`arithmetic`]). Both
//! see the columns of `each`, `values` and `texts`, what earlier steps saved, and after a run its
//! figures ([`figures`]).
//!
//! [`arithmetic`]: crate::arithmetic
//! [`figures`]: crate::figures

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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its name on the command line.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// Whether the same load makes sense on any server.
    #[serde(default)]
    pub takes_target: bool,
    /// Whether it runs on a real database too.
    #[serde(default)]
    pub takes_database: bool,
    /// Why agents cannot have its load, if they cannot.
    pub no_agents: Option<String>,
    /// Numbers by name.
    #[serde(default)]
    pub values: BTreeMap<String, Number>,
    /// Texts by name.
    #[serde(default)]
    pub texts: BTreeMap<String, Text>,
    /// The steps, in order.
    pub step: Vec<Step>,
}

/// A number, or an expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A constant.
    Constant(f64),
    /// An expression.
    Expression(String),
}

/// A template, or the first one whose condition holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// Always the same template.
    Template(String),
    /// Conditions and templates; a last template alone is for all other cases.
    Cases(Vec<Vec<String>>),
}

/// A value of a column.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// Columns of the same length.
pub type Columns = BTreeMap<String, Vec<Cell>>;

/// What is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// The built-in lab.
    #[default]
    Lab,
    /// The user's own server (`--target`).
    Target,
    /// The lab or the user's own server.
    Any,
    /// The lab on a real database (`--db`).
    Database,
}

/// What a step does beside running its load once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nothing.
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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is different in it, in a few words. A template.
    #[serde(default)]
    pub name: String,
    /// Its name for steps that are like it.
    pub id: Option<String>,
    /// The step whose keys it has where it does not set its own.
    pub like: Option<String>,
    /// What it loads.
    #[serde(default)]
    pub on: Subject,
    /// What it does.
    #[serde(default)]
    pub kind: Kind,
    /// The columns it is repeated for: each row of one with each of the others.
    #[serde(default)]
    pub each: Vec<Columns>,
    /// Numbers by name, in front of the experiment's.
    #[serde(default)]
    pub values: BTreeMap<String, Number>,
    /// Whether it is part of the experiment.
    pub when: Option<String>,
    /// Why it is not run, by condition.
    #[serde(default)]
    pub left_out: Vec<Note>,
    /// Connections it needs at once: it is left out where there cannot be as many.
    pub connections: Option<String>,
    /// Whether it is run with as many as there can be in place of being left out.
    #[serde(default)]
    pub shrinks: bool,
    /// Whether later steps need what it saves: it is run if one of them is.
    #[serde(default)]
    pub calibrates: bool,
    /// Flags of the lab.
    #[serde(default)]
    pub server: String,
    /// Flags of another lab, whose URL is `{other}`.
    pub other: Option<String>,
    /// The proxy between the load and the lab.
    pub proxy: Option<Proxy>,
    /// Connections that send a body a byte at a time meanwhile.
    pub slow_clients: Option<String>,
    /// The path of its requests on the lab.
    #[serde(default = "fast")]
    pub path: String,
    /// The load: a scenario of a spec.
    #[serde(default)]
    pub load: Table,
    /// A scenario beside it.
    pub beside: Option<Table>,
    /// The connection settings of the spec.
    #[serde(default)]
    pub connection: Table,
    /// The warm-up of the spec.
    #[serde(default = "none")]
    pub warmup: String,
    /// Whether the lab's own figures are not sampled: the sampler holds a connection.
    #[serde(default)]
    pub unwatched: bool,
    /// Whether the lab's process and its sockets are sampled.
    #[serde(default)]
    pub watches_process: bool,
    /// Whether it is part of the curve of throughput over users.
    #[serde(default)]
    pub in_curve: bool,
    /// Runs before it with other values, each on a server of its own, whose figures are saved.
    #[serde(default)]
    pub probe: Vec<Probe>,
    /// Why the step is left out after the probes, by condition.
    #[serde(default)]
    pub lacking: Vec<Note>,
    /// The scenario whose figures are shown and compared.
    pub subject: Option<usize>,
    /// What is noted before the run.
    #[serde(default)]
    pub note: Vec<Note>,
    /// What is noted after the run.
    #[serde(default)]
    pub note_after: Vec<Note>,
    /// When the experiment ends after it, and the note on it.
    #[serde(default)]
    pub stop: Vec<Note>,
    /// When the experiment fails after it, and why.
    #[serde(default)]
    pub fail: Vec<Note>,
    /// Figures that later steps see.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// What theory expects.
    #[serde(default)]
    pub expect: Vec<Expected>,
}

fn fast() -> String {
    "/fast".to_owned()
}

fn none() -> String {
    "0".to_owned()
}

/// A run whose figures are only saved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// What overrides values of the step.
    pub values: BTreeMap<String, f64>,
    /// What is saved.
    pub save: BTreeMap<String, String>,
}

/// The shadow proxy of a step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Flags of the sandbox.
    pub sandbox: String,
    /// The name of the sandbox's user; without one, nothing listens there.
    pub user: String,
    /// Flags of the proxy.
    #[serde(default)]
    pub flags: String,
    /// Whether production has a second instance, for noise.
    #[serde(default)]
    pub has_second: bool,
}

/// A text that stands where its condition holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The condition; always without.
    pub when: Option<String>,
    /// The template.
    pub text: String,
}

/// What theory expects of a figure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Whether it is expected; always without.
    pub when: Option<String>,
    /// The figure's name, and the expression of its value without `seen`.
    #[serde(default)]
    pub what: String,
    /// What theory says, with its formula and number.
    #[serde(default)]
    pub theory: String,
    /// An expression, a colon, and a format: by default a count.
    pub seen: Option<String>,
    /// A template that is shown in place of the value.
    pub shown: Option<String>,
    /// The least that is expected.
    pub from: Option<Number>,
    /// The most that is expected.
    pub to: Option<Number>,
    /// Exactly this is expected.
    pub is: Option<Number>,
    /// This cause is named, and no wrong one before it.
    pub cause: Option<String>,
    /// Causes that are true beside it.
    #[serde(default)]
    pub beside: Vec<String>,
    /// One of these causes is named first.
    pub first_cause: Option<Vec<String>>,
    /// No cause is named.
    #[serde(default)]
    pub no_cause: bool,
    /// There is a row for each request that was ok.
    #[serde(default)]
    pub rows: bool,
    /// The comparison finds a difference in these fields.
    pub found: Option<Vec<String>>,
    /// Whether the comparison finds the shadow slower.
    #[serde(default)]
    pub slower: bool,
}

impl Definition {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong in it.
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
