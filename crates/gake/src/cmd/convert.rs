//! `gake convert`.

use std::io;
use std::path::Path;

use gake_k6::convert::{requests, script};

use crate::cli::ConvertRequestsArgs;
use gake_session::Console;
use gake_session::{Exit, Failure};

/// Largest file that is read; a HAR holds the bodies of a session.
const BYTES_MAX: u64 = 256 << 20;

/// Prints the script of some requests.
///
/// # Errors
/// When the input cannot be read or is nothing known, or the output is closed.
pub fn run(args: &ConvertRequestsArgs, console: &Console) -> Result<Exit, Failure> {
    let text = text(&args.input)?;
    let shown = if text == args.input { "the command" } else { args.input.as_str() };
    let requests =
        requests(&text).map_err(|error| Failure::could_not(format!("{shown}: {error}")))?;
    console.result(&script(&requests))?;
    Ok(Exit::Done)
}

fn text(input: &str) -> Result<String, Failure> {
    if input.split_whitespace().next() == Some("curl") && input.contains(char::is_whitespace) {
        return Ok(input.to_owned());
    }
    if input == "-" {
        let cannot = |why: String| Failure::could_not(format!("standard input: {why}"));
        let bytes = gake_files::bounded(io::stdin().lock(), BYTES_MAX)
            .map_err(|error| cannot(error.to_string()))?
            .ok_or_else(|| cannot(format!("it is longer than {BYTES_MAX} bytes")))?;
        return String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".to_owned()));
    }
    gake_files::read_to_string(Path::new(input), "what is converted", BYTES_MAX)
        .map_err(Failure::could_not)
}
