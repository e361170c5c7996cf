//! Rules for ignoring differences: a TOML file, written by hand or suggested.

use serde::Deserialize;

use super::marker_names::MarkerNames;

/// Headers that differ between any two responses, or repeat what is compared elsewhere.
const IGNORED_HEADERS: &[&str] = &[
    "date",
    "age",
    "expires",
    "etag",
    "last-modified",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "vary",
    "server-timing",
    "via",
    "alt-svc",
    "x-request-id",
    "x-correlation-id",
    "x-trace-id",
    "x-runtime",
    "x-response-time",
    "x-amzn-trace-id",
    "x-served-by",
    "x-cache",
    "cf-ray",
    "traceparent",
    "tracestate",
    "nel",
    "report-to",
];

/// The rules of a comparison.
#[derive(Debug, Clone, Default)]
pub struct ComparisonRules {
    ignored_headers: Vec<String>,
    compared_headers: Vec<String>,
    ignores: Vec<IgnoreRule>,
    tolerances: Vec<Tolerance>,
    markers: MarkerNames,
}

#[derive(Debug, Clone)]
struct IgnoreRule {
    endpoint: Glob,
    paths: Vec<Glob>,
}

#[derive(Debug, Clone)]
struct Tolerance {
    endpoint: Glob,
    paths: Vec<Glob>,
    relative: f64,
    absolute: f64,
}

/// Why rules cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The text is not valid TOML, or has an unknown key.
    #[error("the rules cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// A tolerance is negative or not a number.
    #[error("{0} is not a valid tolerance: write a number of 0 or more")]
    BadTolerance(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default)]
    headers: HeaderTable,
    #[serde(default)]
    ignore: Vec<IgnoreTable>,
    #[serde(default)]
    tolerance: Vec<ToleranceTable>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderTable {
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    compare: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IgnoreTable {
    #[serde(default = "anything")]
    endpoint: String,
    paths: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToleranceTable {
    #[serde(default = "anything")]
    endpoint: String,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    relative: f64,
    #[serde(default)]
    absolute: f64,
}

fn anything() -> String {
    "*".to_owned()
}

impl ComparisonRules {
    /// Parses the text of a TOML file.
    ///
    /// # Errors
    /// When it is invalid; the error has the position.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let file: RulesFile = toml::from_str(text)?;
        let globs = |paths: Vec<String>| paths.into_iter().map(Glob).collect();
        let lower = |names: Vec<String>| names.iter().map(|n| n.to_ascii_lowercase()).collect();
        let mut tolerances = Vec::new();
        for table in file.tolerance {
            let bad = [table.relative, table.absolute].into_iter().find(|x| x.is_nan() || *x < 0.0);
            if let Some(bad) = bad {
                return Err(RulesError::BadTolerance(bad));
            }
            let paths = if table.paths.is_empty() { vec![anything()] } else { table.paths };
            tolerances.push(Tolerance {
                endpoint: Glob(table.endpoint),
                paths: globs(paths),
                relative: table.relative,
                absolute: table.absolute,
            });
        }
        let ignore = |rule: IgnoreTable| IgnoreRule {
            endpoint: Glob(rule.endpoint),
            paths: globs(rule.paths),
        };
        Ok(Self {
            ignored_headers: lower(file.headers.ignore),
            compared_headers: lower(file.headers.compare),
            ignores: file.ignore.into_iter().map(ignore).collect(),
            tolerances,
            markers: MarkerNames::default(),
        })
    }

    /// Ignores the header that marks copies, also where bodies echo it.
    pub fn ignore_marker(&mut self, name: &str) {
        self.markers.add(name);
    }

    pub(super) fn markers(&self) -> &MarkerNames {
        &self.markers
    }

    /// Adds other rules.
    pub fn merge(&mut self, other: Self) {
        self.ignored_headers.extend(other.ignored_headers);
        self.compared_headers.extend(other.compared_headers);
        self.ignores.extend(other.ignores);
        self.tolerances.extend(other.tolerances);
    }

    /// Whether a header, its name in lower case, is ignored.
    #[must_use]
    pub fn ignores_header(&self, name: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|listed| listed == name);
        listed(&self.ignored_headers)
            || (IGNORED_HEADERS.contains(&name) && !listed(&self.compared_headers))
            || self.markers.contains(name)
    }

    /// Whether differences at a path are ignored.
    #[must_use]
    pub fn ignores(&self, endpoint: &str, path: &str) -> bool {
        let header = path.strip_prefix("header ");
        header.is_some_and(|name| self.ignores_header(name))
            || self.ignores.iter().any(|rule| {
                rule.endpoint.matches(endpoint) && rule.paths.iter().any(|glob| glob.matches(path))
            })
    }

    /// The tolerances for an endpoint.
    pub(super) fn tolerances(&self, endpoint: &str) -> Tolerances<'_> {
        Tolerances(self.tolerances.iter().filter(|rule| rule.endpoint.matches(endpoint)).collect())
    }
}

