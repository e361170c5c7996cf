//! `--registry`: builds gake, and a program with `gake-run`, from a registry that holds only our
//! packages and their dependencies as published.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use serde_json::json;
use xtask::{command, features, workspace};

use crate::VERSION;

/// What the program does: 100 requests in an open loop.
const PROGRAM: &str = r#"use std::time::Duration;

use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};

fn main() -> Result<(), gake_run::RunError> {
    let url = RequestSource::Url(std::env::args().nth(1).expect("a URL"));
    let load = Load::rate(100.0, Duration::from_secs(1));
    let run = gake_run::run(&RunSpec::new(ScenarioSpec::new(url, load)))?;
    println!("{} ok", run.tally.counts.ok);
    Ok(())
}
"#;

/// Makes the registry in the target directory, and builds from it, unoptimized.
///
/// # Errors
/// When a package does not build, or does not run.
pub fn check() -> Result<()> {
    features::package()?;
    let folder = workspace::target_dir()?.join("registry");
    let crates = folder.join("crates");
    let ours = unpack(&folder.join("packages"))?;
    // With our packages in the place of published ones, cargo collects the rest.
    let all = ours.iter().fold("[patch.crates-io]\n".to_owned(), |text, (name, path)| {
        text + &format!("{name} = {{ path = {:?} }}\n", path.display().to_string())
    });
    let collecting = package(&folder.join("collect"), &["gake", "gake-run"], &all, "")?;
    cargo(&collecting, &["vendor", "--quiet", &crates.display().to_string()])?;
    for (name, path) in &ours {
        let into = crates.join(name);
        if into.exists() {
            fs::remove_dir_all(&into)?;
        }
        fs::rename(path, &into)?;
        let packed = fs::read(packed(name)?)?;
        let sum = json!({ "files": {}, "package": crate::tarball::sha256(&packed) });
        fs::write(into.join(".cargo-checksum.json"), sum.to_string())?;
    }

    let source = format!(
        "[source.crates-io]\nreplace-with = \"ours\"\n[source.ours]\ndirectory = {:?}\n\
         [build]\ntarget-dir = {:?}\n",
        crates.display().to_string(),
        folder.join("target").display().to_string()
    );
    let program = package(&folder.join("program"), &["gake-run"], "", &source)?;
    cargo(&program, &["build", "--offline"])?;
    let root = folder.join("root").display().to_string();
    // An installation reads no configuration of the folder.
    let config = program.join(".cargo/config.toml").display().to_string();
    let install = ["install", "gake", "--version", VERSION, "--debug", "--force", "--root", &root];
    cargo(&program, &[&install[..], &["--offline", "--config", &config]].concat())?;
    let gake = folder.join("root/bin/gake");
    crate::check::demo(&mut Command::new(&gake))?;
    loads(&folder.join("target/debug/program"), &gake)
}

/// Unpacks the packages, and returns the name and folder of each.
fn unpack(into: &Path) -> Result<Vec<(String, PathBuf)>> {
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    let metadata = workspace::metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let published = packages.iter().filter(|package| package["publish"].is_null());
    let names = published.filter_map(|package| package["name"].as_str());
    let unpack = |name: &str| {
        let packed = packed(name)?;
        let file = File::open(&packed).with_context(|| packed.display().to_string())?;
        tar::Archive::new(GzDecoder::new(file)).unpack(into)?;
        Ok((name.to_owned(), into.join(format!("{name}-{VERSION}"))))
    };
    names.map(unpack).collect()
}

/// The file of one of our packages.
fn packed(name: &str) -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join("package").join(format!("{name}-{VERSION}.crate")))
}

/// A package with these dependencies, in a workspace of its own.
fn package(folder: &Path, needs: &[&str], more: &str, config: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder.join("src"))?;
    fs::create_dir_all(folder.join(".cargo"))?;
    let needs: String = needs.iter().map(|name| format!("{name} = \"={VERSION}\"\n")).collect();
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{needs}\n{more}"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), PROGRAM)?;
    fs::write(folder.join(".cargo/config.toml"), config)?;
    // Of another state of the packages.
    let _ = fs::remove_file(folder.join("Cargo.lock"));
    Ok(folder.to_owned())
}

fn cargo(folder: &Path, args: &[&str]) -> Result<()> {
    println!("$ cd {} && {}", folder.display(), command::shown("cargo", args, &[]));
    command::run_in(folder, "cargo", args, &[]).map(drop)
}

/// Loads gake's own server with the program.
fn loads(program: &Path, gake: &Path) -> Result<()> {
    let mut serve = Command::new(gake);
    serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut server = serve.spawn()?;
    let mut line = String::new();
    let output = server.stdout.take().context("no output")?;
    BufReader::new(output).read_line(&mut line)?;
    let url = line.split_whitespace().find(|word| word.starts_with("http://"));
    let out = Command::new(program).args(url).output();
    server.kill()?;
    server.wait()?;
    let out = out?;
    let text = String::from_utf8_lossy(&out.stdout);
    if text.trim() != "100 ok" {
        bail!("the program with gake-run failed: {text}{}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}
