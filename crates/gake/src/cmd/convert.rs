//! `gake convert`.

use std::io::{self, Write as _};
use std::path::Path;

use gake_convert::{ConvertOptions, convert};

use crate::cli::{ConvertRequestsArgs, Pauses, StaticFiles};
use gake_session::Console;
use gake_session::{Exit, Failure};

/// Largest file that is read; a HAR holds the bodies of a session.
const BYTES_MAX: u64 = 256 << 20;

/// Prints or writes the script of some requests, and warns of what was lost.
///
/// # Errors
/// When the input cannot be read or has an unknown format, or the output cannot be written.
pub fn run(args: &ConvertRequestsArgs, console: &Console) -> Result<Exit, Failure> {
    let text = text(&args.input)?;
    let shown = if text == args.input { "the command" } else { args.input.as_str() };
    let options = ConvertOptions {
        think: args.think == Pauses::Recorded,
        skip_static: args.static_files == StaticFiles::Skip,
    };
    let converted =
        convert(&text, options).map_err(|error| Failure::could_not(format!("{shown}: {error}")))?;
    match &args.output {
        Some(path) => write(path, args, &converted.script)?,
        None => console.result(&converted.script)?,
    }
    for warning in &converted.warnings {
        console.warn(warning);
    }
    Ok(Exit::Done)
}

fn write(path: &Path, args: &ConvertRequestsArgs, script: &str) -> Result<(), Failure> {
    let cannot = |why: String| Failure::could_not(format!("{}: {why}", path.display()));
    if path == Path::new(&args.input) {
        return Err(cannot("it is the input".to_owned()));
    }
    let mut file = gake_session::files::create(path)?;
    file.write_all(script.as_bytes()).map_err(|error| cannot(error.to_string()))
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
