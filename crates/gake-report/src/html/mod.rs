//! Self-contained HTML pages: the page built from `ui/` with its data inlined.
//!
//! A page makes no network requests, opens from disk, and stays under 500 KB.

mod compare;
mod find;
mod live;
mod lttb;
mod plot;
mod run;
mod shadow;
mod trend;

use serde::Serialize;

pub use compare::compare;
pub use find::find;
pub use live::{frame, run_data, running_data};
pub use lttb::lttb;
pub use plot::{Plot, PlotSeries, plot};
pub use run::{PageControl, run, run_over};
pub use shadow::shadow;
pub use trend::{TrendRun, trend};

/// The page built from `ui/` by the build script; empty when it could not be built.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));

/// The placeholder of the data: a JSON string, so that the page is valid without data.
const PLACE: &str = "\"@gake-page@\"";

/// The name and version of the data, known only to this crate and `ui/`.
const SCHEMA: &str = "gake.page/1";

/// Most bytes of a page.
const PAGE_MAX: usize = 500_000;

/// Most characters shown of a sentence, as it may contain text from outside.
const TEXT_MAX: usize = 400;

/// Gake was built without the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this gake was built without the HTML page: build it again with Node.js 20.19 or newer and npm \
     installed, or with GAKE_UI_DIST naming a folder with a ready-made page"
)]
pub struct NoUi;

/// Whether gake was built with the page, to be checked before a run.
///
/// # Errors
/// When it was not.
pub fn check() -> Result<(), NoUi> {
    if PAGE.is_empty() { Err(NoUi) } else { Ok(()) }
}

/// The page with `data` in it.
fn page(data: &impl Serialize) -> Result<String, NoUi> {
    assemble(PAGE, &json(data))
}

/// The page with a JSON text inlined.
fn assemble(page: &str, json: &str) -> Result<String, NoUi> {
    let (before, after) = page.split_once(PLACE).ok_or(NoUi)?;
    Ok([before, json, after].concat())
}

/// Data as JSON in which no text can close the surrounding element.
fn json(data: &impl Serialize) -> String {
    // Cannot fail: no map has keys other than strings.
    serde_json::to_string(data).unwrap_or_default().replace('<', "\\u003c")
}

/// The page of the data that `of` makes with a bound on the length of its lists: `most`, or smaller
/// until the page is within its limit.
fn bounded<D: Serialize>(most: usize, of: impl Fn(usize) -> D) -> Result<String, NoUi> {
    assemble(PAGE, &bounded_json(most, of))
}

/// The data of that page.
fn bounded_json<D: Serialize>(mut most: usize, of: impl Fn(usize) -> D) -> String {
    loop {
        let json = json(&of(most));
        if PAGE.len() + json.len() <= PAGE_MAX + PLACE.len() || most <= 1 {
            return json;
        }
        most /= 2;
    }
}

fn cut(text: &str) -> String {
    cut_to(text, TEXT_MAX)
}

/// Shortens a text; characters that JSON escapes count with the length of the escape.
fn cut_to(text: &str, length: usize) -> String {
    let mut room = length;
    for (at, char) in text.char_indices() {
        let cost = if char == '<' || char.is_control() { 6 } else { 1 };
        if cost > room {
            return format!("{}…", &text[..at]);
        }
        room -= cost;
    }
    text.to_owned()
}

/// A Unix time as RFC 3339 in UTC.
fn instant(unix_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_script_and_asks_for_nothing() {
        assert!(!PAGE.is_empty(), "{NoUi}");
        assert_eq!(PAGE.matches(PLACE).count(), 1);
        // One for the data, one for the code.
        assert_eq!(PAGE.matches("<script").count(), 2);
        assert_eq!(PAGE.matches("</script").count(), 2);
        assert!(PAGE.contains("default-src 'none'"));
        for outside in ["src=\"", "<link", "@import", "import("] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let hostile = "</script><script>alert(1)</script><!-- \u{2028}";
        let page = assemble("<x>\"@gake-page@\"</x>", &json(&hostile)).unwrap();
        let inside = page.strip_prefix("<x>").unwrap().strip_suffix("</x>").unwrap();
        assert!(!inside.contains('<'));
        assert_eq!(serde_json::from_str::<String>(inside).unwrap(), hostile);
    }

    #[test]
    fn without_a_page_there_is_one_sentence() {
        assert_eq!(assemble("", "1"), Err(NoUi));
    }
}
