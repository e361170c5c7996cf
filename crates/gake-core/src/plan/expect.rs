//! Which status codes count as ok.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The status codes that a run expects; any other response is failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub struct ExpectedStatus {
    ranges: Vec<RangeInclusive<u16>>,
}

impl ExpectedStatus {
    /// Accepts only this status code.
    #[must_use]
    pub fn only(code: u16) -> Self {
        Self { ranges: vec![code..=code] }
    }
}

impl Default for ExpectedStatus {
    /// 2xx and 3xx.
    fn default() -> Self {
        Self { ranges: vec![200..=399] }
    }
}

impl TryFrom<String> for ExpectedStatus {
    type Error = ExpectedStatusError;

    fn try_from(text: String) -> Result<Self, ExpectedStatusError> {
        text.parse()
    }
}

impl From<ExpectedStatus> for String {
    fn from(expect: ExpectedStatus) -> Self {
        expect.to_string()
    }
}

/// Why a text is not a list of status codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a list of status codes; write for example 200,404 or 200-299 or 2xx")]
pub struct ExpectedStatusError(String);

impl ExpectedStatus {
    /// Whether a response with this status is ok.
    #[inline]
    #[must_use]
    pub fn accepts(&self, status: u16) -> bool {
        self.ranges.iter().any(|range| range.contains(&status))
    }
}

impl std::str::FromStr for ExpectedStatus {
    type Err = ExpectedStatusError;

    fn from_str(text: &str) -> Result<Self, ExpectedStatusError> {
        let ranges = text
            .split(',')
            .map(|item| parse_range(item.trim()))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| ExpectedStatusError(text.to_owned()))?;
        Ok(Self { ranges })
    }
}

fn parse_range(item: &str) -> Option<RangeInclusive<u16>> {
    if let [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] = item.as_bytes() {
        let first = u16::from(class - b'0') * 100;
        return Some(first..=first + 99);
    }
    let (from, to) = item.split_once('-').unwrap_or((item, item));
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    ((100..=999).contains(&from) && (from..=999).contains(&to)).then_some(from..=to)
}

impl fmt::Display for ExpectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if range.start() == range.end() {
                write!(f, "{comma}{}", range.start())?;
            } else {
                write!(f, "{comma}{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_codes_classes_and_ranges() {
        let expect: ExpectedStatus = "200-204, 404,5xx".parse().unwrap();
        for (status, ok) in [(200, true), (204, true), (205, false), (404, true), (503, true)] {
            assert_eq!(expect.accepts(status), ok, "{status}");
        }
        assert_eq!(expect.to_string(), "200-204,404,500-599");
        assert!(ExpectedStatus::default().accepts(302) && !ExpectedStatus::default().accepts(404));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "abc", "20", "300-200", "200,", "9xx", "1000"] {
            assert!(text.parse::<ExpectedStatus>().is_err(), "{text}");
        }
    }
}
