//! Files of results, read and written: `stdin` and `stdout` are the streams.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use gake_files::Access;
use gake_report::vegeta::{RecordError, ResultReader, RoundRobin, VegetaRecord};

use gake_session::Failure;
use gake_session::console::{Console, stdin};

/// The most warnings to show for a file; further ones are counted.
const WARNINGS_MAX: u64 = 5;

/// Bytes read at once.
const READ_AHEAD: usize = 1 << 16;

/// Results of several files.
pub struct ResultFiles {
    records: RoundRobin<Box<dyn BufRead + Send>>,
    warned: u64,
}

impl ResultFiles {
    /// Opens the files; standard input by default.
    ///
    /// # Errors
    /// When one cannot be read or holds no results.
    pub fn open(names: &[String]) -> Result<Self, Failure> {
        let stdin = ["stdin".to_owned()];
        let names = if names.is_empty() { &stdin } else { names };
        let readers = names.iter().map(|name| Ok((name.clone(), reader(name)?)));
        let records = RoundRobin::new(readers.collect::<Result<_, Failure>>()?);
        Ok(Self { records, warned: 0 })
    }

    /// The next result; invalid records lead to warnings.
    ///
    /// # Errors
    /// When a file holds no results at all.
    pub fn next(&mut self, console: &Console) -> Result<Option<VegetaRecord>, Failure> {
        loop {
            match self.records.next_record() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {
                    if self.warned > WARNINGS_MAX {
                        let more = self.warned - WARNINGS_MAX;
                        console.warn(&format!("{more} more records were left out"));
                    }
                    return Ok(None);
                }
                Err((name, error @ RecordError::Foreign)) => return Err(failure(&name, &error)),
                Err((name, error)) => {
                    self.warned += 1;
                    if self.warned <= WARNINGS_MAX {
                        console.warn(&format!("{name}: {error}"));
                    }
                }
            }
        }
    }
}

fn reader(name: &str) -> Result<ResultReader<Box<dyn BufRead + Send>>, Failure> {
    let input: Box<dyn BufRead + Send> = match name {
        "stdin" => Box::new(BufReader::with_capacity(READ_AHEAD, stdin())),
        path => {
            let file = File::open(path).map_err(|error| failure(path, &error.into()))?;
            Box::new(BufReader::with_capacity(READ_AHEAD, file))
        }
    };
    ResultReader::detect(input).map_err(|error| failure(name, &error))
}

fn failure(name: &str, error: &RecordError) -> Failure {
    Failure::could_not(format!("{name} {error}"))
}

/// Opens the output of a command.
pub fn create(name: &str, console: &Console) -> Result<Box<dyn Write + Send>, Failure> {
    Ok(match name {
        "stdout" => console.output(),
        path => {
            let created = gake_files::create(Path::new(path), Access::Mask);
            let file = created.map_err(|error| write_failure(path, &error))?;
            Box::new(BufWriter::new(file))
        }
    })
}

/// The failure for a failed write; a closed pipe is no error.
pub fn write_failure(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::OutputClosed;
    }
    Failure::could_not(format!("{name} cannot be written: {error}"))
}
