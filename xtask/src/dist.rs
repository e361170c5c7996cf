//! `cargo xtask dist`: an archive of the binary for one target, with manual pages, completions,
//! documentation and a checksum. The same sources and compiler give the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

const MUSL: &str = "x86_64-unknown-linux-musl";

/// Pages beside that of `gake` itself.
const PAGES: &str = "run find watch serve shadow report compare history doctor experiment convert \
     dashboard agent fleet as schema completions";

/// Files of the repository that go along.
const FILES: [&str; 5] = ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "Containerfile"];

#[derive(Debug, PartialEq)]
struct Options<'a> {
    target: &'a str,
    /// A binary that is there already; without one it is built.
    binary: Option<&'a Path>,
}

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let binary = match options.binary {
        Some(binary) => binary.to_owned(),
        None => build(options.target)?,
    };
    let name = format!("gake-{}-{}", env!("CARGO_PKG_VERSION"), options.target);
    let folder = workspace::root().join("target/dist").join(&name);
    lay_out(&binary, &folder)?;
    let archive = pack(&folder, &name)?;
    println!("{}", archive.display());
    Ok(())
}

fn options(args: &[String]) -> Result<Options<'_>> {
    let mut options = Options { target: MUSL, binary: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--target", Some(target)) => options.target = target,
            ("--binary", Some(path)) => options.binary = Some(Path::new(path)),
            _ => bail!("usage: cargo xtask dist [--target TRIPLE] [--binary FILE]"),
        }
    }
    Ok(options)
}

/// Builds the binary for `target`, without paths of this machine in it.
fn build(target: &str) -> Result<PathBuf> {
    let is_musl = target.ends_with("-musl");
    let installed = output("rustup", &["target", "list", "--installed"])?;
    if !installed.lines().any(|known| known == target) {
        bail!("the standard library for {target} is missing: rustup target add {target}");
    }
    if is_musl && gake_testkit::find("musl-gcc").is_none() {
        bail!(
            "musl-gcc is missing, which compiles the C parts (aws-lc, mimalloc, QuickJS): install \
             the Debian package musl-tools, or name another target with --target"
        );
    }
    let root = workspace::root().display().to_string();
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let mut flags = format!("--remap-path-prefix={root}=. --remap-path-prefix={home}=cargo");
    if is_musl {
        flags.push_str(" -C target-feature=+crt-static");
    }
    let compiler = format!("CC_{}", target.replace('-', "_"));
    let c_flags = format!("CFLAGS_{}", target.replace('-', "_"));
    let c_paths = format!("-ffile-prefix-map={root}=. -ffile-prefix-map={home}=cargo");
    let epoch = epoch()?;
    let mut env = vec![
        ("RUSTFLAGS", flags.as_str()),
        ("SOURCE_DATE_EPOCH", &epoch),
        // What is installed here must not decide what is built.
        ("AWS_LC_SYS_USE_SYSTEM", "0"),
        (&c_flags, &c_paths),
    ];
    if is_musl {
        // Only for C: rustc links with musl's startup files that it brings along. musl-gcc
        // as linker would add its own for a dynamic program.
        env.push((&compiler, "musl-gcc"));
    }
    // A profile's `strip` is lost on a package whose optimisation level is its own, as this one's.
    let build = ["rustc", "--profile", "fastest", "--locked", "-p", "gake", "--bin", "gake"];
    let build = [&build[..], &["--target", target, "--", "-C", "strip=symbols"]].concat();
    command::run_with("cargo", &build, &env)?;
    Ok(workspace::root().join("target").join(target).join("fastest/gake"))
}

