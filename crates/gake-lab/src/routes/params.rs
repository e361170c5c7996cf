//! The parameters of a route, and the error of an invalid one.

use std::borrow::Cow;
use std::time::Duration;

use http::{StatusCode, Uri};

use crate::duration::parse_duration_ms;

/// A sentence about an invalid parameter.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadParam(String);

impl BadParam {
    pub(crate) fn new(sentence: impl Into<String>) -> BadParam {
        BadParam(sentence.into())
    }
}

/// A URI without the name of its route. Unknown query parameters are ignored: clients add them to
/// bypass caches.
pub(crate) struct Params<'a> {
    path: &'a str,
    query: &'a str,
}

impl<'a> Params<'a> {
    pub(crate) fn of(uri: &'a Uri) -> Params<'a> {
        Params { path: uri.path(), query: uri.query().unwrap_or_default() }
    }

    /// A duration in the query; a bare number is milliseconds.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>, BadParam> {
        self.parsed(name, |text| parse_duration_ms(text).map_err(|error| error.to_string()))
    }

    /// A count in the query.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, BadParam> {
        self.parsed(name, count)
    }

    /// A share from 0 to 1 in the query.
    pub(crate) fn fraction(&self, name: &str) -> Result<Option<f64>, BadParam> {
        self.parsed(name, |text| {
            let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
            value.ok_or_else(|| format!("{text:?} is not a number from 0 to 1"))
        })
    }

    /// An HTTP status in the query.
    pub(crate) fn status(&self, name: &str) -> Result<Option<StatusCode>, BadParam> {
        self.parsed(name, status)
    }

    /// The path after the route's name, as a duration.
    pub(crate) fn path_duration(&self, example: &str) -> Result<Duration, BadParam> {
        let text = self.path_rest(example)?;
        parse_duration_ms(text).map_err(|error| BadParam::new(error.to_string()))
    }

    /// The path after the route's name, as a count.
    pub(crate) fn path_count(&self, example: &str) -> Result<u64, BadParam> {
        count(self.path_rest(example)?).map_err(BadParam)
    }

    /// The path after the route's name, as an HTTP status.
    pub(crate) fn path_status(&self) -> Result<StatusCode, BadParam> {
        status(self.path_rest("/status/503")?).map_err(BadParam)
    }

    fn path_rest(&self, example: &str) -> Result<&'a str, BadParam> {
        let rest = self.path.get(1..).and_then(|tail| tail.split_once('/'));
        let rest = rest.map(|(_, rest)| rest).filter(|rest| !rest.is_empty());
        rest.ok_or_else(|| BadParam::new(format!("a value is missing: write {example}")))
    }

    fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, BadParam> {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        let Some(value): Option<Cow<'_, str>> =
            pairs.find(|(key, _)| key == name).map(|(_, value)| value)
        else {
            return Ok(None);
        };
        let named = |error| BadParam(format!("bad {name}: {error}"));
        parse(&value).map(Some).map_err(named)
    }
}

fn count(text: &str) -> Result<u64, String> {
    // u64's parser would accept "+5".
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| is_plain);
    value
        .filter(|value| *value <= MOST)
        .ok_or_else(|| format!("{text:?} is not a whole number from 0 to 2^60"))
}

/// Far beyond any use, and safe in length arithmetic.
const MOST: u64 = 1 << 60;

/// 1xx are not final responses, and a server may not send them as such.
fn status(text: &str) -> Result<StatusCode, String> {
    let code = count(text).ok().filter(|code| (200..=999).contains(code));
    let code = code.and_then(|code| StatusCode::from_u16(code as u16).ok());
    code.ok_or_else(|| format!("{text:?} is not a status from 200 to 999"))
}
