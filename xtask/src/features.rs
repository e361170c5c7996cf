//! Builds unlike ours: without Cargo's default features, with few dependencies, and from a registry,
//! whose QuickJS has no patch. They compile without warnings, and every crate can be packaged.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

/// A package, how many packages its build without default features may have (itself included),
/// and which it must not have.
struct PlainBuild {
    package: &'static str,
    packages_max: usize,
    without: &'static [&'static str],
}

const PLAIN_BUILDS: &[PlainBuild] = &[
    PlainBuild {
        package: "gake-run",
        packages_max: 120,
        without: &[
            "async-nats",
            "clap",
            "console",
            "crossterm",
            "indicatif",
            "libsqlite3-sys",
            "quinn",
            "ratatui",
            "rquickjs",
            "rusqlite",
        ],
    },
    PlainBuild {
        package: "gake",
        packages_max: 215,
        without: &["async-nats", "crossterm", "quinn", "ratatui", "rquickjs"],
    },
];

/// Checks each of them.
///
/// # Errors
/// When one has a warning, too many packages, or one that it must not have.
pub fn check() -> Result<()> {
    for build in PLAIN_BUILDS {
        let package = build.package;
        let args =
            ["tree", "-p", package, "--no-default-features", "-e", "normal", "--prefix", "none"];
        let packages = packages(&tree(&args)?);
        println!("{} packages, {} at most", packages.len(), build.packages_max);
        build.check(&packages)?;
    }
    // The library apart: with others cargo would unite their features. The published QuickJS comes
    // with the program, since each build with other features checks the dependencies again.
    for packages in [&["gake-run"][..], &["gake", "gake-script"]] {
        let packages = packages.iter().flat_map(|package| ["-p", package]);
        let lints = ["--no-default-features", "--", "-D", "warnings"];
        let args: Vec<_> = ["clippy"].into_iter().chain(packages).chain(lints).collect();
        command::run_with("cargo", &args, &[("GAKE_QUICKJS", "published")])?;
    }
    package()
}

/// Packs the published crates, without building from the packages: `cargo xtask dist --registry`
/// does that.
///
/// # Errors
/// When one cannot be packed.
pub fn package() -> Result<()> {
    let ours = ["gake-bench", "gake-packaging", "gake-testkit", "xtask"];
    let args = ["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"];
    let excluded = ours.iter().flat_map(|package| ["--exclude", package]);
    command::run("cargo", &args.into_iter().chain(excluded).collect::<Vec<_>>()).map(drop)
}

impl PlainBuild {
    fn check(&self, packages: &BTreeSet<String>) -> Result<()> {
        let Self { package, packages_max, without } = self;
        let is_among =
            |name: &&&str| packages.iter().any(|one| one.split(' ').next() == Some(name));
        let unwanted: Vec<_> = without.iter().filter(is_among).copied().collect();
        if !unwanted.is_empty() {
            bail!("{package} without default features needs {}", unwanted.join(", "));
        }
        if packages.len() > *packages_max {
            let count = packages.len();
            bail!(
                "{package} without default features has {count} packages; {packages_max} are allowed"
            );
        }
        Ok(())
    }
}

/// What cargo prints for `args`.
fn tree(args: &[&str]) -> Result<String> {
    println!("$ {}", command::shown("cargo", args, &[]));
    let output = Command::new(workspace::cargo())
        .args(args)
        .current_dir(workspace::root())
        .output()
        .context("`cargo tree` could not be started")?;
    if !output.status.success() {
        bail!("`cargo tree` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("`cargo tree` printed no UTF-8")
}

/// Names and versions of the packages in a tree; those shown before are marked in it.
fn packages(tree: &str) -> BTreeSet<String> {
    let named = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    tree.lines().filter(|line| !line.is_empty()).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_once() {
        let tree = "a v1.0.0 (/work/a)\nb v2.0.0\nc v1.0.0 (proc-macro)\nb v2.0.0 (*)\nb v1.0.0\n";
        let packages = packages(tree);
        assert_eq!(Vec::from_iter(&packages), ["a v1.0.0", "b v1.0.0", "b v2.0.0", "c v1.0.0"]);
        let build = |packages_max, without| PlainBuild { package: "a", packages_max, without };
        assert!(build(4, &["d"]).check(&packages).is_ok());
        let error = |build: PlainBuild| build.check(&packages).unwrap_err().to_string();
        assert_eq!(error(build(4, &["c", "d"])), "a without default features needs c");
        assert_eq!(
            error(build(3, &[])),
            "a without default features has 4 packages; 3 are allowed"
        );
    }
}
