//! `cargo xtask dist`: every package of a release, from one binary per target.
//!
//! The same binary and commit give the same bytes: all times are the commit's, or
//! `SOURCE_DATE_EPOCH`; owners are root; files are sorted. [`contents`] lays out what a release
//! holds, each format packs it, [`install`] installs a package from its file.
// A task's output is its purpose: it speaks on stdout and stderr directly.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub mod archive;
pub mod chart;
mod check;
mod compile;
pub mod contents;
pub mod deb;
pub mod formula;
pub mod image;
pub mod install;
pub mod npm;
pub mod redhat;
mod registry;
pub mod sbom;
pub mod tarball;
pub mod target;
pub mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use xtask::workspace;

use contents::Contents;
use target::Target;

/// The version of all packages: that of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What gake is, in the words that every format shows.
pub const SUMMARY: &str = "Load tests HTTP services and finds the capacity before the users do";

/// The licence, as an SPDX expression.
pub const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// The best level of gzip and xz: a package is made once and fetched often.
const COMPRESSION: u32 = 9;

#[derive(Debug, PartialEq)]
struct Options<'a> {
    target: &'a str,
    /// A finished binary; without one it is compiled.
    binary: Option<&'a Path>,
    /// Where releases will be: `https://github.com/OWNER/NAME`.
    repository: Option<&'a str>,
    /// Whether each package is installed and run, too.
    check: bool,
}

/// The task.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [flag] if flag == "--registry" => registry::check(),
        args => options(args).and_then(|options| run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options(args: &[String]) -> Result<Options<'_>> {
    let mut options =
        Options { target: target::DEFAULT, binary: None, repository: None, check: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--check" {
            options.check = true;
            continue;
        }
        match (arg.as_str(), args.next()) {
            ("--target", Some(target)) => options.target = target,
            ("--binary", Some(path)) => options.binary = Some(Path::new(path)),
            ("--repository", Some(url)) => options.repository = Some(url.trim_end_matches('/')),
            _ => bail!(
                "usage: cargo xtask dist [--target TRIPLE] [--binary FILE] [--repository URL] \
                 [--check], or cargo xtask dist --registry"
            ),
        }
    }
    Ok(options)
}

fn run(options: &Options<'_>) -> Result<()> {
    let target = Target::parse(options.target)?;
    let binary = match options.binary {
        Some(binary) => binary.to_owned(),
        None => compile::binary(&target)?,
    };
    let out = workspace::target_dir()?.join("dist");
    fs::create_dir_all(&out)?;
    let contents = Contents::lay_out(&binary, target, epoch()?, COMPRESSION, &out)?;
    let mut files = packages(&contents, &out)?;
    match options.repository {
        Some(repository) => files.push(formula::write(&contents, repository, &out)?),
        None => println!("no Homebrew formula: --repository URL says where its archives will be"),
    }
    files.push(sums(&out)?);
    files.iter().for_each(|file| println!("{}", file.display()));
    if options.check { check::all(&contents, &files, &out) } else { Ok(()) }
}

/// Makes all packages that need nothing but the contents, and returns their files.
///
/// # Errors
/// When a file cannot be read or written.
pub fn packages(contents: &Contents, out: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![
        archive::write(contents, out)?,
        wheel::write(contents, out)?,
        npm::write_platform(contents, out)?,
        npm::write_main(contents, out)?,
        deb::write(contents, out)?,
        redhat::write(contents, out)?,
        sbom::write(contents, out)?,
    ];
    if contents.target.is_static {
        files.push(image::write(contents, out)?);
    } else {
        println!("no container image: it has no C library, so its binary must be a static one");
    }
    Ok(files)
}

/// Writes the checksums of all packages in `out`, those made before for other targets included.
fn sums(out: &Path) -> Result<PathBuf> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != "SHA256SUMS" {
            names.push(name);
        }
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        let bytes = fs::read(out.join(&name))?;
        text += &format!("{}  {name}\n", tarball::sha256(&bytes));
    }
    write(out, "SHA256SUMS", text.as_bytes())
}

/// The instant of all files, in Unix seconds: `SOURCE_DATE_EPOCH`, or the last commit.
fn epoch() -> Result<u32> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output("git", &["log", "-1", "--format=%ct"])?,
    };
    text.trim().parse().context("SOURCE_DATE_EPOCH is not a number of seconds")
}

/// Writes a package and returns its path.
fn write(out: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = out.join(name);
    fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// What a program prints, started in the repository's root.
fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program)
        .args(args)
        .current_dir(workspace::root())
        .output()
        .with_context(|| format!("`{program}` could not be started"))?;
    if !out.status.success() {
        let stderr = String::from_utf8_lossy(&out.stderr);
        bail!("`{program} {}` failed: {}", args.join(" "), stderr.trim());
    }
    Ok(String::from_utf8(out.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_build_is_the_default() {
        let expected =
            Options { target: target::DEFAULT, binary: None, repository: None, check: false };
        assert_eq!(options(&[]).unwrap(), expected);
        let words = ["--check", "--binary", "/x/gake", "--repository", "https://h/o/gake/"];
        let expected = Options {
            target: "x86_64-unknown-linux-musl",
            binary: Some(Path::new("/x/gake")),
            repository: Some("https://h/o/gake"),
            check: true,
        };
        assert_eq!(options(&words.map(str::to_owned)).unwrap(), expected);
        assert!(options(&["--target".to_owned()]).is_err());
    }
}
