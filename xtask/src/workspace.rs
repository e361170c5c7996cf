//! Where things are: the repository's root and cargo's target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The repository's root, wherever the task was called from.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        // As `cargo run` says it now: checkouts that share a target directory share
        // this binary, and the one it was built in may be another.
        let now = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest = now.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        manifest.parent().unwrap_or(&manifest).to_owned()
    })
}

/// The cargo that runs us, so that a `+toolchain` is kept.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// What `cargo metadata` says about our own packages.
pub fn metadata() -> Result<Value> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .context("cargo metadata could not be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

/// Cargo's target directory, which CARGO_TARGET_DIR or a config file may have moved.
pub fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    let dir = metadata["target_directory"].as_str();
    dir.map(PathBuf::from).context("cargo metadata names no target_directory")
}
