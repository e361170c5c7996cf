//! Builds the HTML page from `ui/`, so that the binary carries it.
//!
//! Everything happens in a copy within `OUT_DIR`: the tree stays clean, and target folders do not
//! meet. Where Node is missing the library is built without the page and says so when asked for it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the page is made from, within `ui/`.
const SOURCES: [&str; 6] =
    ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "index.html", "src"];

/// The variable that names a folder with a ready-made `index.html`.
const DIST: &str = "GAKE_UI_DIST";

/// The oldest Node that the tools run on.
const NODE: (u32, u32) = (20, 19);

/// Why there is no page.
enum Problem {
    /// The machine has not what it takes; it is built without.
    Missing(String),
    /// The sources are wrong; the build fails.
    Broken(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

fn main() {
    // A link to the folder at the root, so that a packaged crate has it too.
    let ui = variable("CARGO_MANIFEST_DIR").join("ui");
    let out = variable("OUT_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={DIST}");
    let page = match env::var_os(DIST) {
        Some(dist) => ready_made(Path::new(&dist)),
        None => {
            for source in SOURCES {
                println!("cargo:rerun-if-changed={}", ui.join(source).display());
            }
            build(&ui, &out.join("ui"))
        }
    };
    // An empty page means that there is no page: see src/html/.
    let page = match page {
        Ok(page) => page,
        Err(Problem::Missing(why)) => {
            // A file that is never there makes the next build try again.
            println!("cargo:rerun-if-changed={}", out.join("never").display());
            println!("cargo:warning=built without the HTML report: {why}");
            String::new()
        }
        Err(Problem::Broken(why)) => panic!("the HTML page (ui/) cannot be built: {why}"),
    };
    let path = out.join("page.html");
    if fs::read_to_string(&path).ok().as_deref() != Some(page.as_str()) {
        fs::write(&path, page).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// A path that cargo gives.
fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}")).into()
}

fn ready_made(dist: &Path) -> Result<String, Problem> {
    let path = dist.join("index.html");
    println!("cargo:rerun-if-changed={}", path.display());
    fs::read_to_string(&path)
        .map_err(|error| Problem::Broken(format!("{DIST}: {}: {error}", path.display())))
}

/// Copies the sources to `room` and builds them there.
fn build(ui: &Path, room: &Path) -> Result<String, Problem> {
    check_node()?;
    fs::create_dir_all(room)?;
    // A file that was taken away must not live on in the copy.
    let _ = fs::remove_dir_all(room.join("src"));
    for source in SOURCES {
        copy(&ui.join(source), &room.join(source))?;
    }
    install(room)?;
    tool(room, "typescript/bin/tsc", &["--noEmit"])?;
    tool(room, "vite/bin/vite.js", &["build", "--logLevel", "warn"])?;
    Ok(fs::read_to_string(room.join("dist/index.html"))?)
}

fn check_node() -> Result<(), Problem> {
    let (major, minor) = NODE;
    let advice = format!(
        "install Node.js {major}.{minor} or newer with npm, or name a folder with a ready-made page \
         in {DIST}"
    );
    let output = Command::new("node").arg("--version").output();
    let Ok(output) = output else {
        return Err(Problem::Missing(format!("there is no Node.js; {advice}")));
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut numbers = text.trim_start_matches('v').split('.').map_while(|part| part.parse().ok());
    let version: Option<(u32, u32)> = numbers.next().zip(numbers.next());
    if version < Some(NODE) {
        return Err(Problem::Missing(format!("Node.js {text} is too old; {advice}")));
    }
    Ok(())
}

/// Installs what the lock file says, unless that was done.
fn install(room: &Path) -> Result<(), Problem> {
    let lock = fs::read(room.join("package-lock.json"))?;
    let stamp = room.join("installed.json");
    if fs::read(&stamp).ok().as_ref() == Some(&lock) {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    let flags = ["ci", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
    let mut npm = Command::new("npm");
    let output = npm.args(flags).current_dir(room).stdin(Stdio::null()).output();
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

/// Runs a tool of `node_modules`.
fn tool(room: &Path, script: &str, args: &[&str]) -> Result<(), Problem> {
    let script = room.join("node_modules").join(script);
    let output = Command::new("node")
        .arg(&script)
        .args(args)
        .current_dir(room)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    Err(Problem::Broken(format!("{} {}\n{}", script.display(), args.join(" "), texts.join(""))))
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
