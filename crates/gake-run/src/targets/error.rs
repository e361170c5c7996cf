//! Errors in targets files.

use std::fmt;

/// An error in a targets file; its text is a sentence that starts with the line.
#[derive(Debug)]
pub struct TargetError {
    /// The line, from 1; 0 for the whole file.
    pub line: usize,
    /// The kind of error.
    pub kind: TargetErrorKind,
}

/// The kinds of errors. Texts quoted from the file are cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetErrorKind {
    /// The file has no target.
    #[error("there is no target in the file")]
    Empty,
    /// A line that should start a target does not.
    #[error("expected \"METHOD URL\", found {0}")]
    RequestLine(QuotedText),
    /// A URL by itself where each target has its method.
    #[error("bad target: {0} has no method; write for example GET before the URL")]
    NoMethod(QuotedText),
    /// The method is not valid: upper-case letters in the http format, a token in the json format.
    #[error("expected an HTTP method such as GET, found {0}")]
    Method(QuotedText),
    /// The URL is empty or contains a control character. The code that resolves it may report more
    /// errors of this kind.
    #[error("expected a URL, found {0}")]
    Url(QuotedText),
    /// A line after the request line is not a header.
    #[error("expected \"Name: value\", found {0}")]
    Header(QuotedText),
    /// `@` without a file name.
    #[error("expected a file name after the @")]
    BodyFile,
    /// A `# gake:` comment that is not valid.
    #[error("expected weight=NUMBER or label=NAME after \"# gake:\", found {0}")]
    Directive(QuotedText),
    /// A `# gake:` comment without a target after it.
    #[error("no target follows the \"# gake:\" comment")]
    Dangling,
    /// The weight is 0.
    #[error("a weight must be at least 1")]
    Weight,
    /// The line is not a JSON object, or one of its values has the wrong type.
    #[error("{message} (column {column})")]
    Json {
        /// The message of the JSON parser.
        message: String,
        /// Bytes from the start of the line's text, from 1.
        column: usize,
    },
    /// A JSON object without a required key.
    #[error("the key {0:?} is missing or empty")]
    Missing(&'static str),
    /// The body is not base64 (RFC 4648, section 4, with padding).
    #[error("the body is not base64: {0}")]
    Base64(base64::DecodeError),
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 text")]
    NotUtf8,
    /// The line is longer than [`MAX_LINE`](super::MAX_LINE).
    #[error("the line is longer than {} MiB", super::MAX_LINE >> 20)]
    TooLong,
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(std::io::Error),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => self.kind.fmt(f),
            line => write!(f, "line {line}: {}", self.kind),
        }
    }
}

impl std::error::Error for TargetError {}

/// A quotation from the file, escaped and cut to fit a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedText(String);

impl QuotedText {
    /// Quotes `text`.
    pub fn new(text: &str) -> Self {
        const SHOWN: usize = 60;
        let mut chars = text.chars();
        let shown: String = chars.by_ref().take(SHOWN).collect();
        let more = if chars.next().is_some() { " ..." } else { "" };
        Self(format!("{shown:?}{more}"))
    }
}

impl fmt::Display for QuotedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
