//! Go: a toolchain that is new enough, and the servers in it that the tests run against.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{command, workspace};

/// The toolchain that is fetched when none here is new enough: a module, as Go's own
/// `GOTOOLCHAIN` takes it, with the sum of its files.
const MODULE: &str = "golang.org/toolchain@v0.0.1-go1.24.11.linux-amd64";
const SUM: &str = "h1:hxQU5yWTnb0g5kLfz0z3G0wrgC9rQGwX9qPSPnpQuGY=";

/// Where the tests look for servers that are built already.
const PEERS: &str = "GAKE_PEERS";

/// A version: 1.24.11 is 1, 24, 11.
type Version = [u32; 3];

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    if let Some(argument) = args.first() {
        bail!("unknown argument: {argument}");
    }
    ensure()?;
    build_peers()
}

/// Fetches a toolchain unless the one that is here is new enough.
///
/// # Errors
/// When it cannot be fetched, or is not what it should be.
pub fn ensure() -> Result<()> {
    if program()?.is_some() {
        return Ok(());
    }
    let go = gake_testkit::find("go").context("go is not installed")?;
    let [major, minor, _] = needed()?;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("the test run needs Go {major}.{minor} or newer: see https://go.dev/dl");
    }
    println!("the test run needs Go {major}.{minor} or newer: fetching {MODULE}");
    fetch(&go).with_context(|| format!("{MODULE} could not be fetched"))?;
    if program()?.is_none() {
        bail!("{MODULE} is not new enough: pin a newer one in xtask/src/golang.rs");
    }
    Ok(())
}

/// Builds every server in Go, so that no test waits for a compiler.
///
/// # Errors
/// When one cannot be built.
pub fn build_peers() -> Result<()> {
    let go = program()?.context("no Go here is new enough: `cargo xtask servers` fetches one")?;
    let go = go.display().to_string();
    let out = peers_dir()?;
    for module in modules()? {
        let name = module.file_name().unwrap_or_default();
        let (module, out) = (module.display().to_string(), out.join(name).display().to_string());
        let env = [("GOFLAGS", "-buildvcs=false"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")];
        command::run_with(&go, &["-C", &module, "build", "-o", &out, "."], &env)
            .context("a server that the tests run against could not be built")?;
    }
    Ok(())
}

/// What tells the tests where the servers are.
pub fn peers_variable() -> Result<(&'static str, String)> {
    Ok((PEERS, peers_dir()?.display().to_string()))
}

fn peers_dir() -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join("tools/peers"))
}

/// Where a toolchain is that was fetched; the tests know it, too.
fn toolchain_dir() -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join("tools/go"))
}

/// The go command, where it is new enough: the system's, or the one that was fetched.
fn program() -> Result<Option<PathBuf>> {
    let needed = needed()?;
    let fetched = toolchain_dir()?.join("bin/go");
    let all = gake_testkit::find("go").into_iter().chain([fetched]);
    let is_new = |go: &PathBuf| version(go).is_some_and(|version| version >= needed);
    Ok(all.into_iter().find(is_new))
}

/// The version of a go command; `None` when it cannot be run.
fn version(go: &Path) -> Option<Version> {
    let output = Command::new(go).arg("version").env("GOTOOLCHAIN", "local").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // go version go1.24.11 linux/amd64
    text.split_whitespace().find_map(|word| parse(word.strip_prefix("go")?))
}

/// The numbers in front of a text, with dots between them; at least one.
fn parse(text: &str) -> Option<Version> {
    let mut version = Version::default();
    for (i, (number, part)) in version.iter_mut().zip(text.split('.')).enumerate() {
        let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        match digits.parse() {
            Ok(parsed) => *number = parsed,
            Err(_) if i == 0 => return None,
            Err(_) => break,
        }
    }
    Some(version)
}

/// The newest version that the servers ask for.
fn needed() -> Result<Version> {
    let mut newest = Version::default();
    for module in modules()? {
        let file = module.join("go.mod");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let asked = text.lines().find_map(|line| line.strip_prefix("go ")).and_then(parse);
        let asked = asked.with_context(|| format!("{} names no version", file.display()))?;
        newest = newest.max(asked);
    }
    Ok(newest)
}

/// The folders of the servers in Go.
fn modules() -> Result<Vec<PathBuf>> {
    let folder = workspace::root().join("crates/gake/tests/peers");
    let all = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut modules = all.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    modules.retain(|module| module.join("go.mod").is_file());
    modules.sort();
    Ok(modules)
}

/// What `go mod download -json` says.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: Option<PathBuf>,
    sum: Option<String>,
    error: Option<String>,
}

/// Downloads the toolchain by a go command of any age, from where the user's GOPROXY says.
fn fetch(go: &Path) -> Result<()> {
    let dir = toolchain_dir()?;
    let cache = dir.with_file_name("go-modules");
    // A part of it may be here from a time before.
    for old in [&dir, &cache] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir_all(&cache)?;
    println!("$ go mod download -json {MODULE}");
    let output = Command::new(go)
        .args(["mod", "download", "-json", MODULE])
        .current_dir(&cache)
        .env("GOMODCACHE", &cache)
        // Folders that can be removed again, and a sum that is compared here.
        .envs([("GOFLAGS", "-modcacherw"), ("GONOSUMDB", "golang.org/toolchain")])
        .envs([("GOTOOLCHAIN", "local"), ("GO111MODULE", "on"), ("GOWORK", "off")])
        .output()?;
    let told: Option<Downloaded> = serde_json::from_slice(&output.stdout).ok();
    let Some(Downloaded { dir: Some(unpacked), sum: Some(sum), error: None }) = told else {
        let error = told.and_then(|told| told.error);
        let stderr = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{}", error.unwrap_or_else(stderr));
    };
    if sum != SUM {
        bail!("its sum is {sum}, and should be {SUM}");
    }
    complete(&unpacked)?;
    fs::rename(&unpacked, &dir)?;
    fs::remove_dir_all(&cache)?;
    Ok(())
}

/// Does what Go does with a toolchain that came as a module, which holds no programs and no modules
/// within.
fn complete(toolchain: &Path) -> Result<()> {
    let tools = toolchain.join("pkg/tool/linux_amd64");
    for folder in [toolchain.join("bin"), tools] {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    for folder in ["src", "src/cmd"] {
        let folder = toolchain.join(folder);
        fs::rename(folder.join("_go.mod"), folder.join("go.mod"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        assert_eq!(parse("1.24"), Some([1, 24, 0]));
        assert_eq!(parse("1.24.11 linux/amd64"), Some([1, 24, 11]));
        assert_eq!(parse("1.27rc1"), Some([1, 27, 0]));
        assert_eq!(parse("devel"), None);
        assert!(parse("1.9") < parse("1.24") && parse("1.24.2") < parse("1.24.11"));
    }

    #[test]
    fn the_pinned_toolchain_is_new_enough_for_every_server() {
        let pinned = MODULE.split_once("-go").and_then(|(_, version)| parse(version)).unwrap();
        let needed = needed().unwrap();
        assert!(needed >= [1, 18, 0] && pinned >= needed, "{pinned:?}, needed {needed:?}");
    }
}
