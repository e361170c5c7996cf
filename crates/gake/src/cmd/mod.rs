//! The commands.

#[cfg(feature = "fleet")]
mod agent;
mod compare;
#[cfg(feature = "scripts")]
mod convert;
mod dashboard;
pub mod demo;
mod doctor;
#[cfg(feature = "experiments")]
mod experiment;
mod find;
#[cfg(feature = "fleet")]
mod fleet;
mod generate;
mod history;
mod report;
pub mod run;
mod serve;
#[cfg(feature = "shadow")]
mod shadow;
mod watch;

use crate::cli::{Command, TOOL_NAMES};
use crate::{personality, spec};
use gake_session::Console;
use gake_session::{Exit, Failure};

/// Runs a command.
///
/// # Errors
/// When it ended without a result.
pub fn run(command: Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::Run(mut args) => {
            spec::take_target(&mut args)?;
            run::run(&args, console)
        }
        Command::Find(args) => find::run(&args, console),
        Command::Serve(args) => serve::run(&args, console),
        #[cfg(feature = "experiments")]
        Command::Experiment(args) => experiment::run(&args, console),
        #[cfg(feature = "shadow")]
        Command::Shadow(args) => shadow::run(&args, console),
        Command::Watch(args) => watch::run(&args, console),
        Command::Compare(args) => compare::run(&args, console),
        Command::History(args) => history::run(&args, console),
        #[cfg(feature = "fleet")]
        Command::Agent(args) => agent::run(&args, console),
        #[cfg(feature = "fleet")]
        Command::Fleet(args) => fleet::run(&args, console),
        Command::Doctor(args) => doctor::run(&args, console),
        #[cfg(feature = "scripts")]
        Command::Convert(args) => convert::run(&args, console),
        Command::Dashboard(args) => dashboard::run(&args, console),
        Command::Report(args) => report::run(&args, console),
        Command::As { .. } if cfg!(not(feature = "compat")) => {
            Err(Failure::usage(personality::ABSENT))
        }
        Command::As { .. } => {
            let tools = TOOL_NAMES.join(", ");
            Err(Failure::usage(format!(
                "which tool? gake as TOOL ARGS..., where TOOL is one of {tools}"
            )))
        }
        Command::Schema { name } => generate::schema(name.as_deref(), console),
        Command::Completions { shell } => generate::completions(shell, console),
        Command::Man { command } => generate::manual(command.as_deref(), console),
    }
}
