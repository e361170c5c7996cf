//! A bill of materials: the crates that the binary is made of, as CycloneDX 1.5 in JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use xtask::workspace;

use crate::contents::Contents;
use crate::{LICENSE, SUMMARY, VERSION, output};

/// Writes the bill of one target.
///
/// # Errors
/// When cargo cannot resolve the dependencies or the file cannot be written.
pub fn write(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let target = &contents.target.triple;
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let metadata: Value = serde_json::from_str(&output(&workspace::cargo(), &args)?)?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))?;
    let created = jiff::Timestamp::from_second(contents.epoch.into())?.to_string();
    let bill = bill(&metadata, &checksums(&lock), &created)?;
    let text = serde_json::to_string_pretty(&bill)? + "\n";
    crate::write(out, &format!("gake-{VERSION}-{target}.cdx.json"), text.as_bytes())
}

/// The sums of the crates in Cargo.lock, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.split("[[package]]").skip(1);
    let sums = packages.filter_map(|package| {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    });
    sums.collect()
}

/// Everything that `gake` is built from, with who depends on what.
fn bill(metadata: &Value, sums: &BTreeMap<(&str, &str), &str>, created: &str) -> Result<Value> {
    let by_id = |list: &'static str, of: &Value| -> Result<BTreeMap<String, Value>> {
        let list = of[list].as_array().context("cargo metadata lists no packages")?;
        Ok(list.iter().map(|one| (text(&one["id"]), one.clone())).collect())
    };
    let packages = by_id("packages", metadata)?;
    let nodes = by_id("nodes", &metadata["resolve"])?;
    let root = packages.iter().find(|(_, package)| package["name"] == "gake");
    let (root, _) = root.context("cargo metadata does not list gake")?;
    let mut uses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut open = vec![root.as_str()];
    while let Some(id) = open.pop() {
        if uses.contains_key(id) {
            continue;
        }
        let dependencies = nodes[id]["deps"].as_array().into_iter().flatten();
        let built = dependencies.filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| kind["kind"] != "dev")
        });
        let mut built: Vec<_> = built.filter_map(|one| one["pkg"].as_str()).collect();
        built.sort_unstable();
        uses.insert(id, built.iter().map(|id| reference(&packages[*id])).collect());
        open.extend(nodes.keys().map(String::as_str).filter(|id| built.contains(id)));
    }
    let others = uses.keys().filter(|id| *id != root);
    let components: Vec<_> = others.map(|id| component(&packages[*id], sums)).collect();
    let dependencies: Vec<_> = uses
        .iter()
        .map(|(id, uses)| json!({ "ref": reference(&packages[*id]), "dependsOn": uses }))
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": {
                "type": "application",
                "bom-ref": reference(&packages[root]),
                "name": "gake",
                "version": VERSION,
                "description": SUMMARY,
                "licenses": [{ "expression": LICENSE }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, sums: &BTreeMap<(&str, &str), &str>) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let reference = reference(package);
    let mut component = json!({
        "type": "library", "bom-ref": reference, "name": name, "version": version,
    });
    if !package["source"].is_null() {
        component["purl"] = reference.into();
    }
    if let Some(licence) = package["license"].as_str() {
        // Crates of before 2018 write a slash for `OR`.
        let expression = licence.replace(" / ", " OR ").replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(sum) = sums.get(&(name.as_str(), version.as_str())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// A package URL, <https://github.com/package-url/purl-spec>.
fn reference(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_has_what_is_built_and_nothing_of_the_tests() {
        let package = |name: &str, source: Value| {
            json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                    "source": source })
        };
        let uses =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("gake", Value::Null), package("a", "registry".into()),
                package("b", "registry".into()), package("tests", "registry".into()),
            ],
            "resolve": { "nodes": [
                { "id": "gake", "deps": [uses("a", Value::Null), uses("tests", "dev".into())] },
                { "id": "a", "deps": [uses("b", "build".into())] },
                { "id": "b", "deps": [] },
                { "id": "tests", "deps": [] },
            ]},
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let bill = bill(&metadata, &checksums(lock), "2026-01-01T00:00:00Z").unwrap();
        let components = bill["components"].as_array().unwrap();
        let names: Vec<_> = components.iter().map(|one| text(&one["purl"])).collect();
        assert_eq!(names, ["pkg:cargo/a@1.0.0", "pkg:cargo/b@1.0.0"]);
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(components[0]["hashes"][0]["content"], "abc");
        let edges = bill["dependencies"].as_array().unwrap();
        assert_eq!(edges.len(), 3);
        let gake = edges.iter().find(|one| one["ref"] == "pkg:cargo/gake@1.0.0").unwrap();
        assert_eq!(gake["dependsOn"], json!(["pkg:cargo/a@1.0.0"]));
    }
}
