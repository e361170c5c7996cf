//! Scripts on several machines: what travels to agents, and what comes back beside figures.

use std::sync::Arc;

use bytes::Bytes;
use gake_run::script::{LogLevel, LogLine};
use serde::{Deserialize, Serialize};

use crate::FleetError;
use crate::files::{BYTES_MAX, Contents, hash};
use crate::message::ScriptOffer;
use crate::other_load::OtherLoad;

/// The names of fields that lines of a script's log have; others do not travel.
const FIELDS: [&str; 6] = ["source", "executor", "scenario", "error", "hint", "module"];

/// Bytes of a line that travel.
const LINE_MAX: usize = 64 << 10;

/// The same of a field of a line, and of the reason for which a script ends the test.
const FIELD_MAX: usize = 4 << 10;

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
    /// Whether the spec's scenarios are fired instead of those of the options, and what goes with
    /// them. How users connect stays as the options have it.
    pub other_load: Option<OtherLoad>,
}

impl ScriptParcel {
    /// Whether it is small enough to travel, with `data` of its setup.
    ///
    /// # Errors
    /// Its size, and the bound.
    pub fn check_size(&self, data: Option<&str>) -> Result<(), FleetError> {
        let size = self.archive.len() + data.map_or(0, str::len);
        if size <= BYTES_MAX {
            return Ok(());
        }
        Err(FleetError::Spec(format!(
            "the script, what it reads and the data of its setup take {size} bytes, and {} MB travel",
            BYTES_MAX >> 20
        )))
    }
}

/// What travels of a script, and the offer that names it. `data` is what `setup` returned.
///
/// # Errors
/// When it is too large.
pub(crate) fn take_script(
    parcel: &ScriptParcel,
    data: Option<&str>,
) -> Result<(ScriptOffer, Contents), FleetError> {
    parcel.check_size(data)?;
    let mut contents = Contents::new();
    let mut take = |bytes: Bytes| {
        let hash = hash(&bytes);
        contents.insert(hash.clone(), bytes);
        hash
    };
    let offer = ScriptOffer {
        archive: take(parcel.archive.clone().into()),
        data: data.map(|data| take(data.to_owned().into())),
        seed: parcel.seed,
        is_verbose: parcel.is_verbose,
        other_load: parcel.other_load.clone(),
    };
    Ok((offer, contents))
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

impl ScriptEvent {
    /// It ended the test: for `reason`, as far as that travels.
    pub(crate) fn aborted(reason: &str) -> Self {
        Self::Aborted(cut(reason, FIELD_MAX))
    }
}

/// The first bytes of a text, `most` at most.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
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
        let own = line.fields.iter().filter(|(key, _)| FIELDS.contains(key));
        let fields = own.map(|(key, value)| ((*key).to_owned(), cut(value, FIELD_MAX)));
        Self { level, message: cut(&line.message, LINE_MAX), fields: fields.collect() }
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
    fn what_is_too_large_to_travel_is_known_beforehand() {
        let archive = vec![0; BYTES_MAX];
        let mut parcel = ScriptParcel { archive, seed: None, is_verbose: false, other_load: None };
        assert!(parcel.check_size(None).is_ok());
        assert!(parcel.check_size(Some("x")).unwrap_err().to_string().contains("256 MB travel"));
        parcel.archive.push(0);
        assert!(parcel.check_size(None).is_err());
    }

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
        let long = LogLine { fields: vec![("error", long.message.clone())], ..long };
        assert_eq!(ScriptLine::from(&long).fields[0].1.len(), FIELD_MAX);
        assert_eq!(ScriptEvent::aborted(&long.message), ScriptEvent::Aborted("é".repeat(2 << 10)));
    }
}
