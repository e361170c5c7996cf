//! A number read once, such as the rows of a table.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use tokio::runtime::{Builder, LocalOptions};

use gake_sql::{Dsn, DsnError, SqlKind};

use crate::database::first_field;
use crate::fetch::Fetch;
use crate::level::{FIRST, within};

/// The source of a number, as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountSource {
    /// `sql:mysql://USER:PASSWORD@HOST:SELECT ...`: the first field of a statement's result.
    Sql(Dsn, String),
    /// `http:URL#FIELD.FIELD`: a field of a JSON response.
    Http {
        /// The URL.
        url: String,
        /// The names of nested fields, from the outside in.
        field: String,
    },
}

/// Why a text is not a source of a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// Neither of the two forms.
    #[error(
        "write sql:mysql://USER:PASSWORD@HOST:SELECT COUNT(*) FROM DATABASE.TABLE (or postgres://, \
         sqlite:FILE) or http:URL#FIELD, as in http:http://localhost:8080/users/count#count"
    )]
    Form,
    /// Not a valid database.
    #[error(transparent)]
    Dsn(#[from] DsnError),
}

impl FromStr for CountSource {
    type Err = CountError;

    fn from_str(text: &str) -> Result<Self, CountError> {
        let (kind, rest) = text.split_once(':').ok_or(CountError::Form)?;
        match kind {
            "sql" => sql(rest),
            "http" | "https" => {
                // The kind may be omitted before a URL.
                let url = if rest.starts_with("//") { text } else { rest };
                let (url, field) = url.split_once('#').ok_or(CountError::Form)?;
                let is_http = url.starts_with("http://") || url.starts_with("https://");
                if !is_http || field.is_empty() {
                    return Err(CountError::Form);
                }
                Ok(Self::Http { url: url.to_owned(), field: field.to_owned() })
            }
            _ => Err(CountError::Form),
        }
    }
}

/// A URL and a statement, separated by a colon.
fn sql(text: &str) -> Result<CountSource, CountError> {
    let at = CountSource::statement_at(text).ok_or(CountError::Form)?;
    let (dsn, statement) = (&text[..at], text[at + 1..].trim());
    let (scheme, rest) = dsn.split_once(':').ok_or(CountError::Form)?;
    let kind = match scheme {
        "mysql" | "mariadb" => SqlKind::MySql,
        "postgres" | "postgresql" => SqlKind::Postgres,
        _ => return Err(CountError::Form),
    };
    Ok(CountSource::Sql(Dsn::parse(kind, rest)?, statement.to_owned()))
}

impl CountSource {
    /// The position of the colon before the statement in `DATABASE:SELECT ...`.
    #[must_use]
    pub fn statement_at(text: &str) -> Option<usize> {
        let lower = text.to_ascii_lowercase();
        let begin = |at: &usize| {
            let rest = lower[at + 1..].trim_start();
            ["select ", "with "].iter().any(|word| rest.starts_with(word))
        };
        lower.match_indices(':').map(|(at, _)| at).find(begin)
    }

    /// Reads the number. Blocks for at most some seconds.
    ///
    /// # Errors
    /// One sentence on why there is none, without passwords.
    pub fn read(&self) -> Result<u64, String> {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.map_err(|error| error.to_string())?;
        let number = match self {
            Self::Sql(dsn, statement) => runtime.block_on(first_field(dsn, statement)),
            Self::Http { url, field } => {
                let fetch = Fetch::new(std::slice::from_ref(url))?;
                runtime.block_on(within(FIRST, fetch.get(0))).and_then(|text| of_json(&text, field))
            }
        }?;
        number.trim().parse().map_err(|_| format!("{number:?} is not a number of rows"))
    }
}

fn of_json(text: &str, field: &str) -> Result<String, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("its response is not JSON: {error}"))?;
    let found = field.split('.').fold(&value, |value, name| &value[name]);
    match found {
        Value::Number(number) => Ok(number.to_string()),
        Value::String(text) => Ok(text.clone()),
        _ => Err(format!("its response has no number {field}")),
    }
}

impl fmt::Display for CountSource {
    /// The source, without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(dsn, statement) => write!(f, "{dsn}: {statement}"),
            Self::Http { url, field } => {
                write!(f, "{}#{field}", crate::source::without_secrets(url))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_fields_are_parsed() {
        let sql: CountSource =
            "sql:mysql://root:a:b@db:3306:SELECT COUNT(*) FROM shop.user".parse().unwrap();
        let CountSource::Sql(_, statement) = &sql else { panic!("{sql:?}") };
        assert_eq!(statement, "SELECT COUNT(*) FROM shop.user");
        assert!(!sql.to_string().contains("a:b"), "{sql}");
        for text in ["http:http://h/count#a.b", "http://h/count#a.b"] {
            let CountSource::Http { url, field } = text.parse().unwrap() else { panic!("{text}") };
            assert_eq!((url.as_str(), field.as_str()), ("http://h/count", "a.b"));
        }
        for text in ["", "lab", "sql:mysql://h", "http:http://h/", "sql:oracle://h:SELECT 1"] {
            assert!(text.parse::<CountSource>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_may_be_nested() {
        assert_eq!(of_json(r#"{"a":{"b":7}}"#, "a.b"), Ok("7".to_owned()));
        assert_eq!(of_json(r#"{"a":"8"}"#, "a"), Ok("8".to_owned()));
        assert!(of_json(r#"{"a":{}}"#, "a.b").unwrap_err().contains("a.b"));
    }
}
