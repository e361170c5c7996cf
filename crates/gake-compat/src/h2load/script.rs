//! Timing scripts: the schedule of each client's requests.

use gake_core::clock::Nanos;
use gake_core::schedule::TraceBuilder;
use gake_core::spec::{FieldPath, RecordingSpec, ScenarioSpec};
use gake_run::{Recordings, Replay, RunError};
use gake_wire::{HttpRequest, WeightedRequest};

use super::uris::lines;

/// A timing script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The path of its file.
    pub path: String,
    /// The URI of each line.
    pub uris: Vec<String>,
    /// The due time of each, from the start.
    pub offsets: Vec<Nanos>,
}

impl Script {
    /// Reads a file of lines, each an offset in milliseconds, a tab and a URI.
    ///
    /// # Errors
    /// When it cannot be read, or a line is malformed; the error has its number.
    pub fn open(path: &str) -> Result<Self, String> {
        let mut script = Self { path: path.to_owned(), uris: Vec::new(), offsets: Vec::new() };
        for (number, line) in lines(path)? {
            let bad = || format!("{path}: line {number}: write milliseconds, a tab and a URI");
            let (offset, uri) = line.split_once('\t').ok_or_else(bad)?;
            let millis: f64 = offset.trim().parse().map_err(|_| bad())?;
            // No range contains NaN. A year is longer than any run.
            if !(0.0..=365.0 * 86_400_000.0).contains(&millis) {
                return Err(bad());
            }
            // The resolution is a microsecond.
            script.offsets.push((millis * 1e3).round() as Nanos * 1_000);
            script.uris.push(uri.trim().to_owned());
        }
        if script.uris.is_empty() {
            return Err(format!("{path} holds no line"));
        }
        Ok(script)
    }

    /// The script of its first `lines` lines, or of all if it has fewer.
    pub fn first(mut self, lines: u64) -> Self {
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        self.uris.truncate(lines);
        self.offsets.truncate(lines);
        self
    }
}

/// A script as a load: each line is due once for each client.
#[derive(Debug)]
pub struct TimedRequests<'a> {
    pub script: &'a Script,
    /// The request of each line.
    pub requests: Vec<HttpRequest>,
    pub clients: usize,
}

impl Recordings for TimedRequests<'_> {
    fn read(
        &self,
        _: &RecordingSpec,
        _: &ScenarioSpec,
        at: &FieldPath,
    ) -> Result<Replay, RunError> {
        let mut lines: Vec<_> = self.script.offsets.iter().copied().zip(0_u32..).collect();
        // A client sends a line that is due before the previous one together with that.
        let mut last = 0;
        for (offset, _) in &mut lines {
            last = last.max(*offset);
            *offset = last;
        }
        let (mut trace, mut order) = (TraceBuilder::new(1.0), Vec::new());
        for (offset, line) in lines {
            for _ in 0..self.clients {
                let pushed = trace.push(offset);
                pushed.map_err(|error| RunError::spec(at.key("recording"), error))?;
                order.push(line);
            }
        }
        Ok(Replay {
            requests: self.requests.iter().cloned().map(WeightedRequest::from).collect(),
            order,
            trace: trace.finish(None),
            name: self.script.path.clone(),
            notes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_have_their_numbers_in_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"1\t/a\n\n0.5\t/b\n").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let script = Script::open(&path).unwrap();
        assert_eq!(
            (script.uris, script.offsets),
            (vec!["/a".into(), "/b".into()], vec![1_000_000, 500_000])
        );
        file.write_all(b"\n\nbad\n").unwrap();
        assert!(Script::open(&path).unwrap_err().contains("line 6: write milliseconds"));
    }
}
