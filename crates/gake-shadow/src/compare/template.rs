//! Endpoints: a method and a path with placeholders.
//!
//! A segment becomes a placeholder when it looks like an identifier, or when there are too many
//! distinct segments at its position.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Distinct segments at one position before they are taken for names.
const SEGMENTS_MAX: usize = 100;

/// Positions whose segments are tracked.
const POSITIONS_MAX: usize = 2_000;

/// Segments of a path; the rest is `...`.
const DEPTH_MAX: usize = 12;

/// A longer segment is an identifier.
const SEGMENT_BYTES_MAX: usize = 64;

/// The placeholder for learned names.
const LEARNED: &str = "{name}";

/// Learns at which positions of paths there are names, in bounded memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Templates {
    /// Segments by position (the path before it).
    #[serde(skip)]
    segments: BTreeMap<String, BTreeSet<String>>,
    /// Positions of names.
    #[serde(deserialize_with = "super::bounded::set::<POSITIONS_MAX, _, _>")]
    names: BTreeSet<String>,
}

impl Templates {
    /// The endpoint of a request, such as `GET /users/{id}`. The second value is true when this
    /// request made a position one of names: earlier endpoints must be renamed with
    /// [`Templates::rename`].
    pub fn endpoint(&mut self, method: &str, target: &str) -> (String, bool) {
        let path = path_of(target);
        let mut learned = false;
        let mut out = format!("{method} ");
        let start = out.len();
        for (depth, segment) in path.split('/').skip(1).enumerate() {
            if depth == DEPTH_MAX {
                out.push_str("/...");
                break;
            }
            let name = placeholder(segment).unwrap_or(segment);
            let position = &out[start..];
            let is_name = name == segment && !segment.is_empty() && {
                let (is_name, new) = self.track(position, segment);
                learned |= new;
                is_name
            };
            out.push('/');
            out.push_str(if is_name { LEARNED } else { name });
        }
        (out, learned)
    }

    /// The present name of an endpoint that was named earlier.
    #[must_use]
    pub fn rename(&self, endpoint: &str) -> String {
        let Some((method, path)) = endpoint.split_once(' ') else { return endpoint.to_owned() };
        let mut out = format!("{method} ");
        let start = out.len();
        for segment in path.split('/').skip(1) {
            let fixed = segment.is_empty() || segment.starts_with('{') || segment == "...";
            let is_name = !fixed && self.names.contains(&out[start..]);
            out.push('/');
            out.push_str(if is_name { LEARNED } else { segment });
        }
        out
    }

    /// Adds positions learned by another instance. Returns whether any is new.
    pub fn merge(&mut self, other: &Self) -> bool {
        let before = self.names.len();
        self.names.extend(other.names.iter().cloned());
        self.segments.retain(|position, _| !self.names.contains(position));
        self.names.len() > before
    }

    /// Whether segments at `position` are names, and whether this segment made them so.
    fn track(&mut self, position: &str, segment: &str) -> (bool, bool) {
        if self.names.contains(position) {
            return (true, false);
        }
        if let Some(segments) = self.segments.get_mut(position) {
            if !segments.contains(segment) {
                segments.insert(segment.to_owned());
            }
            if segments.len() <= SEGMENTS_MAX {
                return (false, false);
            }
            self.segments.remove(position);
            self.names.insert(position.to_owned());
            return (true, true);
        }
        if self.segments.len() < POSITIONS_MAX {
            self.segments.insert(position.to_owned(), BTreeSet::from([segment.to_owned()]));
        }
        (false, false)
    }
}

/// The path of a request target in origin or absolute form.
fn path_of(target: &str) -> &str {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    }
}

/// The placeholder for a segment that looks like an identifier.
pub(super) fn placeholder(segment: &str) -> Option<&'static str> {
    let bytes = segment.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if bytes.len() > SEGMENT_BYTES_MAX {
        return Some("{id}");
    }
    if digits == 0 {
        return None;
    }
    let rest = |allowed: &[u8]| bytes.iter().all(|b| b.is_ascii_digit() || allowed.contains(b));
    if bytes.len() == 10 && rest(b"-") && bytes[4] == b'-' && bytes[7] == b'-' {
        return Some("{date}");
    }
    let hex = bytes.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    // Words with digits are rarely eight hexadecimal digits, or sixteen characters.
    let token = bytes.len() >= 16
        && digits >= 2
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_=~".contains(b));
    (rest(b"-_,.:") || (hex && bytes.len() >= 8) || token).then_some("{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(target: &str) -> String {
        Templates::default().endpoint("GET", target).0
    }

    #[test]
    fn identifiers_are_placeholders() {
        for (target, template) in [
            ("/users/123", "GET /users/{id}"),
            ("/users/123?q=1", "GET /users/{id}"),
            ("/", "GET /"),
            ("/a//b/", "GET /a//b/"),
            ("*", "GET "),
            ("http://host:80/a/7", "GET /a/{id}"),
            ("/o/6f9619ff-8b86-d011-b42d-00c04fc964ff/x", "GET /o/{id}/x"),
            ("/c/deadbeef01", "GET /c/{id}"),
            ("/t/eyJhbGciOiJIUzI1NiJ9", "GET /t/{id}"),
            ("/2026-11-22/x", "GET /{date}/x"),
            ("/v1/api2/added", "GET /v1/api2/added"),
            ("/facade/decade", "GET /facade/decade"),
            ("/at/48.85,2.35", "GET /at/{id}"),
        ] {
            assert_eq!(one(target), template);
        }
        assert!(one(&"/a".repeat(40)).ends_with("/a/..."));
    }

    #[test]
    fn names_are_learned_and_earlier_endpoints_merge() {
        let mut templates = Templates::default();
        let mut known = BTreeSet::new();
        let word = |n: u8| format!("{}{}", (b'a' + n / 26) as char, (b'a' + n % 26) as char);
        for n in 0..200 {
            let (name, learned) = templates.endpoint("GET", &format!("/by-name/{}/posts", word(n)));
            if learned {
                known = known.iter().map(|name: &String| templates.rename(name)).collect();
            }
            known.insert(name);
        }
        assert_eq!(known, BTreeSet::from(["GET /by-name/{name}/posts".to_owned()]));
        let (other, _) = templates.endpoint("GET", "/by-name/");
        assert_eq!(other, "GET /by-name/");
    }

    #[test]
    fn memory_is_bounded() {
        let mut templates = Templates::default();
        for n in 0..100_000u32 {
            let word: String = n.to_string().bytes().map(|b| (b - b'0' + b'a') as char).collect();
            templates.endpoint("GET", &format!("/{word}/x{word}/y{word}"));
        }
        assert!(templates.segments.len() <= POSITIONS_MAX);
        assert!(templates.names.len() < 10);
    }
}
