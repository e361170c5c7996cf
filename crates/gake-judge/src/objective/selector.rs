//! `metric{key:value,key:"another value"}`: a metric, and tags that its samples must carry.

use std::fmt;

use gake_core::metric::Tags;

/// Splits off a selector: metric, tags, rest. `None` when the text before the brace is no metric
/// name or the braces contain no tags.
pub(crate) fn split(text: &str) -> Option<(&str, Tags, &str)> {
    let (metric, rest) = text.split_once('{')?;
    let (inside, rest) = rest.rsplit_once('}')?;
    let metric = metric.trim();
    if !is_metric_name(metric) {
        return None;
    }
    Some((metric, tags(inside)?, rest.trim()))
}

/// Whether `text` is a valid name of a metric.
pub(super) fn is_metric_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    !text.is_empty() && text.chars().all(is_plain)
}

fn tags(mut text: &str) -> Option<Tags> {
    let mut pairs = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return Some(Tags::new(pairs).without_secrets());
        }
        let (key, rest) = text.split_once(':')?;
        let (value, rest) = value(rest.trim_start())?;
        pairs.push((key.trim().to_owned(), value));
        text = match rest.trim_start() {
            "" => "",
            rest => rest.strip_prefix(',')?,
        };
    }
}

/// A value, quoted or up to the next comma, and the rest.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return Some((text[..end].trim_end().to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// Formats tags as [`split`] parses them.
pub(super) struct TagsDisplay<'a>(pub(super) &'a Tags);

impl fmt::Display for TagsDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "{";
        for (key, value) in self.0.pairs() {
            write!(f, "{separator}{key}:")?;
            let is_plain = !value.contains([',', '"', '\\', '{', '}']);
            if is_plain && !value.is_empty() && value.trim() == value {
                f.write_str(value)?;
            } else {
                write!(f, "\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))?;
            }
            separator = ",";
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn braces_in_a_label_are_not_tags() {
        for text in ["GET /users/{id}", "users{id}", "a b{c:d}", "{a:b}", "a{b:c", "a{b:\"c}"] {
            assert!(split(text).is_none(), "{text}");
        }
        let (metric, tags, rest) = split("checks{check:\"a, b\", group: g}: rate").unwrap();
        assert_eq!((metric, rest), ("checks", ": rate"));
        assert_eq!(tags, Tags::new([("check", "a, b"), ("group", "g")]));
        let (_, tags, rest) = split("response{name:http://h/a?b=c}").unwrap();
        assert_eq!((tags.get("name"), rest), (Some("http://h/a?b=c"), ""));
    }

    proptest! {
        #[test]
        fn tags_round_trip(values in prop::collection::vec("\\PC{0,8}", 0..4)) {
            let keys = ["name", "check", "group", "url"];
            let tags = Tags::new(keys.into_iter().zip(values));
            let text = format!("metric{}", TagsDisplay(&tags));
            let read = split(&text).map_or_else(Tags::default, |selector| selector.1);
            prop_assert_eq!(read, tags);
        }
    }
}
