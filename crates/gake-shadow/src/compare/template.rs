//! Endpoints: a method and a path in which what names one thing of many is a placeholder.
//!
//! A segment is a placeholder when it looks like an identifier, or when more different ones were
//! seen at its place than a place has by design.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Different segments at one place of a path before they are taken for names of things.
const SEGMENTS_MAX: usize = 100;

/// Places whose segments are watched.
const PLACES_MAX: usize = 2_000;

/// Segments of a path that are told apart; the rest is `...`.
const DEPTH_MAX: usize = 12;

/// A longer segment is a name of something.
const SEGMENT_BYTES_MAX: usize = 64;

/// What stands for segments learned to be names.
const LEARNED: &str = "{name}";

/// Learns which places of the paths hold names. What it remembers is bounded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Templates {
    /// By place (the path before it): the segments seen there.
    #[serde(skip)]
    seen: BTreeMap<String, BTreeSet<String>>,
    /// The places whose segments are names.
    #[serde(deserialize_with = "super::bounded::set::<PLACES_MAX, _, _>")]
    names: BTreeSet<String>,
}

impl Templates {
    /// The endpoint of a request: `GET /users/{id}`. The second value tells that a place was
    /// just learned to hold names, so that endpoints known before may have become one; see
    /// [`Templates::again`].
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
            let place = &out[start..];
            let is_name = name == segment && !segment.is_empty() && {
                let (is_name, new) = self.watch(place, segment);
                learned |= new;
                is_name
            };
            out.push('/');
            out.push_str(if is_name { LEARNED } else { name });
        }
        (out, learned)
    }

    /// The endpoint that `endpoint`, named earlier, is by what is known now.
    #[must_use]
    pub fn again(&self, endpoint: &str) -> String {
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

    /// Takes over what another has learned. Tells whether that was new.
    pub fn merge(&mut self, other: &Self) -> bool {
        let before = self.names.len();
        self.names.extend(other.names.iter().cloned());
        self.seen.retain(|place, _| !self.names.contains(place));
        self.names.len() > before
    }

    /// Whether segments at `place` are names, and whether that was learned right now.
    fn watch(&mut self, place: &str, segment: &str) -> (bool, bool) {
        if self.names.contains(place) {
            return (true, false);
        }
        if let Some(seen) = self.seen.get_mut(place) {
            if !seen.contains(segment) {
                seen.insert(segment.to_owned());
            }
            if seen.len() <= SEGMENTS_MAX {
                return (false, false);
            }
            self.seen.remove(place);
            self.names.insert(place.to_owned());
            return (true, true);
        }
        if self.seen.len() < PLACES_MAX {
            self.seen.insert(place.to_owned(), BTreeSet::from([segment.to_owned()]));
        }
        (false, false)
    }
}

/// The path of a request target, whatever its form.
fn path_of(target: &str) -> &str {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    }
}

/// What a segment that looks like an identifier is.
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
    // A word with a digit in it is rarely eight hexadecimal digits, or sixteen of anything.
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
    fn many_names_at_one_place_are_learned_and_old_endpoints_join() {
        let mut templates = Templates::default();
        let mut known = BTreeSet::new();
        let word = |n: u8| format!("{}{}", (b'a' + n / 26) as char, (b'a' + n % 26) as char);
        for n in 0..200 {
            let (name, learned) = templates.endpoint("GET", &format!("/by-name/{}/posts", word(n)));
            if learned {
                known = known.iter().map(|name: &String| templates.again(name)).collect();
            }
            known.insert(name);
        }
        assert_eq!(known, BTreeSet::from(["GET /by-name/{name}/posts".to_owned()]));
        let (other, _) = templates.endpoint("GET", "/by-name/");
        assert_eq!(other, "GET /by-name/");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut templates = Templates::default();
        for n in 0..100_000u32 {
            let word: String = n.to_string().bytes().map(|b| (b - b'0' + b'a') as char).collect();
            templates.endpoint("GET", &format!("/{word}/x{word}/y{word}"));
        }
        assert!(templates.seen.len() <= PLACES_MAX);
        assert!(templates.names.len() < 10);
    }
}