/// Puts everything of the archive into an empty folder.
fn lay_out(binary: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    for part in ["man", "completions", "docs"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let gake = folder.join("gake");
    fs::copy(binary, &gake).with_context(|| format!("{} cannot be copied", binary.display()))?;
    let program = gake.display().to_string();
    for shell in ["bash", "zsh", "fish"] {
        let text = output(&program, &["completions", shell])?;
        let name = match shell {
            "zsh" => "_gake".to_owned(),
            shell => format!("gake.{shell}"),
        };
        fs::write(folder.join("completions").join(name), text)?;
    }
    fs::write(folder.join("man/gake.1"), output(&program, &["man"])?)?;
    for page in PAGES.split_whitespace() {
        let text = output(&program, &["man", page])?;
        fs::write(folder.join(format!("man/gake-{page}.1")), text)?;
    }
    let root = workspace::root();
    for file in FILES {
        fs::copy(root.join(file), folder.join(file)).with_context(|| file.to_owned())?;
    }
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        let name = path.file_name().context("a file of docs has no name")?;
        if path.extension().is_some_and(|ending| ending == "md" || ending == "json") {
            fs::copy(&path, folder.join("docs").join(name))?;
        }
    }
    let pictures = folder.join("docs/cliffs");
    fs::create_dir_all(&pictures)?;
    for entry in fs::read_dir(root.join("docs/cliffs"))? {
        let entry = entry?;
        fs::copy(entry.path(), pictures.join(entry.file_name()))?;
    }
    Ok(())
}

/// Packs the folder, with the time of the last commit as everything's time, and writes its
/// checksum beside it.
fn pack(folder: &Path, name: &str) -> Result<PathBuf> {
    let dist = folder.parent().context("the folder has no parent")?;
    let archive = format!("{name}.tar.gz");
    let script = format!(
        "tar --sort=name --mtime=@{} --owner=0 --group=0 --numeric-owner \
         --mode=u+rwX,go+rX,go-w -cf - {name} | gzip -9n > {archive} && \
         sha256sum {archive} > {archive}.sha256",
        epoch()?
    );
    let packed = Command::new("sh").args(["-ec", &script]).current_dir(dist).status()?;
    if !packed.success() {
        bail!("the archive could not be packed ({packed})");
    }
    Ok(dist.join(archive))
}

/// The time of the last commit, in Unix seconds.
fn epoch() -> Result<String> {
    Ok(output("git", &["log", "-1", "--format=%ct"])?.trim().to_owned())
}

/// What a program prints.
fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program)
        .args(args)
        .current_dir(workspace::root())
        .output()
        .with_context(|| format!("`{program}` could not be started"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        bail!("`{program} {}` failed: {}", args.join(" "), said.trim());
    }
    Ok(String::from_utf8(out.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_build_is_the_default() {
        assert_eq!(options(&[]).unwrap(), Options { target: MUSL, binary: None });
        let words = ["--target", "aarch64-unknown-linux-musl", "--binary", "/x/gake"];
        let words = words.map(str::to_owned);
        let expected =
            Options { target: "aarch64-unknown-linux-musl", binary: Some(Path::new("/x/gake")) };
        assert_eq!(options(&words).unwrap(), expected);
        assert!(options(&["--target".to_owned()]).is_err());
    }

    #[test]
    fn the_same_folder_gives_the_same_archive() {
        let folder = std::env::temp_dir().join(format!("gake-dist-{}", std::process::id()));
        let sums = [0, 1].map(|time| {
            let part = folder.join("part");
            fs::create_dir_all(part.join("b")).unwrap();
            for (name, text) in [("b/c", "2"), ("a", "1")] {
                fs::write(part.join(name), text).unwrap();
            }
            let stamped = format!("touch -d @{} part/a part/b part", 1_000_000 + time);
            let touched = Command::new("sh").args(["-c", &stamped]).current_dir(&folder).status();
            assert!(touched.unwrap().success());
            let archive = pack(&part, "part").unwrap();
            let sum = fs::read_to_string(archive.with_extension("gz.sha256")).unwrap();
            fs::remove_dir_all(part).unwrap();
            sum
        });
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(sums[0], sums[1]);
        assert!(sums[0].ends_with("  part.tar.gz\n") && sums[0].len() > 64, "{}", sums[0]);
    }
}