/// The tolerances for numbers in one endpoint.
#[derive(Debug, Default)]
pub struct Tolerances<'a>(Vec<&'a Tolerance>);

impl Tolerances<'_> {
    /// Whether the difference of two numbers at a path is within a tolerance.
    pub(super) fn allow(&self, path: &str, a: f64, b: f64) -> bool {
        let difference = (a - b).abs();
        self.0.iter().any(|tolerance| {
            tolerance.paths.iter().any(|glob| glob.matches(path))
                && (difference <= tolerance.absolute
                    || difference <= tolerance.relative * a.abs().max(b.abs()))
        })
    }
}

/// A pattern in which `*` matches any text.
#[derive(Debug, Clone)]
pub struct Glob(String);

impl Glob {
    /// Parses a pattern; every string is one.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// Whether a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut literals = self.0.split('*');
        let first = literals.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let Some(last) = literals.next_back() else { return rest.is_empty() };
        for literal in literals {
            let Some(at) = rest.find(literal) else { return false };
            rest = &rest[at + literal.len()..];
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_any_text() {
        for (glob, text, matches) in [
            ("*", "", true),
            ("$.a", "$.a", true),
            ("$.a", "$.a.b", false),
            ("$.a*", "$.a.b", true),
            ("$.items[*].id", "$.items[*].id", true),
            ("*.id", "$.items[*].id", true),
            ("GET /users/*", "GET /users/{id}", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(Glob(glob.to_owned()).matches(text), matches, "{glob} {text}");
        }
    }

    #[test]
    fn a_file_has_ignored_fields_and_tolerances() {
        let rules = ComparisonRules::parse(
            "[headers]\nignore = ['X-Build']\ncompare = ['ETag']\n\
             [[ignore]]\nendpoint = 'GET /a*'\npaths = ['$.at', 'header x-*']\n\
             [[tolerance]]\npaths = ['$.price']\nrelative = 0.01\n\
             [[tolerance]]\nabsolute = 0.5\nendpoint = 'GET /n'\n",
        )
        .unwrap();
        assert!(rules.ignores_header("x-build") && rules.ignores_header("date"));
        assert!(!rules.ignores_header("etag") && !rules.ignores_header("x-other"));
        assert!(rules.ignores("GET /a/b", "$.at") && rules.ignores("GET /a", "header x-q"));
        assert!(!rules.ignores("POST /a", "$.at") && !rules.ignores("GET /a", "$.at.b"));
        let tolerances = rules.tolerances("GET /x");
        assert!(
            tolerances.allow("$.price", 100.0, 101.0) && !tolerances.allow("$.price", 100.0, 102.0)
        );
        assert!(!tolerances.allow("$.other", 1.0, 1.01));
        assert!(rules.tolerances("GET /n").allow("$.other", 1.0, 1.5));
    }

    #[test]
    fn invalid_rules_are_rejected() {
        for text in ["[[ignore]]\npath = ['a']", "x = 1", "[[tolerance]]\nrelative = -1.0", "["] {
            assert!(ComparisonRules::parse(text).is_err(), "{text}");
        }
    }
}
