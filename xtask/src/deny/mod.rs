//! `cargo xtask deny`: the dependencies against deny.toml: licences, bans, sources.
//!
//! What is under `vendor/` must be what was published, but for its patch.
//!
//! The file is cargo-deny's, and `cargo deny check licenses bans sources` reads it too; it looks at
//! the licences' texts as well. Building it takes longer than this project's own build, so a test
//! run checks what `cargo metadata` says. A setting that is not understood here is an error, so the
//! file promises nothing that nobody checks. Advisories need a database from a network and are left
//! to `cargo deny check advisories`.

mod licence;
mod rules;
mod vendored;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;
use rules::Rules;

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("usage: cargo xtask deny");
    }
    let path = workspace::root().join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let rules = Rules::parse(&text).context("deny.toml")?;
    let metadata = metadata(&rules.targets)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let complaints = check(&rules, packages)?;
    for complaint in &complaints {
        println!("error: {complaint}");
    }
    let doubled = doubled(packages);
    for (name, versions) in &doubled {
        println!(
            "warning: {name} is there in {} versions: {}",
            versions.len(),
            versions.join(", ")
        );
    }
    let (errors, warnings) = (complaints.len(), doubled.len());
    println!("deny: {} packages, {errors} errors, {warnings} warnings", packages.len());
    if errors > 0 {
        bail!("deny found {errors} errors");
    }
    Ok(())
}

/// What `cargo metadata` says about everything that is built, with all features.
fn metadata(targets: &[String]) -> Result<Value> {
    let platforms = targets.iter().flat_map(|target| ["--filter-platform", target]);
    let output = Command::new(workspace::cargo())
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .args(platforms)
        .current_dir(workspace::root())
        .output()
        .context("cargo metadata could not be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

/// What is wrong, a sentence each.
fn check(rules: &Rules, packages: &[Value]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        let version = package["version"].as_str().unwrap_or_default();
        let about = |what: String| format!("{name} {version}: {what}");
        if let Some(reason) = rules.banned.get(name) {
            complaints.push(about(format!("is banned: {reason}")));
        }
        let wild = package["dependencies"].as_array().into_iter().flatten();
        let wild = wild.filter(|dependency| {
            dependency["req"] == "*" && dependency["path"].is_null() && package["source"].is_null()
        });
        complaints.extend(wild.map(|to| {
            about(format!("takes any version of {}", to["name"].as_str().unwrap_or("?")))
        }));
        let Some(source) = package["source"].as_str() else {
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            if manifest.starts_with(workspace::root().join("vendor")) {
                complaints.extend(licence(rules, package).map(about));
                if let (Some(folder), Some(published)) =
                    (manifest.parent(), vendored::published(name, version))
                {
                    let found = vendored::check(folder, &published)?;
                    complaints.extend(found.into_iter().map(about));
                }
            } else if !manifest.starts_with(workspace::root()) {
                complaints.push(about("comes from a folder outside the workspace".to_owned()));
            }
            continue;
        };
        if !rules.is_known_source(source) {
            complaints.push(about(format!("comes from {source}")));
        }
        complaints.extend(licence(rules, package).map(about));
    }
    Ok(complaints)
}

/// What is wrong with a package's licence.
fn licence(rules: &Rules, package: &Value) -> Option<String> {
    let Some(licence) = package["license"].as_str() else {
        return Some("names no licence".to_owned());
    };
    match licence::is_allowed(licence, &rules.licences) {
        Ok(true) => None,
        Ok(false) => Some(format!("its licence is not allowed: {licence}")),
        Err(error) => Some(format!("its licence {licence:?}: {error}")),
    }
}

/// Packages that are there in several versions.
fn doubled(packages: &[Value]) -> BTreeMap<&str, Vec<&str>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        if let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str())
        {
            versions.entry(name).or_default().push(version);
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

    fn complaints(package: Value) -> Vec<String> {
        let rules = Rules::parse(
            r#"
            [licenses]
            allow = ["MIT"]
            [bans]
            deny = [{ crate = "bad", reason = "it is bad" }]
            [sources]
            allow-registry = ["https://github.com/rust-lang/crates.io-index"]
            "#,
        );
        check(&rules.unwrap(), &[package]).unwrap()
    }

    #[test]
    fn each_rule_is_checked() {
        let good =
            json!({"name": "a", "version": "1", "source": INDEX, "license": "MIT OR GPL-3.0"});
        assert_eq!(complaints(good.clone()), Vec::<String>::new());
        let with = |key: &str, value: Value| {
            let mut package = good.clone();
            package[key] = value;
            complaints(package).concat()
        };
        assert_eq!(with("name", json!("bad")), "bad 1: is banned: it is bad");
        assert_eq!(with("license", Value::Null), "a 1: names no licence");
        assert_eq!(with("license", json!("GPL-3.0")), "a 1: its licence is not allowed: GPL-3.0");
        assert!(with("license", json!("MIT OR")).contains("its licence"));
        for source in ["git+https://x/y", "registry+https://evil.test/index", "sparse+https://x/"] {
            assert_eq!(with("source", json!(source)), format!("a 1: comes from {source}"));
        }
        assert_eq!(with("source", Value::Null), "a 1: comes from a folder outside the workspace");
        let manifest = workspace::root().join("o/Cargo.toml");
        let ours = json!({"name": "o", "version": "1", "source": null, "manifest_path": manifest,
            "dependencies": [{"name": "x", "req": "*"}, {"name": "y", "req": "*", "path": "/y"}]});
        assert_eq!(complaints(ours), ["o 1: takes any version of x"]);
    }

    #[test]
    fn several_versions_are_told() {
        let package = |version: &str| json!({"name": "a", "version": version});
        let packages = [package("1"), package("2"), json!({"name": "b", "version": "1"})];
        assert_eq!(doubled(&packages), BTreeMap::from([("a", vec!["1", "2"])]));
    }
}
