//! npm packages: `npx gake`. A package per processor carries the binary, the main one starts it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::contents::Contents;
use crate::tarball::{Entry, gzip, tar};
use crate::target::{MACHINES, Machine};
use crate::{LICENSE, SUMMARY, VERSION};

/// Starts the binary of the package that npm has chosen.
const LAUNCHER: &str = include_str!("../npm/gake.js");

/// Writes the package with the binary, which npm installs only where it runs.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write_platform(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let machine = contents.target.machine;
    let name = platform(machine);
    let mut manifest = json!({
        "name": name,
        "version": VERSION,
        "description": format!("The binary of gake for Linux on {}", machine.node),
        "license": LICENSE,
        "os": ["linux"],
        "cpu": [machine.node],
        "preferUnplugged": true,
    });
    if !contents.target.is_static {
        manifest["libc"] = json!(["glibc"]);
    }
    let files = [
        Entry::file("package/LICENSE", contents.read("LICENSE")?),
        Entry::program("package/gake", contents.read("gake")?),
        Entry::file("package/package.json", pretty(&manifest)?),
    ];
    pack(contents, &files, &format!("{name}-{VERSION}.tgz"), out)
}

/// Writes the package that users name.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write_main(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let platforms: Map<String, Value> =
        MACHINES.iter().map(|machine| (platform(machine), VERSION.into())).collect();
    let manifest = json!({
        "name": "gake",
        "version": VERSION,
        "description": SUMMARY,
        "license": LICENSE,
        "bin": { "gake": "gake.js" },
        "engines": { "node": ">=16" },
        "optionalDependencies": platforms,
    });
    let files = [
        Entry::file("package/LICENSE", contents.read("LICENSE")?),
        Entry::program("package/gake.js", LAUNCHER),
        Entry::file("package/package.json", pretty(&manifest)?),
    ];
    pack(contents, &files, &format!("gake-{VERSION}.tgz"), out)
}

/// The name of a processor's package.
fn platform(machine: &Machine) -> String {
    format!("gake-linux-{}", machine.node)
}

fn pretty(manifest: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(manifest)? + "\n")
}

fn pack(contents: &Contents, files: &[Entry], name: &str, out: &Path) -> Result<PathBuf> {
    crate::write(out, name, &gzip(&tar(files, contents.epoch)?, contents.compression)?)
}
