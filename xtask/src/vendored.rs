//! Packages under `vendor/`: each is what was published, but for its patch.
//!
//! The patch, `gake.patch` beside the manifest, is a unified diff from what was published. That it
//! fits is always checked; the rest where cargo has unpacked the published package, which is a
//! machine that built something else with it, or `cargo fetch` in another folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The patch of a package.
const PATCH: &str = "gake.patch";

/// Files that the published package does not have.
const OURS: [&str; 5] = [PATCH, FIXES, "README.md", "LICENSE", "target"];

/// Fixes of upstream that a package must contain, each with text that shows it.
const FIXES: &str = "upstream-fixes.txt";

/// Checks each of them.
///
/// # Errors
/// When a patch does not fit, something else was changed, or a fix of upstream is missing.
pub fn check() -> Result<()> {
    for entry in fs::read_dir(workspace::root().join("vendor"))? {
        let package = entry?.path();
        let manifest = fs::read_to_string(package.join("Cargo.toml"))?;
        let manifest: toml::Table = manifest.parse()?;
        let text = |name: &str| manifest["package"][name].as_str().unwrap_or_default().to_owned();
        let unpacked = published(&format!("{}-{}", text("name"), text("version")));
        check_package(&package, unpacked.as_deref())?;
        let missing = missing_fixes(&package)?;
        if !missing.is_empty() {
            let shown = package.display();
            bail!("{shown} lacks fixes of upstream ({FIXES}):\n{}", missing.join("\n"));
        }
    }
    Ok(())
}

/// The listed fixes of upstream whose text is not in the sources of a package.
fn missing_fixes(package: &Path) -> Result<Vec<String>> {
    let list = fs::read_to_string(package.join(FIXES))?;
    let mut missing = Vec::new();
    let mut lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(fix) = lines.next() {
        let file = fix.split(' ').nth(2);
        let (file, proof) = file.zip(lines.next()).with_context(|| format!("{FIXES}: {fix}"))?;
        let text = String::from_utf8_lossy(&fs::read(package.join("quickjs").join(file))?)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if !text.contains(proof.trim()) {
            missing.push(fix.to_owned());
        }
    }
    Ok(missing)
}

/// Where cargo has unpacked a published package, if it has.
fn published(package: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let packages = registries.flatten().map(|registry| registry.path().join(package));
    packages.into_iter().find(|path| path.is_dir())
}

/// Undoes the patch in a copy, and compares that.
fn check_package(vendored: &Path, published: Option<&Path>) -> Result<()> {
    let room = tempfile::tempdir()?;
    let copy = room.path().join("copy");
    output(Command::new("cp").arg("-r").arg(vendored).arg(&copy))?;
    output(Command::new("git").args(["apply", "--reverse", PATCH]).current_dir(&copy))
        .with_context(|| format!("{} does not fit", vendored.join(PATCH).display()))?;
    let Some(published) = published else { return Ok(()) };
    let excluded = OURS.map(|name| format!("--exclude={name}"));
    let mut diff = Command::new("diff");
    let found = diff.args(["-rq"]).args(excluded).args([&copy, published]).output()?;
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    // What was published may be left out.
    let left_out = format!("Only in {}", published.display());
    let changed: Vec<_> = found.lines().filter(|line| !line.starts_with(&left_out)).collect();
    if !changed.is_empty() {
        let shown = vendored.display();
        bail!("{shown} is not what was published and {PATCH}:\n{}", changed.join("\n"));
    }
    Ok(())
}

fn output(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

    #[test]
    fn every_difference_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
        let write = |folder: &Path, name: &str, text: &str| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(name), text).unwrap();
        };
        let error = || check_package(&ours, Some(&theirs)).unwrap_err().to_string();
        write(&ours, PATCH, DIFF);
        write(&ours, "README.md", "ours");
        write(&ours, "x.c", "one\n2\nthree\n");
        write(&theirs, "x.c", "one\ntwo\nthree\n");
        write(&theirs, "left-out.c", "");
        check_package(&ours, Some(&theirs)).unwrap();
        write(&ours, "new.c", "new");
        assert!(error().contains("new.c"));
        fs::remove_file(ours.join("new.c")).unwrap();
        write(&theirs, "x.c", "one\ntwo\nthree\nfour\n");
        assert!(error().contains("x.c"));
        write(&ours, "x.c", "one\n3\nthree\n");
        assert!(error().contains("does not fit"));
    }

    #[test]
    fn the_patch_of_quickjs_fits() {
        check_package(&workspace::root().join("vendor/rquickjs-sys"), None).unwrap();
    }

    #[test]
    fn quickjs_has_the_fixes_of_upstream() {
        let package = workspace::root().join("vendor/rquickjs-sys");
        assert_eq!(missing_fixes(&package).unwrap(), Vec::<String>::new());
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("quickjs")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("quickjs/x.c", "if (len\n    > MAX)\n");
        write(FIXES, "# fixes\n\nab1 2026-01-02 x.c One\n    if (len > MAX)\n");
        assert!(missing_fixes(folder.path()).unwrap().is_empty());
        write(FIXES, "cd2 2026-01-03 x.c Other\n    if (len > MIN)\n");
        assert_eq!(missing_fixes(folder.path()).unwrap(), ["cd2 2026-01-03 x.c Other"]);
        write(FIXES, "cd2 x.c\n");
        assert!(missing_fixes(folder.path()).is_err());
    }
}
