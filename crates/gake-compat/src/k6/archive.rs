//! `k6 archive`: a script with its options and every file that it reads, in one file.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_k6::archive::Archive;
use gake_k6::version::K6Version;
use gake_run::script::ConfiguredScript;

use super::flags::RunFlags;
use super::load::{LoadRefusal, load};
use super::{CommandOutput, other_error};
use gake_session::Console;
use gake_session::script::log;

/// The flags that only this command has: where the archive goes, and whether `-e` is left out.
const OUT: [&str; 2] = ["--archive-out", "-O"];
const NO_ENVIRONMENT: &str = "--exclude-env-vars";

/// Where the archive goes by default.
const DEFAULT_OUT: &str = "archive.tar";

/// `k6 archive`: writes the archive, and prints nothing but its usage.
pub(super) fn main(args: &[String], version: K6Version, console: &Console) -> CommandOutput {
    let own = ArchiveFlags::read(args).map_err(other_error)?;
    let Some(mut flags) = RunFlags::read(&own.others, version).map_err(other_error)? else {
        let usage = "Usage: gake as k6 archive [-O archive.tar] [flags] script.js\n";
        return Ok(usage.to_owned());
    };
    // An archive must not depend on the environment of the process that writes it.
    flags.settings.shows_system = false;
    let log = log::log(console, flags.log_output.as_deref(), flags.log_format, flags.verbose)
        .map_err(other_error)?;
    let loaded = load(&flags, log).map_err(LoadRefusal::into_error)?;
    let bytes = archived(&loaded, &flags, own.no_environment).map_err(other_error)?.write(unix_s());
    let written = gake_files::create(Path::new(&own.out), gake_files::Access::Owner)
        .and_then(|mut file| file.write_all(&bytes));
    written.map_err(|error| other_error(format!("{} cannot be written: {error}", own.out)))?;
    Ok(String::new())
}

fn archived(
    loaded: &ConfiguredScript,
    flags: &RunFlags,
    no_environment: bool,
) -> Result<Archive, String> {
    let environment =
        if no_environment { Default::default() } else { flags.settings.variables.clone() };
    loaded.script.archive(&loaded.given, environment)
}

/// Seconds since 1970.
fn unix_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// The flags that only this command has, and the flags that it shares with `run`.
struct ArchiveFlags {
    out: String,
    no_environment: bool,
    others: Vec<String>,
}

impl ArchiveFlags {
    fn read(args: &[String]) -> Result<Self, String> {
        let mut own =
            Self { out: DEFAULT_OUT.to_owned(), no_environment: false, others: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
            if arg == NO_ENVIRONMENT {
                own.no_environment = true;
            } else if OUT.contains(&arg.as_str()) {
                let value = args.next().ok_or_else(|| format!("{arg} needs the name of a file"))?;
                own.out.clone_from(value);
            } else if OUT.contains(&name) && !value.is_empty() {
                own.out = value.to_owned();
            } else {
                own.others.push(arg.clone());
            }
        }
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_flags_may_be_anywhere() {
        let read = |line: &str| {
            let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            ArchiveFlags::read(&args).map(|own| (own.out, own.no_environment, own.others.join(" ")))
        };
        let found = |out: &str, no: bool, others: &str| Ok((out.to_owned(), no, others.to_owned()));
        assert_eq!(read("-u 3 s.js"), found("archive.tar", false, "-u 3 s.js"));
        assert_eq!(read("s.js -O a.tar -q"), found("a.tar", false, "s.js -q"));
        assert_eq!(
            read("--archive-out=b.tar --exclude-env-vars s.js"),
            found("b.tar", true, "s.js")
        );
        assert!(read("s.js -O").is_err());
    }
}
