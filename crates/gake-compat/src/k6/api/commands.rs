//! The commands that use the API of a run: `k6 status`, `stats`, `pause`, `resume`, `scale`.

use serde_json::{Map, Value, json};

use super::super::{CommandOutput, other_error};
use super::DEFAULT_ADDRESS;
use super::http::send_request;
use crate::flags::{Flag, Grammar, Parsed, switch, value};

const FLAGS: &[Flag] = &[
    value(&["address", "a"]),
    value(&["vus", "u"]),
    value(&["max", "m"]),
    switch(&["help", "h"]),
    switch(&["no-color"]),
    switch(&["quiet", "q"]),
    switch(&["verbose", "v"]),
];

/// Runs the command of this name.
pub(in super::super) fn main(command: &str, args: &[String]) -> CommandOutput {
    output(command, args).map_err(other_error)
}

fn output(command: &str, args: &[String]) -> Result<String, String> {
    let parsed = Parsed::read(Grammar::GetoptLong, FLAGS, args)?;
    if parsed.on("help")? {
        let own = if command == "scale" { "[--vus N] [--max N] " } else { "" };
        return Ok(format!("Usage: gake as k6 {command} {own}[--address HOST:PORT]\n"));
    }
    if let Some(word) = parsed.operands.first() {
        return Err(format!("k6 {command} takes no argument, and {word:?} is one"));
    }
    let address = parsed.last("address").unwrap_or(DEFAULT_ADDRESS);
    let data = match command {
        "status" => get(address, "/v1/status")?,
        "stats" => get(address, "/v1/metrics")?,
        "pause" => change(address, json!({ "paused": true }))?,
        "resume" => change(address, json!({ "paused": false }))?,
        _ => change(address, numbers(&parsed)?)?,
    };
    Ok(match data {
        Value::Array(list) => list.iter().map(metric).collect(),
        one => status(&one["attributes"]),
    })
}

/// The change that `scale` requests.
fn numbers(parsed: &Parsed) -> Result<Value, String> {
    let mut wish = Map::new();
    for (flag, attribute) in [("vus", "vus"), ("max", "vus-max")] {
        if let Some(text) = parsed.last(flag) {
            let number: u64 =
                text.parse().map_err(|_| format!("--{flag} {text}: write a whole number"))?;
            wish.insert(attribute.to_owned(), number.into());
        }
    }
    match wish.is_empty() {
        true => Err("specify either -u/--vus or -m/--max".to_owned()),
        false => Ok(wish.into()),
    }
}

fn get(address: &str, path: &str) -> Result<Value, String> {
    data(address, "GET", path, "")
}

fn change(address: &str, attributes: Value) -> Result<Value, String> {
    let wish = json!({ "data": { "type": "status", "id": "default", "attributes": attributes } });
    data(address, "PATCH", "/v1/status", &wish.to_string())
}

fn data(address: &str, method: &str, path: &str, body: &str) -> Result<Value, String> {
    let (status, body) = send_request(address, method, path, body).map_err(|error| {
        format!("no run answers at {address}: {error}; start one with --address {address}")
    })?;
    let answer: Value = serde_json::from_slice(&body)
        .map_err(|error| format!("{address} answers {status} without JSON: {error}"))?;
    match status {
        200..=299 => Ok(answer["data"].clone()),
        _ => {
            let why = answer.pointer("/errors/0/detail").and_then(Value::as_str);
            Err(why.map_or_else(|| format!("{address} answers {status}"), str::to_owned))
        }
    }
}

/// The status as k6 prints it: optional attributes are strings.
fn status(status: &Value) -> String {
    let line = |(name, is_text): &(&str, bool)| {
        let value = &status[*name];
        if *is_text { format!("{name}: \"{value}\"\n") } else { format!("{name}: {value}\n") }
    };
    let lines = [
        ("status", false),
        ("paused", true),
        ("vus", true),
        ("vus-max", true),
        ("stopped", false),
        ("running", false),
        ("tainted", false),
    ];
    lines.iter().map(line).collect()
}

/// A metric as k6 prints it.
fn metric(metric: &Value) -> String {
    let attributes = &metric["attributes"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tainted = attributes["tainted"].as_bool().map_or_else(String::new, |is| is.to_string());
    let mut lines = format!(
        "- name: {}\n  type:\n    type: {}\n    valid: true\n  contains:\n    type: {}\n    \
         valid: true\n  tainted: \"{tainted}\"\n  sample:\n",
        text(&metric["id"]),
        text(&attributes["type"]),
        text(&attributes["contains"]),
    );
    for (name, value) in attributes["sample"].as_object().into_iter().flatten() {
        lines += &format!("    {name}: {value}\n");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        output(&words[0], &words[1..]).unwrap_err()
    }

    #[test]
    fn bad_requests_are_reported() {
        assert!(fail("scale").contains("-u/--vus"), "{}", fail("scale"));
        assert!(fail("scale -u x").contains("--vus x"));
        assert!(fail("status now").contains("\"now\""));
        // Nothing listens on port 1.
        assert!(fail("status --address 127.0.0.1:1").contains("--address 127.0.0.1:1"));
    }

    #[test]
    fn figures_are_shown_by_line() {
        let one = json!({ "id": "checks", "attributes": {
            "type": "rate", "contains": "default", "tainted": false, "sample": { "rate": 1 },
        } });
        assert_eq!(
            metric(&one),
            "- name: checks\n  type:\n    type: rate\n    valid: true\n  contains:\n    \
             type: default\n    valid: true\n  tainted: \"false\"\n  sample:\n    rate: 1\n"
        );
        let one = json!({ "status": 7, "paused": false, "vus": 2 });
        assert!(status(&one).starts_with("status: 7\npaused: \"false\"\nvus: \"2\"\n"));
    }
}
