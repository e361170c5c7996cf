//! The command line: plain data, parsed before anything else happens.

#[cfg(feature = "fleet")]
mod agent;
mod compare;
#[cfg(feature = "scripts")]
mod convert;
mod dashboard;
mod doctor;
#[cfg(feature = "experiments")]
mod experiment;
mod find;
#[cfg(feature = "fleet")]
mod fleet;
mod foreign_flags;
mod grpc;
mod history;
mod report;
mod run;
mod script;
mod serve;
#[cfg(feature = "shadow")]
mod shadow;
mod short_help;
mod tls;
mod values;
mod watch;
mod websocket;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "fleet")]
pub use agent::{AgentArgs, WeightArg};
pub use compare::CompareArgs;
#[cfg(feature = "scripts")]
pub use convert::{ConvertRequestsArgs, Pauses, StaticFiles};
pub use dashboard::{DashboardArgs, DashboardKind};
pub use doctor::DoctorArgs;
#[cfg(feature = "experiments")]
pub use experiment::ExperimentArgs;
#[cfg(all(test, feature = "experiments"))]
pub use experiment::NAMES as EXPERIMENTS;
pub use find::{DimensionArg, FindArgs};
#[cfg(feature = "fleet")]
pub use fleet::{FleetCommand, FleetCommandArgs};
pub use history::{HistoryArgs, HistoryCommand, LISTED};
pub use report::ReportArgs;
pub use run::{Arrivals, ConnectionArgs, RequestArgs, RunArgs};
pub use serve::ServeArgs;
#[cfg(feature = "shadow")]
pub use shadow::{
    ConvertArgs, CopyArgs, ForwardedArg, ProxyArgs, ServiceArgs, ShadowArgs, ShadowCommand,
    ShadowReportArgs, TapArgs,
};
use values::KnownValues;
pub use values::WatchedSource;
pub use watch::{WatchArgs, WatchFormat};

use gake_session::options::words;
use gake_session::{Color, Failure};

/// Finds the cliff before your users do: load tests HTTP services, and reports whether the
/// measurement can be believed.
#[derive(Debug, Parser)]
#[command(
    name = "gake",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, objectives met; 1 the command failed; 2 bad usage; \
                  3 the run is invalid; 99 an objective failed; 130 interrupted.\n\n\
                  `gake URL` is short for `gake run URL`. Try: gake run demo -r 2000 -d 10s"
)]
pub struct Cli<C: Subcommand = Command> {
    /// The command.
    #[command(subcommand)]
    pub command: C,

    /// When to use colour: auto (on a terminal; honours NO_COLOR and CLICOLOR_FORCE), always, never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub color: Option<Color>,
}

