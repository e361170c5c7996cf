//! The differences that there are on purpose, or not mended yet.

use std::path::Path;

#[derive(serde::Deserialize)]
struct File {
    #[serde(default)]
    difference: Vec<Entry>,
}

#[derive(serde::Deserialize)]
struct Entry {
    /// A case, or a folder of cases with `*`.
    case: String,
    /// What differs.
    fields: Vec<String>,
    /// Why.
    why: String,
    #[serde(skip)]
    met: Vec<String>,
}

/// `ledger.toml`.
pub struct Ledger(Vec<Entry>);

impl Ledger {
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6/ledger.toml");
        let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for entry in &file.difference {
            assert!(!entry.why.is_empty(), "{} has no reason", entry.case);
        }
        Self(file.difference)
    }

    /// Whether this difference is known.
    pub fn knows(&mut self, case: &str, field: &str) -> bool {
        let fits = |entry: &&mut Entry| {
            let is_case = match entry.case.strip_suffix('*') {
                Some(prefix) => case.starts_with(prefix),
                None => entry.case == case,
            };
            is_case && entry.fields.iter().any(|one| one == field)
        };
        let Some(entry) = self.0.iter_mut().find(fits) else { return false };
        entry.met.push(field.to_owned());
        true
    }

    /// Entries that are no longer needed.
    pub fn stale(&self) -> impl Iterator<Item = String> {
        let stale = self.0.iter().flat_map(|entry| {
            let gone = entry.fields.iter().filter(|field| !entry.met.contains(field));
            gone.map(|field| format!("ledger.toml: {}: {field} differs no more", entry.case))
        });
        stale.collect::<Vec<_>>().into_iter()
    }
}
