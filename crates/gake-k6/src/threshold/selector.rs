//! The key of a threshold: a metric, or a sub-metric by tags.

use gake_core::metric::Tags;

/// A metric and the tags that its samples must have: `http_req_duration{name:login}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricSelector {
    /// The metric.
    pub metric: String,
    /// The tags; none for the metric itself.
    pub tags: Tags,
}

/// An error in a key, in k6's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A brace is not closed or not opened.
    #[error("metric {0:?} has unmatched opening/close curly brace")]
    Braces(String),
    /// A text follows the tags.
    #[error("metric {0:?} lacks a closing curly brace in its last position")]
    Rest(String),
    /// A tag is not `key:value`.
    #[error("metric {0:?} tag expression is malformed")]
    Tag(String),
}

impl MetricSelector {
    /// Parses the key of a threshold.
    ///
    /// # Errors
    /// When its tags are malformed.
    pub fn parse(key: &str) -> Result<Self, SelectorError> {
        let Some((metric, tags)) = key.split_once('{').filter(|(metric, _)| !metric.is_empty())
        else {
            return match key.starts_with('{') || !key.contains('}') {
                true => Ok(Self { metric: key.to_owned(), tags: Tags::default() }),
                false => Err(SelectorError::Braces(key.to_owned())),
            };
        };
        if !tags.contains('}') {
            return Err(SelectorError::Braces(key.to_owned()));
        }
        let tags = tags.strip_suffix('}').ok_or_else(|| SelectorError::Rest(key.to_owned()))?;
        let tags = tags.split(',').map(tag).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { metric: metric.to_owned(), tags: Tags::new(tags).without_secrets() })
    }
}

fn tag(text: &str) -> Result<(String, String), SelectorError> {
    let malformed = || SelectorError::Tag(text.to_owned());
    let (key, value) = text.split_once(':').ok_or_else(malformed)?;
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let (key, value) = (plain(key), plain(value));
    if key.is_empty() || value.is_empty() { Err(malformed()) } else { Ok((key, value)) }
}
