//! Scripts on several machines: what travels to agents, and what comes back beside figures.

use std::sync::Arc;

use gake_run::script::{LogLevel, LogLine};
use serde::{Deserialize, Serialize};

/// The names of fields that lines of a script's log have; others do not travel.
const FIELDS: [&str; 6] = ["source", "executor", "scenario", "error", "hint", "module"];

/// Bytes of a line that travel.
const LINE_MAX: usize = 64 << 10;

/// A script for agents.
#[derive(Debug, Clone)]
pub struct ScriptParcel {
    /// The script with its options and everything that it reads: a file as `gake as k6 archive`
    /// writes it.
    pub archive: Vec<u8>,
    /// What the `Math.random` of its users begins with.
    pub seed: Option<u64>,
    /// Whether `console.debug` is to be told.
    pub is_verbose: bool,
}

/// What a script does on an agent beside its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptEvent {
    /// It wrote a line.
    Line(ScriptLine),
    /// Lines were not passed on, since there were too many: how many.
    LinesLost(u64),
    /// It ended the test; why.
    Aborted(String),
    /// It marked the test as failed.
    Failed,
}

/// Hears what scripts do: the name of the agent, and what happened there. Must not block.
pub type ScriptListener = Arc<dyn Fn(&str, ScriptEvent) + Send + Sync>;

/// A line of a script's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLine {
    level: u8,
    message: String,
    fields: Vec<(String, String)>,
}

const LEVELS: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error];

impl From<&LogLine> for ScriptLine {
    fn from(line: &LogLine) -> Self {
        let level = LEVELS.iter().position(|level| *level == line.level).unwrap_or(0) as u8;
        let mut message = line.message.clone();
        message.truncate(message.floor_char_boundary(LINE_MAX));
        let fields = line.fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        Self { level, message, fields: fields.collect() }
    }
}

impl From<ScriptLine> for LogLine {
    fn from(line: ScriptLine) -> Self {
        let level = LEVELS.get(usize::from(line.level)).copied().unwrap_or(LogLevel::Error);
        let known = |(key, value): (String, String)| {
            let key = FIELDS.iter().find(|known| **known == key)?;
            Some((*key, value))
        };
        let fields = line.fields.into_iter().filter_map(known).collect();
        Self { level, message: line.message, fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        for level in LEVELS {
            let fields = vec![("source", "console".to_owned()), ("scenario", "a".to_owned())];
            let line = LogLine { level, message: "hé".to_owned(), fields };
            assert_eq!(LogLine::from(ScriptLine::from(&line)), line);
        }
        let long =
            LogLine { level: LogLevel::Info, message: "é".repeat(LINE_MAX), fields: vec![] };
        assert_eq!(ScriptLine::from(&long).message.len(), LINE_MAX);
    }
}
