//! What the commands do.

mod generate;
mod run;

use crate::cli::{Cli, Command};
use crate::console::Console;
use crate::exit::{Exit, Failure};

/// Runs a command.
///
/// # Errors
/// Why it ended without a result.
pub fn run(cli: Cli, console: &Console) -> Result<Exit, Failure> {
    match cli.command {
        Command::Run(args) => run::run(&args, console),
        Command::Serve(_) | Command::Report(_) | Command::Doctor(_) => {
            Err(Failure::usage("not yet"))
        }
        Command::Completions { shell } => generate::completions(shell, console),
        Command::Man { command } => generate::manual(command.as_deref(), console),
    }
}
