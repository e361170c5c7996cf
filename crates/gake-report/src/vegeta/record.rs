//! One result, and the encodings of results.

use std::fmt;

/// Header names with their values. Go has a map; here the order of the file is kept, so that
/// reading and writing a file does not change it.
pub type Headers = Vec<(String, Vec<String>)>;

/// One result of an attack, with the fields of Vegeta's own type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VegetaRecord {
    /// The attack's name, `-name`.
    pub attack: String,
    /// The number of the request within its attack, from 0.
    pub seq: u64,
    /// The status code; 0 when there was no response.
    pub code: u16,
    /// The start of the request.
    pub timestamp: Timestamp,
    /// From the start to the end, in nanoseconds.
    pub latency: i64,
    /// Bytes of the request's body.
    pub bytes_out: u64,
    /// Bytes of the response's body.
    pub bytes_in: u64,
    /// Why it failed; empty for a success.
    pub error: String,
    /// The kept bytes of the response's body.
    pub body: Vec<u8>,
    /// The request's method.
    pub method: String,
    /// The request's URL.
    pub url: String,
    /// The response's headers; `None` when there was no response.
    pub headers: Option<Headers>,
}

impl VegetaRecord {
    /// The end of the request, in Unix nanoseconds.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.timestamp.unix_ns.saturating_add(self.latency)
    }

    /// Whether Vegeta counts it as a success: a status from 200 to 399.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..400).contains(&self.code)
    }
}

/// An instant and the zone in which it was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// Nanoseconds since 1970, in the years 1677 to 2262.
    pub unix_ns: i64,
    /// Seconds east of Greenwich; `None` is UTC by name, which Go distinguishes from an offset of
    /// 0.
    pub offset: Option<i32>,
}

impl Timestamp {
    /// An instant in local time at Greenwich.
    #[must_use]
    pub fn local(unix_ns: i64) -> Self {
        Self { unix_ns, offset: Some(0) }
    }
}

/// The encoding of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultEncoding {
    /// Go's binary stream, which an attack writes.
    Gob,
    /// One object per line.
    Json,
    /// Twelve columns without a header line.
    Csv,
}

/// The text is not the name of an encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no encoding {0:?}; there are csv, gob and json")]
pub struct EncodingError(String);

impl std::str::FromStr for ResultEncoding {
    type Err = EncodingError;

    fn from_str(text: &str) -> Result<Self, EncodingError> {
        match text {
            "gob" => Ok(Self::Gob),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            _ => Err(EncodingError(text.to_owned())),
        }
    }
}

impl fmt::Display for ResultEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gob => "gob",
            Self::Json => "json",
            Self::Csv => "csv",
        })
    }
}
