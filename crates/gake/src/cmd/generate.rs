//! Completions and manual pages, from the one definition of the command line; JSON schemas.

use std::io::{self, Write};

use clap_mangen::Man;

use crate::cli;
use gake_session::Console;
use gake_session::{Exit, Failure};

/// Prints a completion script.
///
/// # Errors
/// When the output is closed.
pub fn completions(shell: clap_complete::Shell, console: &Console) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::definition(), "gake", &mut script);
    console.result(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Prints a JSON schema, or the list of schemas.
///
/// # Errors
/// When there is no such schema, or the output is closed.
pub fn schema(name: Option<&str>, console: &Console) -> Result<Exit, Failure> {
    match name {
        None => console.result("spec  a run as a file, for gake run --spec (docs/spec.md)\n")?,
        Some("spec") => console.result(&gake_core::spec::json_schema())?,
        Some(other) => {
            return Err(Failure::usage(format!("there is no schema {other:?}; there is: spec")));
        }
    }
    Ok(Exit::Done)
}

/// Prints a manual page.
///
/// # Errors
/// When there is no such command, or the output is closed.
pub fn manual(command: Option<&str>, console: &Console) -> Result<Exit, Failure> {
    let roff = page(command)?;
    console.result(&roff)?;
    Ok(Exit::Done)
}

/// The page `gake(1)`, or that of a command as `gake-run(1)`, in roff.
fn page(command: Option<&str>) -> Result<String, Failure> {
    let mut definition = cli::definition();
    definition.build();
    let command = match command {
        None => definition,
        Some(name) => {
            let found = definition.get_subcommands().find(|known| known.get_name() == name);
            let found =
                found.ok_or_else(|| Failure::usage(format!("gake has no command {name:?}")))?;
            found.clone().display_name(format!("gake-{name}")).bin_name(format!("gake {name}"))
        }
    };
    let notes = [command.get_before_long_help(), command.get_after_help()];
    let notes: Vec<_> = notes.into_iter().flatten().map(ToString::to_string).collect();
    let notes = notes.join("\n\n");
    let has_commands = command.get_subcommands().next().is_some();
    let mut roff = Vec::new();
    sections(&Man::new(command), has_commands, &notes, &mut roff).map_err(Failure::could_not)?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

fn sections(man: &Man, has_commands: bool, notes: &str, out: &mut impl Write) -> io::Result<()> {
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if has_commands {
        man.render_subcommands_section(out)?;
    }
    for part in notes.split("\n\n") {
        write_notes(part, out)?;
    }
    Ok(())
}

/// A paragraph of the notes around the help: examples keep their lines.
fn write_notes(part: &str, out: &mut impl Write) -> io::Result<()> {
    if let Some(examples) = part.strip_prefix("Examples:\n") {
        writeln!(out, ".SH EXAMPLES\n.nf")?;
        for line in examples.lines() {
            writeln!(out, "{}", escaped(line))?;
        }
        return writeln!(out, ".fi");
    }
    match part.strip_prefix("Exit codes: ") {
        Some(codes) => writeln!(out, ".SH \"EXIT STATUS\"\n{}", escaped(codes)),
        None if part.trim().is_empty() => Ok(()),
        None => writeln!(out, ".SH NOTES\n{}", escaped(part)),
    }
}

/// Text in which roff finds no request and no escape.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let text = line.replace('\\', "\\e").replace('-', "\\-");
        if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_page_of_its_own() {
        let text = page(Some("run")).unwrap();
        assert!(text.contains(".TH gake-run 1"), "{text}");
        assert!(text.contains("\\fBgake run\\fR"), "{text}");
        let examples = text.split_once(".SH EXAMPLES\n.nf\n").unwrap().1;
        let first = examples.lines().next().unwrap();
        assert!(first.starts_with("  gake run demo \\-r 2000 \\-d 10s"), "{first}");
        assert!(text.contains(".SH \"EXIT STATUS\"\n0 done"), "{text}");
        assert!(page(None).unwrap().contains(".TH gake 1"));
        assert!(page(Some("none")).is_err());
    }
}
