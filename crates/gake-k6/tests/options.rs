//! Options compared with k6 2.2: `data/options.json` has inputs and results.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::collections::BTreeMap;

use gake_k6::options::{K6Options, Tiers, from_environment, validate};
use serde_json::Value;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    /// The script's options.
    #[serde(default)]
    script: Value,
    /// The file of `--config`.
    #[serde(default)]
    file: Value,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Flags by the option they set.
    #[serde(default)]
    flags: BTreeMap<String, String>,
    k6: K6Result,
}

#[derive(serde::Deserialize)]
struct K6Result {
    exit: i32,
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    /// `exec.test.options` without defaults.
    options: Option<Value>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("data/options.json")).unwrap()
}

/// gake's options and warnings, or its error.
fn made(case: &Case) -> Result<(K6Options, Vec<String>), String> {
    let text = |error: gake_k6::options::OptionsError| error.to_string();
    let mut flags = K6Options::default();
    for (key, value) in &case.flags {
        flags.set_text(key, value).map_err(text)?;
    }
    let environment = from_environment(&case.env).map_err(text)?;
    let script = K6Options::read(&case.script).map_err(text)?;
    let file = K6Options::read(&case.file).map_err(text)?.options;
    let mut warnings: Vec<String> =
        script.unknown.iter().map(|key| format!("json: unknown field {key:?}")).collect();
    let tiers = Tiers { file, script: script.options, environment, flags, merges_tags: false };
    let consolidated = tiers.consolidate().map_err(text)?;
    warnings.extend(consolidated.warnings);
    validate(&consolidated.options, &|name| ["default", "other"].contains(&name)).map_err(text)?;
    Ok((consolidated.options, warnings))
}

/// Options that differ from the defaults.
fn unusual(options: &K6Options) -> Value {
    let shown = |options: &K6Options| match serde_json::to_value(options.shown_to_scripts()) {
        Ok(Value::Object(shown)) => shown,
        other => panic!("{other:?}"),
    };
    let usual = shown(&Tiers::default().consolidate().unwrap().options);
    let is_unusual = |(key, value): &(String, Value)| {
        *key == "scenarios" || (!value.is_null() && usual.get(key) != Some(value))
    };
    Value::Object(shown(options).into_iter().filter(is_unusual).collect())
}

#[test]
fn options_are_merged_as_by_k6() {
    let mut different = Vec::new();
    for case in cases() {
        let name = &case.name;
        match (made(&case), &case.k6.options) {
            (Ok((options, warnings)), Some(expected)) => {
                if unusual(&options) != *expected {
                    different.push(format!("{name}: {} for {expected}", unusual(&options)));
                }
                let same = warnings.len() == case.k6.warnings.len()
                    && warnings.iter().zip(&case.k6.warnings).all(|(a, b)| b.ends_with(a));
                if !same {
                    different.push(format!("{name}: {warnings:?} for {:?}", case.k6.warnings));
                }
            }
            (Err(_), None) => assert_eq!(case.k6.exit, 104, "{name}"),
            (made, expected) => different.push(format!("{name}: {made:?} for {expected:?}")),
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// The errors of Go's decoder are not compared, only k6's own.
#[test]
fn errors_are_in_k6s_words() {
    let mut compared = 0;
    for case in cases() {
        let (Err(error), Some(expected)) = (made(&case), &case.k6.error) else { continue };
        if expected.contains("Go struct field")
            || expected.contains("while parsing")
            || expected.starts_with("envconfig")
        {
            continue;
        }
        assert_eq!(error, *expected, "{}", case.name);
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

/// The order of keys is that of `JSON.stringify(exec.test.options)`.
#[test]
fn scripts_see_the_keys_in_the_order_of_k6() {
    let script = serde_json::json!({ "vus": 2, "iterations": 10 });
    let script = K6Options::read(&script).unwrap().options;
    let options = Tiers { script, ..Tiers::default() }.consolidate().unwrap().options;
    let shown = serde_json::to_string(&options.shown_to_scripts()).unwrap();
    assert_eq!(shown, include_str!("data/shown-options.json").trim());
}
