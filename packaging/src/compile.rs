//! Compiles the binary for a target, without paths of this machine in it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use xtask::{command, workspace};

use crate::target::Target;
use crate::{epoch, output};

/// The binary of the profile `fastest`.
pub fn binary(target: &Target) -> Result<PathBuf> {
    let triple = target.triple.as_str();
    let installed = output("rustup", &["target", "list", "--installed"])?;
    if !installed.lines().any(|known| known == triple) {
        bail!("the standard library for {triple} is missing: rustup target add {triple}");
    }
    let linker = c_compiler(target)?;
    let root = workspace::root().display().to_string();
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let mut flags = format!("--remap-path-prefix={root}=. --remap-path-prefix={home}=cargo");
    if target.is_static {
        flags.push_str(" -C target-feature=+crt-static");
    }
    let name = triple.replace('-', "_");
    let (compiler, c_flags) = (format!("CC_{name}"), format!("CFLAGS_{name}"));
    let c_paths = format!("-ffile-prefix-map={root}=. -ffile-prefix-map={home}=cargo");
    let epoch = epoch()?.to_string();
    let mut env = vec![
        ("RUSTFLAGS", flags.as_str()),
        ("SOURCE_DATE_EPOCH", &epoch),
        // What is installed here must not decide what is built.
        ("AWS_LC_SYS_USE_SYSTEM", "0"),
        (&c_flags, &c_paths),
    ];
    if let Some(linker) = linker {
        // Only for C: rustc links with musl's startup files that it brings along. musl-gcc
        // as linker would add its own for a dynamic program.
        env.push((&compiler, linker));
    }
    // A profile's `strip` is lost on a package whose optimisation level is its own, as this one's.
    let build = ["rustc", "--profile", "fastest", "--locked", "-p", "gake", "--bin", "gake"];
    let build = [&build[..], &["--target", triple, "--", "-C", "strip=symbols"]].concat();
    command::run_with("cargo", &build, &env)?;
    Ok(workspace::target_dir()?.join(triple).join("fastest/gake"))
}

/// The compiler of the C parts, where it is not the system's own.
fn c_compiler(target: &Target) -> Result<Option<&'static str>> {
    if !target.is_static {
        return Ok(None);
    }
    if target.machine.kernel != std::env::consts::ARCH {
        // A variable of the `cc` crate, which the user has set to a cross compiler.
        let variable = format!("CC_{}", target.triple.replace('-', "_"));
        if std::env::var_os(&variable).is_some() {
            return Ok(None);
        }
        bail!("set {variable} to a C compiler for {}, for example zig cc", target.triple);
    }
    if gake_testkit::find("musl-gcc").is_none() {
        bail!(
            "musl-gcc is missing, which compiles the C parts (aws-lc, mimalloc, QuickJS): install \
             the Debian package musl-tools, or name another target with --target"
        );
    }
    Ok(Some("musl-gcc"))
}
