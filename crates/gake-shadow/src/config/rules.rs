//! Rules by path: which requests are copied to a shadow.

use http::Method;

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleVerdict {
    /// Matching requests may be copied.
    Allow,
    /// Matching requests are not copied.
    Deny,
}

/// A rule by path.
#[derive(Debug, Clone)]
pub struct PathRule {
    /// The paths it matches.
    pub path: PathGlob,
    /// The decision.
    pub verdict: RuleVerdict,
    /// Methods that may be copied here, in place of the shadow's: `POST /search` is safe.
    pub methods: Option<Vec<Method>>,
}

/// A pattern for paths: `*` matches within a segment, `**` across segments, `?` one character. A
/// pattern without wildcards matches as a prefix of whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob(Vec<GlobToken>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    Byte(u8),
    AnyChar,
    /// `*`
    AnyInSegment,
    /// `**`
    Any,
    /// The end of the path, or a slash and anything after it.
    Boundary,
}

impl PathGlob {
    /// Parses a pattern; every string is one.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut bytes = pattern.bytes().peekable();
        while let Some(byte) = bytes.next() {
            tokens.push(match byte {
                b'?' => GlobToken::AnyChar,
                b'*' if bytes.next_if_eq(&b'*').is_some() => GlobToken::Any,
                b'*' => GlobToken::AnyInSegment,
                byte => GlobToken::Byte(byte),
            });
        }
        if tokens.iter().all(|token| matches!(token, GlobToken::Byte(_))) {
            if tokens.last() == Some(&GlobToken::Byte(b'/')) {
                tokens.push(GlobToken::Any);
            } else {
                tokens.push(GlobToken::Boundary);
            }
        }
        Self(tokens)
    }

    /// Whether a path (without its query) matches, in time proportional to the product of both
    /// lengths.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let path = path.as_bytes();
        // The set of positions reachable after each token (an NFA), so that no pattern can make it
        // slow.
        let mut at = vec![false; path.len() + 1];
        at[0] = true;
        for token in &self.0 {
            step(token, path, &mut at);
        }
        at[path.len()]
    }
}

fn step(token: &GlobToken, path: &[u8], at: &mut [bool]) {
    match token {
        GlobToken::Byte(_) | GlobToken::AnyChar => {
            for end in (1..=path.len()).rev() {
                let byte = path[end - 1];
                let is_match = match token {
                    GlobToken::Byte(want) => byte == *want,
                    _ => byte != b'/',
                };
                at[end] = at[end - 1] && is_match;
            }
            at[0] = false;
        }
        GlobToken::AnyInSegment | GlobToken::Any => {
            for end in 1..=path.len() {
                let reach = *token == GlobToken::Any || path[end - 1] != b'/';
                at[end] |= at[end - 1] && reach;
            }
        }
        GlobToken::Boundary => {
            let edge = |end: usize| at[end] && path.get(end).is_none_or(|byte| *byte == b'/');
            let found = (0..=path.len()).any(edge);
            at[path.len()] = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path, fits) in [
            ("/api", "/api", true),
            ("/api", "/api/x/y", true),
            ("/api", "/apis", false),
            ("/api/", "/api/x", true),
            ("/api/", "/api", false),
            ("/", "/anything/at/all", true),
            ("/users/*", "/users/12", true),
            ("/users/*", "/users/12/posts", false),
            ("/users/**", "/users/12/posts", true),
            ("/users/*/posts", "/users/12/posts", true),
            ("**.png", "/a/b/c.png", true),
            ("**.png", "/a/b/c.pngx", false),
            ("/v?/x", "/v1/x", true),
            ("/v?/x", "/v12/x", false),
            ("**", "", true),
            ("/a**b**c", "/a/x/b/y/c", true),
        ] {
            assert_eq!(PathGlob::new(pattern).matches(path), fits, "{pattern} on {path}");
        }
    }

    #[test]
    fn no_pattern_is_slow() {
        let glob = PathGlob::new(&"*a".repeat(50));
        assert!(
            !glob.matches(&"a".repeat(10_000).replace("aaaa", "aaab")[..9_999].replace('a', "b"))
        );
        assert!(glob.matches(&"a".repeat(10_000)));
    }
}
