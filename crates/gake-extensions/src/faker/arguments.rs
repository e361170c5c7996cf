//! The arguments of functions: texts, as in the extension.

use std::collections::BTreeMap;

/// Elements of an argument, and characters that one asks for.
pub(super) const COUNT_MAX: usize = 100_000;

/// Arguments by the name of their parameter.
#[derive(Debug, Default)]
pub(super) struct Arguments(pub(super) BTreeMap<&'static str, Vec<String>>);

impl Arguments {
    /// A text; empty if it is absent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }

    /// Texts.
    pub(super) fn texts(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, kind: &str) -> Result<T, String> {
        let parsed = self.text(name).trim().parse();
        parsed.map_err(|_| format!("{name} field could not parse to {kind} value"))
    }

    pub(super) fn integer(&self, name: &str) -> Result<i64, String> {
        self.parsed(name, "int")
    }

    pub(super) fn float(&self, name: &str) -> Result<f64, String> {
        self.parsed(name, "float")
    }

    /// Whether it is `true`.
    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1")
    }

    /// A number of elements or characters.
    pub(super) fn count(&self, name: &str) -> Result<usize, String> {
        let count = self.integer(name)?;
        match usize::try_from(count) {
            Ok(count) if count <= COUNT_MAX => Ok(count),
            _ => Err(format!("{name} must be from 0 to {COUNT_MAX}")),
        }
    }

    /// Integers.
    pub(super) fn integers(&self, name: &str) -> Result<Vec<i64>, String> {
        let number = |text: &String| {
            text.trim().parse().map_err(|_| format!("{name} field {text:?} is not an integer"))
        };
        self.texts(name).iter().map(number).collect()
    }
}
