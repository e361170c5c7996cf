//! k6 scripts from what describes requests: a HAR, a curl command, a Postman collection, an
//! OpenAPI or Swagger description, a JMeter plan. What cannot be kept is a warning.

#![forbid(unsafe_code)]

mod curl;
mod foreign;
mod har;
mod jmeter;
mod openapi;
mod postman;
mod script;
mod template;
mod warnings;
mod writer;

use serde_json::Value;

use script::{Function, Node, ScriptDraft};

pub use curl::command_line;

/// What is left out or kept of a recording.
#[derive(Debug, Clone, Copy)]
pub struct ConvertOptions {
    /// Whether the pauses between the requests of a recording are kept.
    pub think: bool,
    /// Whether images, fonts and style sheets are left out.
    pub skip_static: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self { think: true, skip_static: false }
    }
}

/// A script, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The script.
    pub script: String,
    /// A sentence for each kind of thing that could not be kept, with its count.
    pub warnings: Vec<String>,
}

/// Why nothing can be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The format is unknown.
    #[error(
        "not a HAR, curl command, Postman collection, OpenAPI or Swagger description, or JMeter plan"
    )]
    Unknown,
    /// A format that has no converter, and what to do.
    #[error("{0}")]
    Foreign(&'static str),
    /// It has no request that a script could send.
    #[error("there is no HTTP request in it")]
    Empty,
    /// A curl flag that a script cannot honour.
    #[error("the flag {0} of curl cannot be converted")]
    Flag(String),
    /// A curl flag lacks its value, or a quote is not closed.
    #[error("the curl command ends too early")]
    CutShort,
    /// XML with an error in it.
    #[error("not well-formed XML: {0}")]
    Xml(String),
}

/// The script of a text in any supported format.
///
/// # Errors
/// When the format is unknown, or there is no request.
pub fn convert(text: &str, options: ConvertOptions) -> Result<Converted, ConvertError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut script = if text.split_whitespace().next() == Some("curl") {
        curl::script(text)?
    } else if text.starts_with('<') && text.contains("<jmeterTestPlan") {
        jmeter::script(text)?
    } else {
        described(text, options)?
    };
    let requests = script.functions.iter().map(|function| requests(&function.nodes)).sum::<usize>();
    if requests == 0 {
        return Err(ConvertError::Empty);
    }
    let warnings = &mut script.warnings;
    script.functions.iter_mut().for_each(|function| keep_valid(&mut function.nodes, warnings));
    missing(&mut script);
    Ok(Converted { script: writer::write(&script), warnings: script.warnings.sentences() })
}

/// The script of JSON or YAML.
fn described(text: &str, options: ConvertOptions) -> Result<ScriptDraft, ConvertError> {
    let unknown = || foreign::recognised(text).map_or(ConvertError::Unknown, ConvertError::Foreign);
    let value: Value = serde_json::from_str(text)
        .or_else(|_| serde_saphyr::from_str(text).map_err(|_| unknown()))?;
    // Exports by the API of Postman are in an envelope.
    let collection = value.get("collection").unwrap_or(&value);
    if value.pointer("/log/entries").is_some() {
        Ok(har::script(&value, options))
    } else if collection.get("info").is_some() && collection.get("item").is_some() {
        Ok(postman::script(collection))
    } else if value.get("openapi").is_some() || value.get("swagger").is_some() {
        Ok(openapi::script(&value, text))
    } else {
        Err(unknown())
    }
}

/// Names the variables without a value.
fn missing(script: &mut ScriptDraft) {
    let main = writer::write(script);
    let mut names: Vec<&str> = main
        .split("value(\"")
        .skip(1)
        .filter_map(|rest| rest.split_once("\")").map(|(name, _)| name))
        .filter(|name| !main.contains(&format!("vars.{name} = ")))
        .filter(|name| {
            !script.variables.iter().any(|known| template::variable_name(&known.0) == *name)
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        script.warnings.add("a variable has no value: give it with -e NAME=VALUE", name);
    }
}

/// Leaves out headers whose names no client sends.
fn keep_valid(nodes: &mut [Node], warnings: &mut warnings::Warnings) {
    let is_valid = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
    };
    for node in nodes {
        match node {
            Node::Request(request) => request.headers.retain(|(name, _)| {
                if !is_valid(name) {
                    warnings.add("a header whose name is not valid is left out", name);
                }
                is_valid(name)
            }),
            Node::Lines(_) => {}
            Node::Block(_, inner, _) => keep_valid(inner, warnings),
        }
    }
}

fn requests(nodes: &[Node]) -> usize {
    let count = |node: &Node| match node {
        Node::Request(_) => 1,
        Node::Lines(_) => 0,
        Node::Block(_, inner, _) => requests(inner),
    };
    nodes.iter().map(count).sum()
}

/// The function that every iteration runs.
fn default_function(nodes: Vec<Node>) -> Vec<Function> {
    vec![Function { head: "default function ()".to_owned(), nodes }]
}
