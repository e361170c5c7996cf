//! Rules that would leave out what is noise, ready to paste.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::judge::{Difference, FieldVerdict};

/// TOML rules for what is noise, and, where nothing could be tested, for what looks like it.
pub(super) fn rules(differences: &[Difference]) -> String {
    let mut by_endpoint: BTreeMap<&str, BTreeSet<(&str, Option<&str>)>> = BTreeMap::new();
    for difference in differences {
        let why = match difference.verdict {
            FieldVerdict::Noise => None,
            FieldVerdict::Untested if difference.looks_like.is_some() => difference.looks_like,
            _ => continue,
        };
        by_endpoint.entry(&difference.endpoint).or_default().insert((&difference.path, why));
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
