//! The part of cargo-deny's settings that deny.toml uses.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;

/// What is demanded of the dependencies.
#[derive(Debug)]
pub struct Rules {
    /// Platforms that are built for; empty: all.
    pub targets: Vec<String>,
    /// Allowed licences.
    pub licences: BTreeSet<String>,
    /// Packages that may not be used, and why.
    pub banned: BTreeMap<String, String>,
    registries: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Graph {
    #[serde(default)]
    targets: Vec<String>,
    /// Always so here.
    #[serde(rename = "all-features")]
    _all_features: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Licenses {
    allow: Vec<String>,
    /// Of the licences' texts, which cargo-deny alone reads.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: Option<f64>,
    #[serde(rename = "private")]
    _private: Option<Private>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Private {
    #[serde(rename = "ignore")]
    _ignore: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Bans {
    /// A warning here, always.
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Option<String>,
    /// An error here, always; dependencies by path aside.
    #[serde(rename = "wildcards")]
    _wildcards: Option<String>,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: Option<bool>,
    #[serde(default)]
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Ban {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Sources {
    /// Errors here, always.
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Option<String>,
    #[serde(rename = "unknown-git")]
    _unknown_git: Option<String>,
    allow_registry: Vec<String>,
}

impl Rules {
    /// Reads the file's text; a setting that is not known is an error.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).context("it cannot be read")?;
        Ok(Self {
            targets: file.graph.targets,
            licences: file.licenses.allow.into_iter().collect(),
            banned: file.bans.deny.into_iter().map(|ban| (ban.package, ban.reason)).collect(),
            registries: file.sources.allow_registry,
        })
    }

    /// Whether packages may come from there.
    pub fn is_known_source(&self, source: &str) -> bool {
        let registry = source.strip_prefix("registry+");
        registry.is_some_and(|registry| self.registries.iter().any(|known| known == registry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_an_error() {
        let known = "[licenses]\nallow = []\n[bans]\n[sources]\nallow-registry = []\n";
        assert!(Rules::parse(known).is_ok());
        for more in ["[advisories]\n", "allow-git = []\n", "[bans]\nskip = []\n"] {
            assert!(Rules::parse(&format!("{known}{more}")).is_err(), "{more}");
        }
    }
}
