//! Files in the tree that Node.js makes of web sources, so that no build needs Node.js: the HTML
//! page, and the program that strips types from TypeScript.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

/// A file made of a folder of web sources.
struct Bundle {
    folder: &'static str,
    /// Scripts that make it, with their arguments, relative to the folder.
    scripts: &'static [&'static [&'static str]],
    /// What they make, relative to the folder.
    made: &'static str,
    /// Its copy in the tree.
    kept: &'static str,
}

const BUNDLES: &[Bundle] = &[
    Bundle {
        folder: "ui",
        scripts: &[
            &["node_modules/typescript/bin/tsc", "--noEmit"],
            &["node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"],
        ],
        made: "dist/index.html",
        kept: "crates/gake-report/src/html/page.html",
    },
    Bundle {
        folder: "typescript",
        scripts: &[&["bundle.js"]],
        made: "dist/typescript.js",
        kept: "crates/gake-script/src/typescript.js",
    },
];

/// Makes the files; with `--check`, compares them with those in the tree instead.
///
/// # Errors
/// When Node.js is missing, a source does not compile, or with `--check` a file is out of date.
pub fn main(args: &[String]) -> Result<()> {
    let checks = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("usage: cargo xtask ui [--check]"),
    };
    for bundle in BUNDLES {
        let made = bundle.make()?;
        let kept = workspace::root().join(bundle.kept);
        if !checks {
            fs::write(&kept, made).with_context(|| bundle.kept.to_owned())?;
        } else if fs::read(&kept).ok() != Some(made) {
            bail!("{} is older than {}/: run `cargo xtask ui`", bundle.kept, bundle.folder);
        }
    }
    Ok(())
}

impl Bundle {
    /// Makes the file in the target folder, so that the tree stays clean.
    fn make(&self) -> Result<Vec<u8>> {
        let folder = workspace::target_dir()?.join("ui").join(self.folder);
        // Of deleted sources nothing may be left; the packages stay.
        let _ = fs::remove_dir_all(folder.join("src"));
        copy(&workspace::root().join(self.folder), &folder)?;
        println!("$ cd {} && npm ci", folder.display());
        let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        command::run_in(&folder, "npm", &install, &[])
            .context("is Node.js 20.19 or newer installed, with npm?")?;
        for script in self.scripts {
            println!("$ node {}", script.join(" "));
            command::run_in(&folder, "node", script, &[])?;
        }
        let made = folder.join(self.made);
        fs::read(&made).with_context(|| made.display().to_string())
    }
}

/// Copies a folder, without packages and files made before.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        if name == "node_modules" || name == "dist" {
            continue;
        }
        let to = to.join(name);
        if path.is_dir() { copy(&path, &to)? } else { fs::copy(&path, &to).map(drop)? }
    }
    Ok(())
}
