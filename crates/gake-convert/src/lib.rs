//! Converts descriptions of requests to k6 scripts: HAR files, curl commands, Postman collections,
//! OpenAPI and Swagger descriptions, JMeter plans. What is lost is reported as a warning.

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

use script::{ScriptDraft, ScriptFunction, ScriptNode};

pub use curl::command_line;

/// What is kept of a recording.
#[derive(Debug, Clone, Copy)]
pub struct ConvertOptions {
    /// Whether to keep the pauses between requests.
    pub think: bool,
    /// Whether to leave out images, fonts and style sheets.
    pub skip_static: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self { think: true, skip_static: false }
    }
}

/// A script and its limitations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The text of the script.
    pub script: String,
    /// A sentence, with its count, per kind of loss.
    pub warnings: Vec<String>,
}

/// A text cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The format is unknown.
    #[error(
        "not a HAR, curl command, Postman collection, OpenAPI or Swagger description, or JMeter plan"
    )]
    Unknown,
    /// The format has no converter; the text recommends what to do.
    #[error("{0}")]
    Foreign(&'static str),
    /// It contains no HTTP request.
    #[error("there is no HTTP request in it")]
    Empty,
    /// A curl flag without an equivalent in a script.
    #[error("the flag {0} of curl cannot be converted")]
    Flag(String),
    /// A curl flag without its value, or an unclosed quote.
    #[error("the curl command is incomplete")]
    CutShort,
    /// Malformed XML.
    #[error("not well-formed XML: {0}")]
    Xml(String),
}

/// Converts a text in any supported format.
///
/// # Errors
/// When the format is unknown, or the text contains no request.
pub fn convert(text: &str, options: ConvertOptions) -> Result<Converted, ConvertError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut script = if text.split_whitespace().next() == Some("curl") {
        curl::script(text)?
    } else if text.starts_with('<') && text.contains("<jmeterTestPlan") {
        jmeter::script(text)?
    } else {
        structured(text, options)?
    };
    let requests =
        script.functions.iter().map(|function| request_count(&function.nodes)).sum::<usize>();
    if requests == 0 {
        return Err(ConvertError::Empty);
    }
    let warnings = &mut script.warnings;
    script.functions.iter_mut().for_each(|function| keep_valid(&mut function.nodes, warnings));
    warn_missing_variables(&mut script);
    Ok(Converted { script: writer::write(&script), warnings: script.warnings.sentences() })
}

/// What to do with a text that is no target of a run, but known: `a JMeter test plan: convert it
/// with gake convert`. `None` for anything else.
#[must_use]
pub fn how_to_run(text: &str) -> Option<String> {
    let has = |sign: &str| text.contains(sign);
    let convertible = if has("<jmeterTestPlan") {
        "a JMeter test plan"
    } else if has("schema.getpostman.com") || has("_postman_id") {
        "a Postman collection"
    } else if has("\"openapi\"")
        || has("\"swagger\"")
        || text.starts_with("openapi:")
        || text.starts_with("swagger:")
    {
        "an OpenAPI description"
    } else {
        return foreign::recognised(text).map(str::to_owned);
    };
    Some(format!(
        "{convertible}: convert it to a script with gake convert FILE --output FILE.js, and run that"
    ))
}

/// Converts JSON or YAML.
fn structured(text: &str, options: ConvertOptions) -> Result<ScriptDraft, ConvertError> {
    let unknown = || foreign::recognised(text).map_or(ConvertError::Unknown, ConvertError::Foreign);
    let value: Value = serde_json::from_str(text)
        .or_else(|_| serde_saphyr::from_str(text).map_err(|_| unknown()))?;
    // Exports by Postman's API have an envelope.
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

/// Warns about variables without a value.
fn warn_missing_variables(script: &mut ScriptDraft) {
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
        script.warnings.add("a variable has no value: set it with -e NAME=VALUE", name);
    }
}

fn keep_valid(nodes: &mut [ScriptNode], warnings: &mut warnings::Warnings) {
    let is_valid = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
    };
    for node in nodes {
        match node {
            ScriptNode::Request(request) => request.headers.retain(|(name, _)| {
                if !is_valid(name) {
                    warnings.add("a header whose name is not valid is left out", name);
                }
                is_valid(name)
            }),
            ScriptNode::Lines(_) => {}
            ScriptNode::Block(_, inner, _) => keep_valid(inner, warnings),
        }
    }
}

fn request_count(nodes: &[ScriptNode]) -> usize {
    let count = |node: &ScriptNode| match node {
        ScriptNode::Request(_) => 1,
        ScriptNode::Lines(_) => 0,
        ScriptNode::Block(_, inner, _) => request_count(inner),
    };
    nodes.iter().map(count).sum()
}

fn default_function(nodes: Vec<ScriptNode>) -> Vec<ScriptFunction> {
    vec![ScriptFunction { head: "default function ()".to_owned(), nodes }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tools_files_are_recognised_by_their_content() {
        for (text, sign) in [
            ("<?xml version=\"1.0\"?><jmeterTestPlan version=\"1.2\"/>", "JMeter"),
            ("openapi: 3.0.0\npaths: {}", "OpenAPI"),
            ("config:\n  phases:\n    - duration: 5\n", "Artillery"),
            ("from locust import HttpUser", "Locust"),
            ("import io.gatling.core.Predef._", "Gatling"),
            ("wrk.method = \"POST\"", "Lua"),
        ] {
            assert!(how_to_run(text).is_some_and(|how| how.contains(sign)), "{text}");
        }
        assert_eq!(how_to_run("GET http://localhost:8080/"), None);
    }
}
