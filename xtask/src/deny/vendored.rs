//! Packages under `vendor/`: each is what was published, but for its patch.
//!
//! The patch, `gake.patch` beside the manifest, is a unified diff from what was published. It is
//! checked where cargo has unpacked the published package; since a vendored one is not downloaded,
//! that is a machine that built something else with it, or `cargo fetch` in another folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The patch of a package.
const PATCH: &str = "gake.patch";

/// Files that the published package does not have.
const OURS: [&str; 4] = [PATCH, "README.md", "LICENSE", "target"];

/// Where cargo has unpacked a published package, if it has.
pub fn published(name: &str, version: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let packages = registries.flatten().map(|registry| registry.path());
    packages.map(|path| path.join(format!("{name}-{version}"))).find(|path| path.is_dir())
}

/// How a vendored package differs from the published one beyond its patch, a sentence each.
pub fn check(vendored: &Path, published: &Path) -> Result<Vec<String>> {
    let patch = vendored.join(PATCH);
    let patch = fs::read_to_string(&patch).with_context(|| patch.display().to_string())?;
    let mut hunks = hunks(&patch).context(PATCH)?;
    let mut files = Vec::new();
    collect(vendored, Path::new(""), &mut files)?;
    let mut complaints = Vec::new();
    for file in files {
        let ours = fs::read_to_string(vendored.join(&file))?;
        let ours = match hunks.remove(&*file.to_string_lossy()) {
            Some(hunks) => undone(&ours, &hunks),
            None => Some(ours),
        };
        let theirs = fs::read_to_string(published.join(&file)).ok();
        if ours.is_none() || ours != theirs {
            complaints.push(format!("{} is not what was published and {PATCH}", file.display()));
        }
    }
    complaints.extend(hunks.into_keys().map(|file| format!("{PATCH} names {file}, which is gone")));
    Ok(complaints)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if folder == Path::new("") && OURS.iter().any(|ours| path == Path::new(ours)) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// A part of a diff: where it begins in the new file, from 1, and its lines with their marks.
#[derive(Debug, PartialEq)]
struct Hunk<'a> {
    start: usize,
    lines: Vec<&'a str>,
}

/// The parts of a unified diff, by file.
fn hunks(patch: &str) -> Result<BTreeMap<&str, Vec<Hunk<'_>>>> {
    let mut all: BTreeMap<&str, Vec<Hunk<'_>>> = BTreeMap::new();
    let mut file = None;
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = Some(name);
        } else if line.starts_with("--- ") || line.starts_with("diff ") {
            file = None;
        } else if let Some(range) = line.strip_prefix("@@ ") {
            let new = range.split_whitespace().find_map(|part| part.strip_prefix('+'));
            let start = new.and_then(|new| new.split(',').next()?.parse().ok());
            let start = start.with_context(|| format!("no line number in {line:?}"))?;
            let file = file.with_context(|| format!("no file before {line:?}"))?;
            all.entry(file).or_default().push(Hunk { start, lines: Vec::new() });
        } else if let Some(hunk) = file.and_then(|file| all.get_mut(file)?.last_mut()) {
            hunk.lines.push(line);
        }
    }
    Ok(all)
}

/// The text as it was before the patch; `None` where the patch does not fit.
fn undone(text: &str, hunks: &[Hunk<'_>]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut before = String::with_capacity(text.len());
    let mut next = 0;
    for hunk in hunks {
        let start = hunk.start.checked_sub(1)?;
        before.extend(lines.get(next..start)?.iter().copied());
        next = start;
        for line in &hunk.lines {
            let (mark, line) = line.split_at_checked(1)?;
            if matches!(mark, " " | "+") {
                if lines.get(next)?.trim_end_matches('\n') != line {
                    return None;
                }
                next += 1;
            }
            if matches!(mark, " " | "-") {
                before.push_str(line);
                before.push('\n');
            }
        }
    }
    before.extend(lines.get(next..)?.iter().copied());
    Some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    const DIFF: &str = "\
--- a/x.c
+++ b/x.c
@@ -1,3 +1,3 @@
 one
-two
+2
 three
@@ -5,2 +5,3 @@ five
 five
+more
 six
";

    #[test]
    fn a_patch_is_undone() {
        let hunks = &hunks(DIFF).unwrap()["x.c"];
        let patched = "one\n2\nthree\nfour\nfive\nmore\nsix\nseven\n";
        let published = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
        assert_eq!(undone(patched, hunks).as_deref(), Some(published));
        assert_eq!(undone(published, hunks), None);
        assert_eq!(undone("one\n2\n", hunks), None);
    }

    #[test]
    fn every_difference_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        let write = |folder: &Path, name: &str, text: &str| {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), text).unwrap();
        };
        write(&ours, PATCH, DIFF);
        write(&ours, "README.md", "ours");
        write(&ours, "x.c", "one\n2\nthree\nfour\nfive\nmore\nsix\n");
        write(&theirs, "x.c", "one\ntwo\nthree\nfour\nfive\nsix\n");
        write(&theirs, "left-out.c", "");
        assert_eq!(check(&ours, &theirs).unwrap(), Vec::<String>::new());
        write(&ours, "src/y.c", "changed");
        write(&theirs, "src/y.c", "published");
        write(&ours, "new.c", "new");
        let mut found = check(&ours, &theirs).unwrap();
        found.sort();
        let end = "is not what was published and gake.patch";
        assert_eq!(found, [format!("new.c {end}"), format!("src/y.c {end}")]);
        fs::remove_file(ours.join("x.c")).unwrap();
        assert!(check(&ours, &theirs).unwrap().concat().contains("names x.c, which is gone"));
    }

    #[test]
    fn the_patch_of_quickjs_fits() {
        let vendored = workspace::root().join("vendor/rquickjs-sys");
        let patch = fs::read_to_string(vendored.join(PATCH)).unwrap();
        let hunks = hunks(&patch).unwrap();
        assert!(!hunks.is_empty());
        for (file, hunks) in hunks {
            let text = fs::read_to_string(vendored.join(file)).unwrap();
            assert!(undone(&text, &hunks).is_some(), "{file}");
        }
    }
}
