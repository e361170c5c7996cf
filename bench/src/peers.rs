//! The tools under measurement: found, installed when they can be, or named with
//! the reason why not. None is silently absent.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Options;
use gake_testkit::Program;
use xtask::{command, debian, workspace};

/// A tool that the bench knows how to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Ours.
    Gake,
    /// The yardstick of CPU per request.
    Wrk,
    /// Apache's.
    Ab,
    /// nghttp2's, over HTTP/1.1.
    H2load,
    /// In Go, closed loop.
    Hey,
    /// In Go, open loop.
    Vegeta,
    /// In Rust, on hyper.
    Oha,
}

/// All of them, in the order of the tables.
pub const TOOLS: [Tool; 7] =
    [Tool::Gake, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::Hey, Tool::Vegeta, Tool::Oha];

/// Packages with peers and with the server.
const PACKAGES: &[Program] = &[
    Program { name: "nginx", package: "nginx-light" },
    Program { name: "wrk", package: "wrk" },
    Program { name: "ab", package: "apache2-utils" },
    Program { name: "h2load", package: "nghttp2-client" },
    Program { name: "go", package: "golang-go" },
];

/// A tool that is here.
pub struct Peer {
    /// Which.
    pub tool: Tool,
    /// Its file.
    pub path: PathBuf,
    /// As it says itself, or as its build says.
    pub version: String,
}

/// Which peers are installed.
pub struct Peers {
    /// The tools to measure.
    pub have: Vec<Peer>,
    /// The others, each with the reason.
    pub absent: Vec<(Tool, String)>,
}

impl Tool {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gake => "gake",
            Self::Wrk => "wrk",
            Self::Ab => "ab",
            Self::H2load => "h2load",
            Self::Hey => "hey",
            Self::Vegeta => "vegeta",
            Self::Oha => "oha",
        }
    }
}

impl Peers {
    /// Builds gake, finds or installs the peers.
    pub fn gather(options: &Options, tools_dir: &Path) -> Result<Self> {
        if let Err(error) = debian::ensure("the bench", PACKAGES) {
            println!("{error:#}");
        }
        let mut peers = Self { have: Vec::new(), absent: Vec::new() };
        for tool in TOOLS.into_iter().filter(|tool| options.needs(*tool)) {
            match locate(tool, options, tools_dir) {
                Ok(path) => {
                    let version = version(tool, &path);
                    peers.have.push(Peer { tool, path, version });
                }
                Err(error) => peers.absent.push((tool, format!("{error:#}"))),
            }
        }
        Ok(peers)
    }

    /// Where a tool is, if it is here.
    pub fn path(&self, tool: Tool) -> Option<&Path> {
        self.have.iter().find(|peer| peer.tool == tool).map(|peer| peer.path.as_path())
    }
}

fn locate(tool: Tool, options: &Options, tools_dir: &Path) -> Result<PathBuf> {
    match tool {
        Tool::Gake => gake(options),
        Tool::Wrk | Tool::Ab | Tool::H2load => {
            gake_testkit::find(tool.name()).context("its Debian package is not installed")
        }
        Tool::Hey => go_tool("hey", "github.com/rakyll/hey@latest", tools_dir),
        Tool::Vegeta => go_tool("vegeta", "github.com/tsenart/vegeta/v12@latest", tools_dir),
        Tool::Oha => oha(options, tools_dir),
    }
}

/// Built as it is given to others, or the binary that was named; either must know `run`.
fn gake(options: &Options) -> Result<PathBuf> {
    let path = match &options.gake {
        Some(path) => std::path::absolute(path)?,
        None => {
            command::run("cargo", &["build", "--profile", "fastest", "-p", "gake"])?;
            workspace::target_dir()?.join("fastest/gake")
        }
    };
    let help = Command::new(&path).args(["run", "--help"]).output();
    match help.with_context(|| format!("{} could not be started", path.display()))? {
        output if output.status.success() && !output.stdout.is_empty() => Ok(path),
        _ => bail!("{} has no command `run`", path.display()),
    }
}

/// A tool in Go, installed unless it is here. Ours first: a tool on PATH may be of any age.
pub(super) fn go_tool(name: &str, module: &str, tools_dir: &Path) -> Result<PathBuf> {
    let bin = tools_dir.join("bin");
    let path = bin.join(name);
    if path.is_file() {
        return Ok(path);
    }
    let installed = go_install(module, &bin);
    match (path.is_file(), gake_testkit::find(name)) {
        (true, _) => Ok(path),
        (false, Some(other)) => Ok(other),
        (false, None) => installed.map(|()| path),
    }
}

fn go_install(module: &str, bin: &Path) -> Result<()> {
    let go = gake_testkit::find("go").context("go is not installed")?;
    println!("$ GOBIN={} go install {module}", bin.display());
    let output = Command::new(go).args(["install", module]).env("GOBIN", bin).output()?;
    if !output.status.success() {
        bail!("go install: {}", reason(&output.stderr));
    }
    Ok(())
}

fn oha(options: &Options, tools_dir: &Path) -> Result<PathBuf> {
    let path = tools_dir.join("bin/oha");
    if path.is_file() {
        return Ok(path);
    }
    if let Some(path) = gake_testkit::find("oha") {
        return Ok(path);
    }
    if !options.with_oha {
        bail!("not installed, and --with-oha was not given");
    }
    let dir = tools_dir.to_string_lossy();
    command::run("cargo", &["install", "--quiet", "--locked", "--root", &dir, "oha"])?;
    Ok(path)
}

/// What a tool says it is, in a few words.
pub fn version(tool: Tool, path: &Path) -> String {
    let said = |args: &[&str]| {
        let output = Command::new(path).args(args).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let line = String::from_utf8_lossy(&text).lines().next()?.trim().to_owned();
        (!line.is_empty()).then_some(line)
    };
    let version = match tool {
        Tool::Gake | Tool::H2load | Tool::Oha => said(&["--version"]),
        Tool::Wrk => {
            said(&["-v"]).and_then(|line| line.split(" Copyright").next().map(str::to_owned))
        }
        Tool::Ab => said(&["-V"]),
        // Built by `go install`, these know no version; the build does.
        Tool::Hey | Tool::Vegeta => go_version(path),
    };
    version.unwrap_or_else(|| "of unknown version".to_owned())
}

fn go_version(path: &Path) -> Option<String> {
    let output =
        Command::new(gake_testkit::find("go")?).args(["version", "-m"]).arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let module = text.lines().find_map(|line| line.trim().strip_prefix("mod\t"))?;
    let mut words = module.split_whitespace();
    Some(format!("{} {}", words.next()?, words.next()?))
}

fn reason(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    // Go's reason is on its first line that is not about a download.
    let line = text.lines().find(|line| !line.starts_with("go: downloading"));
    line.unwrap_or("no message").trim().trim_start_matches("go: ").to_owned()
}
