//! The most frequent bodies of failed responses, in bounded memory.

use gake_text::redact::Redactor;
use serde::{Deserialize, Deserializer, Serialize};

/// Bytes kept of each body.
pub const FAILED_BODY_BYTES: usize = 512;

/// Maximum number of distinct bodies.
const KINDS_MAX: usize = 64;

/// A word with at least this many digits is a time or an id, and ignored in comparisons.
const ID_DIGITS: usize = 6;

/// A body of failed responses, and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedBody {
    /// The status of the responses.
    pub status: u16,
    /// The first such body, truncated to [`FAILED_BODY_BYTES`].
    pub text: String,
    /// Responses with this body, apart from times and ids.
    pub count: u64,
}

/// Counts bodies of failed responses. Bodies that differ only in words with six or more digits
/// (times, ids) are the same body. Bounded memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FailedBodies {
    /// With a hash of status and text without ids.
    kinds: Vec<(u64, FailedBody)>,
    /// Responses with bodies beyond [`KINDS_MAX`].
    others: u64,
}

impl FailedBodies {
    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.others == 0
    }

    /// Adds the body of one failed response, or its start.
    pub fn add(&mut self, status: u16, body: &[u8]) {
        let body = &body[..body.len().min(FAILED_BODY_BYTES)];
        let hash = kind(status, body);
        if let Some((_, known)) = self.kinds.iter_mut().find(|(known, _)| *known == hash) {
            known.count += 1;
        } else if self.kinds.len() < KINDS_MAX {
            let text = readable(body);
            self.kinds.push((hash, FailedBody { status, text, count: 1 }));
        } else {
            self.others += 1;
        }
    }

    /// Adds everything of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.others = self.others.saturating_add(other.others);
        for (hash, body) in &other.kinds {
            if let Some((_, known)) = self.kinds.iter_mut().find(|(known, _)| known == hash) {
                known.count = known.count.saturating_add(body.count);
            } else if self.kinds.len() < KINDS_MAX {
                self.kinds.push((*hash, body.clone()));
            } else {
                self.others = self.others.saturating_add(body.count);
            }
        }
    }

    /// Redacts secrets in the bodies.
    pub fn redact(&mut self, redactor: &Redactor) {
        for (_, body) in &mut self.kinds {
            body.text = redactor.body("", body.text.as_bytes()).text().into_inner();
        }
    }

    /// The bodies, most frequent first.
    #[must_use]
    pub fn by_count(&self) -> Vec<&FailedBody> {
        let mut bodies: Vec<_> = self.kinds.iter().map(|(_, body)| body).collect();
        bodies.sort_by_key(|body| std::cmp::Reverse(body.count));
        bodies
    }

    /// Responses whose bodies are not listed, because there are too many distinct ones.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}

impl<'de> Deserialize<'de> for FailedBodies {
    /// Bodies beyond the limits are counted under `others`, or truncated.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct BodiesJson {
            kinds: Vec<(u64, FailedBody)>,
            others: u64,
        }
        let form = BodiesJson::deserialize(deserializer)?;
        let mut bodies = Self { kinds: Vec::new(), others: form.others };
        for (hash, mut body) in form.kinds {
            // Redaction may have lengthened it.
            let end = body.text.floor_char_boundary(4 * FAILED_BODY_BYTES);
            body.text.truncate(end);
            bodies.merge(&Self { kinds: vec![(hash, body)], others: 0 });
        }
        Ok(bodies)
    }
}

/// A body as text; binary data is described by its length.
fn readable(body: &[u8]) -> String {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if body.len() - error.valid_up_to() < 4 && error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return format!("binary data, {} bytes or more", body.len()),
    };
    text.to_owned()
}

/// A hash of the status and the text without times and ids.
fn kind(status: u16, body: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.add(&status.to_le_bytes());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b".:+-_".contains(byte);
    let mut rest = body;
    while let Some(first) = rest.first() {
        let same = is_word(first);
        let end = rest.iter().position(|byte| is_word(byte) != same).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
        hash.add(if same && digits >= ID_DIGITS { b"0" } else { word });
        rest = after;
    }
    hash.0
}

/// FNV-1a: fast for short texts, and the same in every process.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(bodies: &FailedBodies) -> Vec<(u16, &str, u64)> {
        let all = bodies.by_count().into_iter();
        all.map(|body| (body.status, body.text.as_str(), body.count)).collect()
    }

    #[test]
    fn times_and_ids_do_not_distinguish_bodies_but_error_numbers_do() {
        let mut bodies = FailedBodies::default();
        for second in 10..30 {
            let text =
                format!(r#"{{"timestamp":"2026-11-22T17:00:{second}.123Z","error":"full"}}"#);
            bodies.add(500, text.as_bytes());
        }
        bodies.add(500, b"Error 1040: Too many connections");
        bodies.add(500, b"Error 1040: Too many connections");
        bodies.add(500, b"Error 1053: Server shutdown in progress");
        bodies.add(503, b"Error 1053: Server shutdown in progress");
        let listed = listed(&bodies);
        let first = r#"{"timestamp":"2026-11-22T17:00:10.123Z","error":"full"}"#;
        assert_eq!(listed[0], (500, first, 20));
        assert_eq!(listed[1], (500, "Error 1040: Too many connections", 2));
        assert_eq!(listed.len(), 4);
    }

    #[test]
    fn bodies_beyond_the_limit_are_counted() {
        let word = |i: usize| "x".repeat(i + 1);
        let (mut one, mut other) = (FailedBodies::default(), FailedBodies::default());
        for i in 0..KINDS_MAX + 10 {
            one.add(500, word(i).as_bytes());
            other.add(502, word(i).as_bytes());
        }
        assert_eq!((listed(&one).len(), one.others()), (KINDS_MAX, 10));
        one.merge(&other);
        let count: u64 = listed(&one).iter().map(|body| body.2).sum();
        assert_eq!(count + one.others(), 2 * (KINDS_MAX as u64 + 10), "all responses are counted");
    }

    #[test]
    fn long_cut_and_binary_bodies_are_bounded_text() {
        let mut bodies = FailedBodies::default();
        bodies.add(500, "é".repeat(1_000).as_bytes());
        bodies.add(501, format!("a{}", "é".repeat(1_000)).as_bytes());
        bodies.add(502, &[0x1f, 0x8b, 0xff, 0xfe, 0xff]);
        let listed = listed(&bodies);
        assert_eq!(listed[0].1, "é".repeat(256));
        assert_eq!(listed[1].1, format!("a{}", "é".repeat(255)), "no half character");
        assert_eq!(listed[2].1, "binary data, 5 bytes or more");
    }

    #[test]
    fn secrets_are_not_encoded() {
        let mut bodies = FailedBodies::default();
        bodies.add(500, br#"{"password":"hunter2","error":"full"}"#);
        let redactor = Redactor::new([7; 16], gake_text::redact::SecretNames::default());
        bodies.redact(&redactor);
        let text = serde_json::to_string(&bodies).unwrap();
        assert!(text.contains("full") && !text.contains("hunter2"), "{text}");
        assert_eq!(serde_json::from_str::<FailedBodies>(&text).unwrap(), bodies);
    }
}
