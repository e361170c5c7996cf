//! Specs in files: TOML or JSON, bounded, with errors that name the line.

use std::fmt;
use std::io::Read;

use super::error::{FieldPath, SpecError};
use super::locate::FieldSpans;
pub use super::syntax::Syntax;
use super::{RunDraft, RunSpec};

/// Maximum length of a spec, in bytes.
pub const BYTES_MAX: u64 = 16 << 20;

/// A spec with its text, so that later errors can name the line.
#[derive(Debug, Clone)]
pub struct SpecFile {
    name: String,
    text: String,
    syntax: Syntax,
    draft: RunDraft,
}

/// An error in a spec file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileError {
    /// The file, as the user named it.
    pub file: String,
    /// Line and column, both from 1, if known.
    pub position: Option<(usize, usize)>,
    /// The field, or the root if unknown.
    pub field: FieldPath,
    /// The message.
    pub problem: String,
}

impl SpecFile {
    /// Reads a spec; `name` is for messages and the syntax.
    ///
    /// # Errors
    /// When it cannot be read, is longer than [`BYTES_MAX`], or is not a spec.
    pub fn read(name: &str, reader: impl Read) -> Result<Self, FileError> {
        let plain = |problem: String| FileError {
            file: name.to_owned(),
            position: None,
            field: FieldPath::root(),
            problem,
        };
        let mut bytes = Vec::new();
        let read = reader.take(BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| plain(format!("it cannot be read: {error}")))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(plain(format!("a spec has at most {} MiB", BYTES_MAX >> 20)));
        }
        let text = String::from_utf8(bytes).map_err(|_| plain("it is not UTF-8".to_owned()))?;
        let syntax = Syntax::of(name, &text);
        match parse(&text, syntax) {
            Ok(draft) => Ok(Self { name: name.to_owned(), text, syntax, draft }),
            Err((offset, problem)) => {
                let field = offset.and_then(|at| FieldSpans::of(&text, syntax).at(at));
                let position = offset.map(|at| position(&text, at));
                let field = field.unwrap_or_default();
                Err(FileError { file: name.to_owned(), position, field, problem })
            }
        }
    }

    /// The file, as the user named it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The draft.
    #[must_use]
    pub fn draft(&self) -> &RunDraft {
        &self.draft
    }

    /// The spec.
    ///
    /// # Errors
    /// As [`RunDraft::decide`], with the position in the file.
    pub fn spec(&self) -> Result<RunSpec, FileError> {
        self.draft.clone().decide().map_err(|error| self.locate(error))
    }

    /// Adds the position in the file to an error.
    #[must_use]
    pub fn locate(&self, error: SpecError) -> FileError {
        let offset = FieldSpans::of(&self.text, self.syntax).offset(&error.path);
        FileError {
            file: self.name.clone(),
            position: offset.map(|at| position(&self.text, at)),
            field: error.path,
            problem: error.problem,
        }
    }
}

impl RunDraft {
    /// Formats the draft as a file.
    ///
    /// # Errors
    /// When a path in it is not UTF-8.
    pub fn write(&self, syntax: Syntax) -> Result<String, String> {
        match syntax {
            Syntax::Toml => toml::to_string(self).map_err(|error| error.to_string()),
            Syntax::Json => {
                let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
                Ok(text + "\n")
            }
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        let field = self.field.to_string();
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, ": {field}{colon}{}", self.problem)
    }
}

/// The draft, or the offset and message of an error.
fn parse(text: &str, syntax: Syntax) -> Result<RunDraft, (Option<usize>, String)> {
    match syntax {
        Syntax::Toml => toml::from_str(text).map_err(|error| {
            let problem = error.message().lines().collect::<Vec<_>>().join("; ");
            (error.span().map(|span| span.start), problem)
        }),
        Syntax::Json => serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            // The position is printed in front.
            let problem =
                message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text);
            (Some(offset(text, error.line(), error.column())), problem.to_owned())
        }),
    }
}

/// Line and column of an offset, in characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The offset of a line and column as in `serde_json`: from 1, in bytes.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}
