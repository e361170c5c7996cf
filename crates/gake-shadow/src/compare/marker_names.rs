//! Removes the marker header from bodies that echo the request (`/headers`, TRACE, error pages): it
//! is added to copies only, and is no difference.

use std::borrow::Cow;

use serde_json::Value;

use crate::config::fold;

/// The names of the headers that mark copies.
#[derive(Debug, Clone, Default)]
pub struct MarkerNames(Vec<String>);

impl MarkerNames {
    pub(super) fn add(&mut self, name: &str) {
        self.0.push(fold(name));
    }

    /// Whether a name is that of a marker, also as a CGI variable (`HTTP_X_GAKE_SHADOW`).
    pub(super) fn contains(&self, name: &str) -> bool {
        let name = fold(name);
        let name = name.strip_prefix("http-").unwrap_or(&name);
        self.0.iter().any(|marker| marker == name)
    }

    fn may_be_in(&self, text: &[u8]) -> bool {
        !self.0.is_empty() && {
            let folded = fold(&String::from_utf8_lossy(text));
            self.0.iter().any(|marker| folded.contains(marker))
        }
    }

    /// A text without the lines that begin with a marker.
    pub(super) fn without_lines<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.may_be_in(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        text.split_inclusive('\n').filter(|line| !self.is_marker_line(line)).collect()
    }

    /// Removes markers from a document: members, name-value pairs and header lines.
    pub(super) fn remove_from(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !self.contains(name));
                members.values_mut().for_each(|value| self.remove_from(value));
            }
            Value::Array(all) => {
                all.retain(|value| !self.is_marker(value));
                all.iter_mut().for_each(|value| self.remove_from(value));
            }
            Value::String(text) if text.contains('\n') => {
                if let Cow::Owned(cleaned) = self.without_lines(text) {
                    *text = cleaned;
                }
            }
            _ => {}
        }
    }

    /// Whether an element of an array is a marker, as `["X-Gake-Shadow", "1"]`,
    /// `{"name": "X-Gake-Shadow", ...}` or `"X-Gake-Shadow: 1"`.
    fn is_marker(&self, value: &Value) -> bool {
        let is =
            |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|n| self.contains(n));
        match value {
            Value::String(line) => self.is_marker_line(line),
            Value::Array(pair) => pair.len() == 2 && is(pair.first()),
            Value::Object(members) => ["name", "key", "header"].iter().any(|n| is(members.get(*n))),
            _ => false,
        }
    }

    /// Whether a line begins with the name of a marker and a separator.
    fn is_marker_line(&self, line: &str) -> bool {
        let line = line.trim_start_matches([' ', '\t', '"', '\'', '<', '[', '{', '(', '*', '-']);
        let name =
            line.split([':', '=', '"', '\'', ' ', '\t', '<', ',']).next().unwrap_or_default();
        self.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn markers() -> MarkerNames {
        let mut markers = MarkerNames::default();
        markers.add("X-Gake-Shadow");
        markers
    }

    #[test]
    fn only_markers_are_removed_from_a_document() {
        let mut value = json!({
            "headers": {"X-Gake-Shadow": "1", "x-gake-shadows": "2", "Host": "h"},
            "env": {"HTTP_X_GAKE_SHADOW": "1"},
            "pairs": [["X-Gake-Shadow", "1"], ["Host", "h"]],
            "named": [{"name": "x-gake-shadow", "value": "1"}, {"name": "host"}],
            "lines": ["X-Gake-Shadow: 1", "Host: h"],
            "raw": "GET / HTTP/1.1\r\nX-Gake-Shadow: 1\r\nHost: h\r\n",
        });
        markers().remove_from(&mut value);
        assert_eq!(
            value,
            json!({
                "headers": {"x-gake-shadows": "2", "Host": "h"},
                "env": {},
                "pairs": [["Host", "h"]],
                "named": [{"name": "host"}],
                "lines": ["Host: h"],
                "raw": "GET / HTTP/1.1\r\nHost: h\r\n",
            })
        );
    }

    #[test]
    fn marker_lines_are_removed_from_a_text() {
        let text = "a\n  X-Gake-Shadow = 1\nthe X-Gake-Shadow header\n\"x_gake_shadow\": 1\nb";
        assert_eq!(markers().without_lines(text), "a\nthe X-Gake-Shadow header\nb");
        assert!(matches!(markers().without_lines("a\nb"), Cow::Borrowed(_)));
        assert!(matches!(MarkerNames::default().without_lines(text), Cow::Borrowed(_)));
    }
}
