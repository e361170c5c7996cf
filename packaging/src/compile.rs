//! Compiles the binary for a target, without paths of this machine in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
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
    let tools = c_tools(target)?;
    let root = workspace::root().display().to_string();
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let mut flags = format!("--remap-path-prefix={root}=. --remap-path-prefix={home}=cargo");
    if target.is_static {
        // At a fixed address, as crates/gake/build.rs links other builds.
        flags.push_str(" -C target-feature=+crt-static -C relocation-model=static");
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
    let (archiver, linker) =
        (format!("AR_{name}"), format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()));
    if let Some(tools) = &tools {
        // Only for C: rustc links with musl's startup files that it brings along. musl-gcc
        // as linker would add its own for a dynamic program.
        env.push((&compiler, &tools.compiler));
        if let Some(ar) = &tools.archiver {
            env.extend([(archiver.as_str(), ar.as_str()), (&linker, "rust-lld")]);
        }
    }
    // A profile's `strip` is lost on a package whose optimisation level is its own, as this one's.
    let build = ["rustc", "--profile", "fastest", "--locked", "-p", "gake", "--bin", "gake"];
    let build = [&build[..], &["--target", triple, "--", "-C", "strip=symbols"]].concat();
    command::run_with("cargo", &build, &env)?;
    Ok(workspace::target_dir()?.join(triple).join("fastest/gake"))
}

/// What compiles the C parts, where it is not the system's own.
struct CTools {
    compiler: String,
    /// With a compiler for another processor.
    archiver: Option<String>,
}

fn c_tools(target: &Target) -> Result<Option<CTools>> {
    if !target.is_static {
        return Ok(None);
    }
    if target.machine.kernel != std::env::consts::ARCH {
        // A variable of the `cc` crate, which the user has set to a cross compiler.
        let variable = format!("CC_{}", target.triple.replace('-', "_"));
        return match std::env::var_os(&variable) {
            Some(_) => Ok(None),
            None => zig(target, &variable).map(Some),
        };
    }
    if gake_testkit::find("musl-gcc").is_none() {
        bail!(
            "musl-gcc is missing, which compiles the C parts (aws-lc, mimalloc, QuickJS): install \
             the Debian package musl-tools, or name another target with --target"
        );
    }
    Ok(Some(CTools { compiler: "musl-gcc".to_owned(), archiver: None }))
}

/// The C compiler of Zig as PyPI has it, by scripts that cargo can start.
fn zig(target: &Target, variable: &str) -> Result<CTools> {
    if output("python3", &["-m", "ziglang", "version"]).is_err() {
        bail!(
            "the C parts (aws-lc, mimalloc, QuickJS) need a compiler for {}: pip install ziglang, \
             or set {variable} to another one",
            target.triple
        );
    }
    let folder = workspace::target_dir()?.join("zig").join(&target.triple);
    fs::create_dir_all(&folder)?;
    // The `cc` crate adds Rust's name of the target, which Zig does not know. What is not optimized,
    // Zig checks for undefined behaviour by functions that no library here has.
    let compiler = format!(
        "#!/bin/sh\nfor arg do\n  shift\n  case $arg in --target=*) ;; *) set -- \"$@\" \"$arg\" ;; esac\n\
         done\nexec python3 -m ziglang cc -target {}-linux-musl -fno-sanitize=undefined \"$@\"\n",
        target.machine.kernel
    );
    let archiver = "#!/bin/sh\nexec python3 -m ziglang ar \"$@\"\n";
    Ok(CTools {
        compiler: script(folder.join("cc"), &compiler)?,
        archiver: Some(script(folder.join("ar"), archiver)?),
    })
}

fn script(path: PathBuf, text: &str) -> Result<String> {
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}
