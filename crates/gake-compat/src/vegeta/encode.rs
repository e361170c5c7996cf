//! `vegeta encode`: converts results between encodings.

use gake_report::vegeta::{ResultEncoding, ResultWriter};

use super::files::{self, ResultFiles};
use crate::flags::{Flag, switch, value};
use gake_session::Console;
use gake_session::{Exit, Failure};

const FLAGS: &[Flag] = &[value(&["to"]), value(&["output"]), switch(&["h", "help"])];

const USAGE: &str = "\
Usage: vegeta encode [options] [<file>...]

Writes results in another encoding; that of the input is detected by its first bytes. CSV has no
header line; its columns are: time in Unix nanoseconds, status code, latency in nanoseconds,
bytes out, bytes in, error, body (base64), attack, number, method, URL, headers (base64).

  -to       csv, gob or json (default json)
  -output   a file (default stdout)
";

/// Runs the command.
pub fn run(args: &[String], console: &Console) -> Result<Exit, Failure> {
    let Some(parsed) = super::command(FLAGS, USAGE, args, console)? else { return Ok(Exit::Done) };
    let to = parsed.get("to").map_err(Failure::usage)?.unwrap_or(ResultEncoding::Json);
    let mut results = ResultFiles::open(&parsed.operands)?;
    let name = parsed.last("output").unwrap_or("stdout");
    let mut writer = ResultWriter::new(files::create(name, console)?, to);
    while let Some(record) = results.next(console)? {
        // Flushed, so that a reader can follow an attack.
        let written = writer.write(&record).and_then(|()| writer.flush());
        written.map_err(|error| files::write_failure(name, &error))?;
    }
    Ok(Exit::Done)
}
