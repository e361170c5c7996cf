//! Scripts on several machines: the parcel for agents, and events from them.

use std::sync::Arc;

use bytes::Bytes;
use gake_core::exact;
use gake_core::record::Tally;
use gake_run::script::{LogLevel, LogLine, SetupResult};
use gake_text::redact::Redacted;
use serde::{Deserialize, Serialize};

use crate::FleetError;
use crate::files::{BYTES_MAX, FileContents, hash};
use crate::message::{ScriptOffer, from_hex, hex};

/// Fields of log lines that are sent; others are omitted.
const FIELDS: [&str; 6] = ["source", "executor", "scenario", "error", "hint", "module"];

/// Maximum bytes of a script in a journal.
const JOURNAL_MAX: usize = 16 << 20;

/// Maximum bytes of a log line; longer ones are cut.
const LINE_MAX: usize = 64 << 10;

/// The same for a field of a line, and for the reason of an abort.
const FIELD_MAX: usize = 4 << 10;

/// A script for agents.
#[derive(Debug, Clone)]
pub struct ScriptParcel {
    /// An archive of the script with its options and all files that it reads, as `gake as k6
    /// archive` writes it.
    pub archive: Vec<u8>,
    /// The seed of `Math.random`.
    pub seed: Option<u64>,
    /// Whether to send lines of `console.debug`.
    pub is_verbose: bool,
    /// Tags by which sub-metrics are selected. `None` if the load is that of the script's options,
    /// which describe the whole run.
    pub keys: Option<Vec<String>>,
    /// How the program shows the result, in a format of its own, for a process that takes over the
    /// run.
    pub showing: String,
}

impl ScriptParcel {
    /// Checks the size, including the return value of `setup`.
    ///
    /// # Errors
    /// When it is too large.
    pub fn check_size(&self, data: Option<&str>) -> Result<(), FleetError> {
        let size = self.archive.len() + data.map_or(0, str::len);
        if size <= BYTES_MAX {
            return Ok(());
        }
        Err(FleetError::Spec(format!(
            "the script, its files and the data of its setup take {size} bytes, and {} MB can be sent",
            BYTES_MAX >> 20
        )))
    }
}

/// The script of a run that is taken over.
#[derive(Debug)]
pub struct OrphanScript {
    /// The archive, as in [`ScriptParcel`].
    pub archive: Vec<u8>,
    /// The result of `setup`.
    pub set_up: SetupResult,
    /// How to show the result, as in [`ScriptParcel`].
    pub showing: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JournalScript {
    /// In hexadecimal.
    archive: String,
    data: Option<String>,
    /// The exact encoding of the samples of `setup`.
    recorded: String,
    showing: String,
}

impl JournalScript {
    /// The error says why the journal cannot contain it.
    pub(crate) fn new(parcel: &ScriptParcel, set_up: &SetupResult) -> Result<Self, String> {
        let recorded = exact::encode(&set_up.recorded).map_err(|error| error.to_string())?;
        let data = set_up.data.as_ref().map_or(0, String::len);
        let size = parcel.archive.len() + data + recorded.len();
        if size > JOURNAL_MAX {
            return Err(format!(
                "the script, its files and the result of its setup take {size} bytes, and a journal \
                 holds {} MB of them",
                JOURNAL_MAX >> 20
            ));
        }
        Ok(Self {
            archive: hex(&parcel.archive),
            data: set_up.data.clone(),
            recorded: String::from_utf8_lossy(&recorded).into_owned(),
            showing: parcel.showing.clone(),
        })
    }

    /// Decodes the script; `None` if it is not valid.
    pub(crate) fn open(&self) -> Option<OrphanScript> {
        let recorded: Tally = exact::decode(self.recorded.as_bytes()).ok()?;
        let set_up = SetupResult { data: self.data.clone(), recorded };
        let showing = self.showing.clone();
        Some(OrphanScript { archive: from_hex(&self.archive)?, set_up, showing })
    }
}

/// The offer of a script, and the files for it. `data` is the return value of `setup`.
///
/// # Errors
/// When it is too large.
pub(crate) fn script_offer(
    parcel: &ScriptParcel,
    data: Option<&str>,
) -> Result<(ScriptOffer, FileContents), FleetError> {
    parcel.check_size(data)?;
    let mut contents = FileContents::new();
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
        keys: parcel.keys.clone(),
    };
    Ok((offer, contents))
}

