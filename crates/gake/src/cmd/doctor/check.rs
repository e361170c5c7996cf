//! A check: a value of the machine and its rating.

/// The rating of a value, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It does not limit a load test.
    Good,
    /// Worth knowing; it limits some tests.
    Note,
    /// It spoils measurements.
    Bad,
}

impl Status {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, the same in every release.
    pub name: &'static str,
    /// What was found.
    pub value: String,
    /// Its rating.
    pub status: Status,
    /// Advice, in a sentence.
    pub advice: Option<String>,
}

impl Check {
    /// A value without advice.
    pub fn new(name: &'static str, status: Status, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), status, advice: None }
    }

    /// A value that limits nothing.
    pub fn good(name: &'static str, value: impl Into<String>) -> Self {
        Self::new(name, Status::Good, value)
    }

    /// A value that cannot be read here, which is not the machine's fault.
    pub fn unknown(name: &'static str) -> Self {
        Self::new(name, Status::Good, "unknown")
    }

    /// The same with advice, which a good value does not need.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        if self.status != Status::Good {
            self.advice = Some(advice.into());
        }
        self
    }
}

/// Checks that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their subject.
    pub name: &'static str,
    /// In the order in which they are shown.
    pub checks: Vec<Check>,
}

/// Good from `good` on, a note from `note` on, else bad.
pub fn at_least(value: f64, good: f64, note: f64) -> Status {
    if value >= good {
        Status::Good
    } else if value >= note {
        Status::Note
    } else {
        Status::Bad
    }
}

/// Good up to `good`, a note up to `note`, else bad.
pub fn at_most(value: f64, good: f64, note: f64) -> Status {
    at_least(-value, -good, -note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_for_what_is_not_good() {
        assert_eq!(Check::good("a", "1").advise("do").advice, None);
        assert_eq!(Check::new("a", Status::Note, "1").advise("do").advice.as_deref(), Some("do"));
    }

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!(at_least(5.0, 5.0, 2.0), Status::Good);
        assert_eq!(at_least(2.0, 5.0, 2.0), Status::Note);
        assert_eq!(at_least(1.9, 5.0, 2.0), Status::Bad);
        assert_eq!(at_most(1.0, 1.0, 2.0), Status::Good);
        assert_eq!(at_most(2.1, 1.0, 2.0), Status::Bad);
    }
}
