//! Suggests rules that ignore noise, as TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Rules for fields: endpoint, path, and the shape of an untested field.
pub(super) fn rules<'a>(
    noise: impl Iterator<Item = (&'a str, &'a str, Option<&'static str>)>,
) -> String {
    let mut by_endpoint: BTreeMap<&str, BTreeSet<(&str, Option<&str>)>> = BTreeMap::new();
    for (endpoint, path, why) in noise {
        by_endpoint.entry(endpoint).or_default().insert((path, why));
    }
    let mut out = String::new();
    for (endpoint, paths) in by_endpoint {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "[[ignore]]\nendpoint = {}\npaths = [", quoted(endpoint));
        for (path, why) in paths {
            let why = why.map_or_else(String::new, |why| format!(" # looks like {why}"));
            let _ = writeln!(out, "  {},{why}", quoted(path));
        }
        out.push_str("]\n\n");
    }
    out.truncate(out.trim_end().len());
    out
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