/// An event of a script on an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptEvent {
    /// A line of its log.
    Line(ScriptLine),
    /// The number of lines that were dropped because there were too many.
    LinesLost(u64),
    /// It aborted the test, for this reason.
    Aborted(String),
    /// It marked the test as failed.
    Failed,
}

impl ScriptEvent {
    /// An abort, with `reason` cut to its maximum length.
    pub(crate) fn aborted(reason: &str) -> Self {
        Self::Aborted(cut(reason, FIELD_MAX))
    }
}

/// Cuts a text to at most `most` bytes.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

fn shortened(text: &Redacted, most: usize) -> Redacted {
    let mut text = text.clone();
    text.cut(most, "");
    text
}

/// Receives the name of an agent, the index of a script and an event of it. Must not block.
pub type ScriptListener = Arc<dyn Fn(&str, usize, ScriptEvent) + Send + Sync>;

/// A line of a script's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLine {
    level: u8,
    message: Redacted,
    fields: Vec<(String, Redacted)>,
}

const LEVELS: [LogLevel; 4] = [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error];

impl From<&LogLine> for ScriptLine {
    fn from(line: &LogLine) -> Self {
        let level = LEVELS.iter().position(|level| *level == line.level).unwrap_or(0) as u8;
        let own = line.fields.iter().filter(|(key, _)| FIELDS.contains(key));
        let fields = own.map(|(key, value)| ((*key).to_owned(), shortened(value, FIELD_MAX)));
        Self { level, message: shortened(&line.message, LINE_MAX), fields: fields.collect() }
    }
}

impl From<ScriptLine> for LogLine {
    fn from(line: ScriptLine) -> Self {
        let level = LEVELS.get(usize::from(line.level)).copied().unwrap_or(LogLevel::Error);
        let known = |(key, value): (String, Redacted)| {
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
    use expect_test::expect;
    use gake_text::redact::Redactor;

    #[test]
    fn a_parcel_that_is_too_large_is_refused() {
        let archive = vec![0; BYTES_MAX];
        let mut parcel = ScriptParcel {
            archive,
            seed: None,
            is_verbose: false,
            keys: None,
            showing: String::new(),
        };
        assert!(parcel.check_size(None).is_ok());
        expect!["a fleet cannot run this: the script, its files and the data of its setup take 268435457 bytes, and 256 MB can be sent"].assert_eq(&parcel.check_size(Some("x")).unwrap_err().to_string());
        parcel.archive.push(0);
        assert!(parcel.check_size(None).is_err());
    }

    #[test]
    fn a_journal_has_the_whole_script_unless_it_is_too_large() {
        let mut recorded = Tally::default();
        recorded.counts.started = 3;
        let set_up = SetupResult { data: Some("{}".to_owned()), recorded };
        let parcel = |archive: Vec<u8>| ScriptParcel {
            archive,
            seed: None,
            is_verbose: false,
            keys: None,
            showing: "compact".to_owned(),
        };
        let in_journal = JournalScript::new(&parcel(vec![0, 9, 255]), &set_up).unwrap();
        let opened = in_journal.open().unwrap();
        assert_eq!(
            (opened.archive.as_slice(), opened.showing.as_str()),
            (&[0, 9, 255][..], "compact")
        );
        assert_eq!(opened.set_up.data, set_up.data);
        assert_eq!(opened.set_up.recorded.counts, set_up.recorded.counts);
        let why = JournalScript::new(&parcel(vec![0; JOURNAL_MAX]), &set_up).unwrap_err();
        assert!(why.contains("a journal holds 16 MB"), "{why}");
    }

    #[test]
    fn lines_are_converted_back() {
        for level in LEVELS {
            let fields = [("source", "console"), ("scenario", "a")]
                .map(|(key, value)| (key, Redacted::plain(value)))
                .to_vec();
            let line = LogLine { level, message: Redacted::plain("hé"), fields };
            assert_eq!(LogLine::from(ScriptLine::from(&line)), line);
        }
        let message = Redactor::off().text(&"é".repeat(LINE_MAX));
        let long = LogLine { level: LogLevel::Info, message, fields: vec![] };
        assert_eq!(ScriptLine::from(&long).message.len(), LINE_MAX);
        let long = LogLine { fields: vec![("error", long.message.clone())], ..long };
        assert_eq!(ScriptLine::from(&long).fields[0].1.len(), FIELD_MAX);
        assert_eq!(ScriptEvent::aborted(&long.message), ScriptEvent::Aborted("é".repeat(2 << 10)));
    }
}
