//! The user's settings: `gake/config.toml` in the directory of settings.

use std::io;
use std::path::PathBuf;

use serde::Deserialize;

use crate::cli::Command;
use gake_session::Color;
use gake_session::Console;
use gake_session::Failure;

/// Maximum bytes of the file.
const READ_MAX: u64 = 64 << 10;

/// The user's settings; flags override them.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Whether `gake run` uses the full-screen view on a terminal.
    tui: Option<bool>,
    color: Option<Color>,
}

impl Settings {
    /// Reads the file; without one nothing is set.
    ///
    /// # Errors
    /// When it cannot be read, or has an unknown key or value.
    pub fn read() -> Result<Self, Failure> {
        let Some(path) = path(|name| std::env::var_os(name).map(PathBuf::from)) else {
            return Ok(Self::default());
        };
        let bytes = match gake_files::read(&path, "settings", READ_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.io().is_some_and(is_absent) => return Ok(Self::default()),
            Err(error) => return Err(Failure::usage(error)),
        };
        let wrong = |what: &str| Failure::usage(format!("{}: {}", path.display(), what.trim_end()));
        let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?;
        toml::from_str(&text).map_err(|error| wrong(&error.to_string()))
    }

    /// The console with the colour of flag and file.
    pub fn console(&self, flag: Option<Color>, console: &Console) -> Console {
        console.with(flag.or(self.color).unwrap_or_default())
    }

    /// Turns the full-screen view on where the settings ask for it and the terminal allows it.
    pub fn apply(&self, command: &mut Command, console: &Console) {
        if let Command::Run(args) = command {
            let output = &mut args.output;
            let is_free = console.live() && !output.quiet && !output.verbose;
            output.tui |= self.tui == Some(true) && is_free;
        }
    }
}

/// Where it is: below `XDG_CONFIG_HOME`, or `.config` at home.
fn path(directory: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // A relative path is to be ignored, by the specification of base directories.
    let absolute = |name: &str| directory(name).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("gake/config.toml"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_below_the_directory_of_settings() {
        let of = |config: &str, home: &str| {
            path(|name| match name {
                "XDG_CONFIG_HOME" => Some(config.into()),
                _ => Some(home.into()),
            })
        };
        assert_eq!(of("/etc/own", "/home/ada"), Some("/etc/own/gake/config.toml".into()));
        let at_home = Some("/home/ada/.config/gake/config.toml".into());
        assert_eq!(of("", "/home/ada"), at_home);
        assert_eq!(of("relative", "/home/ada"), at_home);
        assert_eq!(of("", ""), None);
    }
}