/// The command of most starts, whose definition is a third of all.
#[derive(Debug, Subcommand)]
enum RunCommand {
    Run(Box<RunArgs>),
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a URL or a targets file, and judge the run
    Run(Box<RunArgs>),
    /// Find the capacity of a target under objectives, and the cliff behind it
    Find(Box<FindArgs>),
    /// Start the lab: a target server whose behaviour is known
    Serve(Box<ServeArgs>),
    #[cfg(feature = "experiments")]
    /// Show a known cliff step by step, and compare each step with theory
    Experiment(Box<ExperimentArgs>),
    #[cfg(feature = "shadow")]
    /// Run the shadow proxy: the master responds, other backends get a copy
    Shadow(Box<ShadowArgs>),
    /// Show and merge run files
    Report(ReportArgs),
    /// Sample a target: processes, sockets, Prometheus, Spring Boot
    Watch(WatchArgs),
    /// Compare two runs: do they differ, and with what confidence?
    Compare(CompareArgs),
    /// Show the runs kept by --save: list, compare, trend
    History(HistoryArgs),
    #[cfg(feature = "fleet")]
    /// Wait for runs of a fleet, and do a slice of each
    Agent(Box<AgentArgs>),
    #[cfg(feature = "fleet")]
    /// List the agents of a fleet, and stop, continue or look into its runs
    Fleet(FleetCommandArgs),
    /// Show what this machine can generate, and what limits it
    Doctor(DoctorArgs),
    #[cfg(feature = "scripts")]
    /// Make a k6 script from a HAR, a curl command, a Postman collection, an OpenAPI
    /// description or a JMeter plan
    Convert(ConvertRequestsArgs),
    /// Print a Grafana dashboard for the figures that --sink sends
    Dashboard(DashboardArgs),
    /// Behave as another tool: gake as hey -n 200 -c 20 URL
    #[command(hide = cfg!(not(feature = "compat")))]
    As {
        /// The tool: hey, ab, wrk ...
        #[arg(value_parser = TOOLS, hide_possible_values = true)]
        tool: Option<String>,
        /// The tool's own arguments; --gake-out FILE and --gake-format FORMAT also write gake's result
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Print a JSON schema, for editors and other programs
    Schema {
        /// The schema (default: list them)
        #[arg(value_parser = SCHEMAS, hide_possible_values = true)]
        name: Option<String>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man {
        /// The command (default: gake itself)
        #[arg(value_parser = COMMANDS, hide_possible_values = true)]
        command: Option<String>,
    },
}

/// The names of the tools that gake behaves as.
pub const TOOL_NAMES: &[&str] =
    &["ab", "h2load", "hey", "k6", "nighthawk_client", "oha", "vegeta", "wrk", "wrk2"];

/// The tools that gake behaves as.
const TOOLS: KnownValues<String> = KnownValues::new(TOOL_NAMES, |text| Ok(text.to_owned()));

/// The JSON schemas.
const SCHEMAS: KnownValues<String> = KnownValues::new(&["spec"], |text| Ok(text.to_owned()));

/// Commands with a manual page of their own.
const COMMANDS: KnownValues<String> = KnownValues::new(
    &[
        "run",
        "find",
        "serve",
        #[cfg(feature = "experiments")]
        "experiment",
        #[cfg(feature = "shadow")]
        "shadow",
        "report",
        "watch",
        "compare",
        "history",
        #[cfg(feature = "fleet")]
        "agent",
        #[cfg(feature = "fleet")]
        "fleet",
        "doctor",
        #[cfg(feature = "scripts")]
        "convert",
        "dashboard",
        "as",
        "schema",
        "completions",
        "man",
    ],
    |text| Ok(text.to_owned()),
);

/// Commands that a build may leave out, the feature that brings each, and whether it is there.
const LEFT_OUT: &[(&str, &str, bool)] = &[
    ("agent", "fleet", cfg!(feature = "fleet")),
    ("convert", "scripts", cfg!(feature = "scripts")),
    ("experiment", "experiments", cfg!(feature = "experiments")),
    ("fleet", "fleet", cfg!(feature = "fleet")),
    ("shadow", "shadow", cfg!(feature = "shadow")),
];

/// Parses the arguments; flags of other tools with a single meaning are translated.
///
/// # Errors
/// Help, version and usage errors, as clap words them.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Failure> {
    let mut args: Vec<OsString> = with_run(args.into_iter().collect());
    #[cfg(feature = "scripts")]
    {
        args = convert::join_command(args);
    }
    let command = args.get(1).and_then(|word| word.to_str());
    if let Some((name, feature, _)) = LEFT_OUT.iter().find(|one| !one.2 && Some(one.0) == command) {
        return Err(Failure::usage(format!(
            "{name}: this build was made without the feature `{feature}`"
        )));
    }
    // Each turn replaces one word, and no translation holds a foreign flag.
    for _ in 0..=args.len() {
        let error = match read(&args) {
            Ok(cli) => return Ok(cli),
            Err(error) => error,
        };
        let mut definition = definition();
        definition.build();
        let Some(ours) = foreign_flags::translated(&error, &definition, &args) else {
            let error = foreign_flags::add_tip(error, &definition, &args);
            return Err(Failure::Clap(Box::new(error)));
        };
        args = ours;
    }
    read(&args).map_err(|error| Failure::Clap(Box::new(error)))
}

/// A run does not pay at its start for the definitions of other commands, which errors need, and for
/// the choice of short flags, which only help needs.
fn read(args: &[OsString]) -> Result<Cli, clap::Error> {
    if args.get(1).is_some_and(|word| word == "run")
        && let Ok(Cli { command: RunCommand::Run(args), color }) = Cli::try_parse_from(args)
    {
        return Ok(Cli { command: Command::Run(args), color });
    }
    Cli::try_parse_from(args).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            definition().try_get_matches_from(args).err().unwrap_or(error)
        }
        _ => error,
    })
}

