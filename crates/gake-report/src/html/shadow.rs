//! The page of a shadow comparison.

use serde::Serialize;

use super::{SCHEMA, bounded};

/// Most entries shown of a list.
const ROWS_MAX: usize = 800;

#[derive(Serialize)]
struct ShadowJson<R> {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    reports: Vec<R>,
}

/// The page of judged comparisons. `reports` makes them with a bound on the length of each list, in
/// the format of `ui/src/pages/shadow-data.ts`: this crate does not know the shadow proxy.
#[must_use]
pub fn shadow<R: Serialize>(reports: impl Fn(usize) -> Vec<R>) -> String {
    let gake = env!("CARGO_PKG_VERSION");
    bounded(ROWS_MAX, |rows| ShadowJson {
        schema: SCHEMA,
        kind: "shadow",
        gake,
        reports: reports(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_would_be_too_large_shows_less() {
        let html = shadow(|rows| vec!["<".repeat(500); rows]);
        assert!(html.len() <= 500_000 && html.len() > 200_000, "{}", html.len());
    }
}
