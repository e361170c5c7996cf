//! Builds a file from web sources with Node.js, for build scripts; gake-script links to this file.
//!
//! The build runs in a copy within `OUT_DIR`, so that the source tree stays clean and target
//! folders do not share state. Without Node.js the crate is built without the file and reports that
//! when the file is needed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest Node.js that the build tools support.
const NODE: (u32, u32) = (20, 19);

/// A file built from web sources.
pub struct WebFile {
    /// Names it in warnings.
    pub what: &'static str,
    /// The folder of the sources, relative to the crate.
    pub folder: &'static str,
    /// The sources, relative to `folder`.
    pub sources: &'static [&'static str],
    /// Scripts that build it, with their arguments, relative to `folder`.
    pub tools: &'static [(&'static str, &'static [&'static str])],
    /// Its name in `dist/` of `folder`.
    pub built: &'static str,
    /// Its name in `OUT_DIR`.
    pub name: &'static str,
    /// The environment variable that names a folder with a prebuilt file.
    pub ready: &'static str,
}

/// Why the file could not be built.
enum Problem {
    /// The machine lacks a tool; the crate is built without the file.
    Missing(String),
    /// The sources do not build; the build fails.
    Failed(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl WebFile {
    /// Writes the file to `OUT_DIR`; an empty one means that there is none.
    pub fn embed(&self) {
        // A symbolic link to the folder at the root: a packaged crate contains it.
        let folder = variable("CARGO_MANIFEST_DIR").join(self.folder);
        let out = variable("OUT_DIR");
        println!("cargo:rerun-if-changed=build.rs");
        println!("cargo:rerun-if-changed=node.rs");
        println!("cargo:rerun-if-env-changed={}", self.ready);
        let built = match env::var_os(self.ready) {
            Some(ready) => self.ready_made(Path::new(&ready)),
            None => {
                for source in self.sources {
                    println!("cargo:rerun-if-changed={}", folder.join(source).display());
                }
                self.build(&folder, &out.join(self.folder))
            }
        };
        let bytes = match built {
            Ok(bytes) => bytes,
            Err(Problem::Missing(why)) => {
                // A path that never exists makes the next build retry.
                println!("cargo:rerun-if-changed={}", out.join("never").display());
                println!("cargo:warning=built without {}: {why}", self.what);
                Vec::new()
            }
            Err(Problem::Failed(why)) => panic!("{} ({}/): {why}", self.what, self.folder),
        };
        let path = out.join(self.name);
        if fs::read(&path).ok().as_ref() != Some(&bytes) {
            fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    fn ready_made(&self, folder: &Path) -> Result<Vec<u8>, Problem> {
        let path = folder.join(self.built);
        println!("cargo:rerun-if-changed={}", path.display());
        fs::read(&path).map_err(|error| {
            Problem::Failed(format!("{}: {}: {error}", self.ready, path.display()))
        })
    }

    /// Copies the sources to `workspace` and builds them there.
    fn build(&self, folder: &Path, workspace: &Path) -> Result<Vec<u8>, Problem> {
        self.check_node()?;
        fs::create_dir_all(workspace)?;
        // Deleted sources must not survive there.
        let _ = fs::remove_dir_all(workspace.join("src"));
        for source in self.sources {
            copy(&folder.join(source), &workspace.join(source))?;
        }
        install(workspace)?;
        for (script, args) in self.tools {
            run(workspace, script, args)?;
        }
        Ok(fs::read(workspace.join("dist").join(self.built))?)
    }

    fn check_node(&self) -> Result<(), Problem> {
        let (major, minor) = NODE;
        let advice = format!(
            "install Node.js {major}.{minor} or newer with npm, or name a folder with a ready-made \
             {} in {}",
            self.built, self.ready
        );
        let output = Command::new("node").arg("--version").output();
        let Ok(output) = output else {
            return Err(Problem::Missing(format!("there is no Node.js; {advice}")));
        };
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut numbers =
            text.trim_start_matches('v').split('.').map_while(|part| part.parse().ok());
        let version: Option<(u32, u32)> = numbers.next().zip(numbers.next());
        if version < Some(NODE) {
            return Err(Problem::Missing(format!("Node.js {text} is too old; {advice}")));
        }
        Ok(())
    }
}

/// A path from a variable that cargo sets.
fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}")).into()
}

/// Installs the packages of the lock file, unless they are installed.
fn install(workspace: &Path) -> Result<(), Problem> {
    let lock = fs::read(workspace.join("package-lock.json"))?;
    let stamp = workspace.join("installed.json");
    if fs::read(&stamp).ok().as_ref() == Some(&lock) {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    let flags = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
        "--loglevel=error",
    ];
    let mut npm = Command::new("npm");
    let output = npm.args(flags).current_dir(workspace).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(fs::write(stamp, lock)?),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last =
                text.lines().find(|line| line.contains("error")).unwrap_or("no reason given");
            Err(Problem::Missing(format!("npm ci failed: {last}")))
        }
        Err(error) => Err(Problem::Missing(format!("npm cannot be run: {error}"))),
    }
}

fn run(workspace: &Path, script: &str, args: &[&str]) -> Result<(), Problem> {
    let output = Command::new("node")
        .arg(script)
        .args(args)
        .current_dir(workspace)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    Err(Problem::Failed(format!("{script} {}\n{}", args.join(" "), texts.join(""))))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