/// Parses the arguments of a `gake run` from one string, with or without the `run`.
///
/// # Errors
/// When the line is not a valid `gake run`.
pub fn run_of(line: &str) -> Result<RunArgs, Failure> {
    let mut words = words(line).map_err(Failure::usage)?;
    if words.first().is_some_and(|first| first == "gake") {
        words.remove(0);
    }
    if words.first().is_some_and(|first| first == "run") {
        words.remove(0);
    }
    let args = ["gake", "run"].into_iter().map(OsString::from);
    match parse(args.chain(words.into_iter().map(OsString::from)))?.command {
        Command::Run(args) => Ok(*args),
        _ => Err(Failure::usage(format!("{line:?} is not a gake run"))),
    }
}

/// The commands' whole definition, for completions and manual pages.
pub fn definition() -> clap::Command {
    short_help::shorten(<Cli>::command())
}

/// Flags of gake itself, which stand before a command.
const OWN_FLAGS: [&str; 5] = ["-h", "--help", "-V", "--version", "--color"];

/// Puts `run` before what looks like a target, or a flag of a run: `gake localhost:8080 -d 5s`,
/// `gake 8080`, `gake -n 200 http://localhost:8080/`. `gake version` is `gake --version`.
fn with_run(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.len() == 2 && args[1] == "version" {
        args[1] = "--version".into();
        return args;
    }
    let first = args.get(1).and_then(|arg| arg.to_str()).unwrap_or_default();
    let known = |arg: &str| arg == "help" || COMMANDS.names().any(|name| name == arg);
    let is_run = if first == "-" || first.parse::<u16>().is_ok() {
        true
    } else if first.starts_with('-') {
        let own = OWN_FLAGS.contains(&first.split('=').next().unwrap_or_default());
        !own && !args.iter().skip(1).any(|arg| arg.to_str().is_some_and(known))
    } else {
        let target = first == "demo" || first == "localhost" || first.contains(['/', ':', '.']);
        target && !known(first)
    };
    if is_run {
        args.insert(1, "run".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Result<Cli, Failure> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn a_target_needs_no_command() {
        for line in ["gake http://h/", "gake localhost:80 -d 1s", "gake demo", "gake 127.0.0.1"] {
            assert!(matches!(command(line).unwrap().command, Command::Run(_)), "{line}");
        }
        assert!(matches!(command("gake -n 5 http://h/").unwrap().command, Command::Run(_)));
        assert!(matches!(
            command("gake --color never doctor").unwrap().command,
            Command::Doctor(_)
        ));
        assert!(command("gake rnu").is_err());
        assert!(matches!(command("gake doctor").unwrap().command, Command::Doctor(_)));
    }

    #[test]
    fn completions_name_every_tool_and_command() {
        let known = |of: &KnownValues<String>| of.names().map(str::to_owned).collect::<Vec<_>>();
        #[cfg(feature = "compat")]
        assert_eq!(known(&TOOLS), gake_compat::names());
        let definition = definition();
        let names: Vec<_> = definition.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(known(&COMMANDS), names);
    }

    #[test]
    fn every_flag_has_a_help_text() {
        for command in definition().get_subcommands() {
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
        }
    }
}
