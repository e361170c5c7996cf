//! Running a command the way a person would: shown first, its output untouched.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// Prints `$ command`, runs it in the repository's root and returns how long it took.
pub fn run(program: &str, args: &[&str]) -> Result<Duration> {
    run_with(program, args, &[])
}

/// The same with environment variables, which are shown too.
pub fn run_with(program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<Duration> {
    println!("$ {}", shown(program, args, env));
    run_in(workspace::root(), program, args, env)
}

/// The same in another folder; the caller has shown it.
pub fn run_in(
    folder: &Path,
    program: &str,
    args: &[&str],
    env: &[(&str, &str)],
) -> Result<Duration> {
    let shown = shown(program, args, env);
    let started = Instant::now();
    let real = if program == "cargo" { workspace::cargo() } else { program.to_owned() };
    let status = Command::new(real)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(folder)
        .status()
        .with_context(|| format!("`{program}` could not be started"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(started.elapsed())
}

/// A command as it would be typed.
pub fn shown(program: &str, args: &[&str], env: &[(&str, &str)]) -> String {
    let env = env.iter().map(|(name, value)| format!("{name}={value}"));
    let args = args.iter().map(|arg| {
        if arg.contains([' ', '*', '\'']) { format!("{arg:?}") } else { (*arg).to_owned() }
    });
    env.chain([program.to_owned()]).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        assert_eq!(
            shown("go", &["install", "a b"], &[("GOBIN", "/x")]),
            "GOBIN=/x go install \"a b\""
        );
    }
}
