//! TOML or JSON.

use std::path::Path;

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// TOML 1.
    Toml,
    /// JSON.
    Json,
}

impl Syntax {
    /// The syntax of a file: by its suffix, else by its first character.
    #[must_use]
    pub fn of(name: &str, text: &str) -> Self {
        let suffix = Path::new(name).extension().and_then(|suffix| suffix.to_str());
        match suffix.map(str::to_ascii_lowercase).as_deref() {
            Some("json") => Self::Json,
            Some("toml") => Self::Toml,
            _ if text.trim_start().starts_with('{') => Self::Json,
            _ => Self::Toml,
        }
    }
}
