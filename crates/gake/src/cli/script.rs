//! The flags of scripts.

use clap::{Arg, Args};
use gake_text::size::parse_size;

/// A script's inputs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Script", mut_args(hidden_if_absent))]
pub struct ScriptRunArgs {
    /// A variable in the script's __ENV, in addition to this process's environment; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,

    /// Show which lines of the script take its time
    #[arg(long)]
    pub script_profile: bool,

    /// Memory for the response bodies that all users of scripts hold: 512MB (default a quarter of
    /// the machine's)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub body_memory: Option<u64>,
}

/// Help does not show the flags of scripts in a build that refuses them.
fn hidden_if_absent(arg: Arg) -> Arg {
    let is_absent = cfg!(not(feature = "scripts")) && arg.get_help_heading() == Some("Script");
    let is_hidden = is_absent || arg.is_hide_set();
    arg.hide(is_hidden)
}

/// A name that a shell would accept, and its value; without `=` the value is empty, as in k6.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_name {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("{name:?} is not the name of a variable; write NAME=VALUE")),
    }
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_name() {
        let of = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(variable("A=b=c"), of("A", "b=c"));
        assert_eq!(variable("A"), of("A", ""));
        assert!(variable("1A=5").is_err() && variable("=5").is_err());
    }
}
