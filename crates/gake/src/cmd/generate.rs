//! Completions and manual pages, from the one definition of the command line.

use crate::cli;
use crate::console::Console;
use crate::exit::{Exit, Failure};

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

/// Prints a manual page.
///
/// # Errors
/// When there is no such command, or the output is closed.
pub fn manual(command: Option<&str>, console: &Console) -> Result<Exit, Failure> {
    let definition = cli::definition();
    let page = match command {
        None => clap_mangen::Man::new(definition),
        Some(name) => {
            let found = definition
                .get_subcommands()
                .find(|known| known.get_name() == name)
                .ok_or_else(|| Failure::usage(format!("gake has no command {name:?}")))?;
            clap_mangen::Man::new(found.clone().display_name(format!("gake-{name}")))
        }
    };
    let mut roff = Vec::new();
    page.render(&mut roff).map_err(Failure::could_not)?;
    console.result(&String::from_utf8_lossy(&roff))?;
    Ok(Exit::Done)
}
