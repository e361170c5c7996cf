//! The flags of `gake convert`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Make a k6 script from a HAR, a curl command, a Postman collection, an OpenAPI or Swagger
/// description, or a JMeter plan.
///
/// The script sends the requests in order and checks the responses; `gake run`, `gake as k6 run`
/// and k6 run it. It goes to standard output, or with -o to a file. What cannot be kept is a
/// warning a kind, with its count. Variables come from -e NAME=VALUE; one that is missing ends
/// the iteration with its name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake convert session.har -o script.js         what a browser did, with its pauses
  gake convert session.har --static skip        without images, fonts and style sheets
  gake convert curl http://h/ -H a:b            \"Copy as cURL\" of a browser
  gake convert shop.postman_collection.json     {{name}} is a variable: -e name=value
  gake convert openapi.yaml                     each operation; the server: -e BASE_URL=URL
  gake convert plan.jmx                         a scenario for each thread group

docs/convert.md lists what is kept of each format.")]
pub struct ConvertRequestsArgs {
    /// A file, or a curl command; - is standard input
    #[arg(value_name = "FILE|COMMAND")]
    pub input: String,
    /// Write the script to a file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Pauses between the requests of a HAR
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Pauses::Recorded)]
    pub think: Pauses,
    /// Images, fonts and style sheets of a HAR
    #[arg(long = "static", value_enum, value_name = "WHAT", default_value_t = StaticFiles::Keep)]
    pub static_files: StaticFiles,
}

/// Pauses between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pauses {
    /// As they were recorded
    Recorded,
    /// None
    None,
}

/// Images, fonts and style sheets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StaticFiles {
    /// Requested like the rest
    Keep,
    /// Left out
    Skip,
}

/// Joins a curl command that is not quoted: what follows `gake convert curl` is curl's.
pub(super) fn join_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let at = args.iter().position(|arg| arg == "convert");
    let curl =
        at.and_then(|at| args[at..].iter().position(|arg| arg == "curl").map(|curl| at + curl));
    // Only gake's own flags stand in front of it.
    if let (Some(1 | 3), Some(curl)) = (at, curl)
        && curl + 1 < args.len()
    {
        let words: Vec<String> =
            args.drain(curl..).map(|word| word.to_string_lossy().into_owned()).collect();
        args.push(gake_convert::command_line(&words).into());
    }
    args
}
