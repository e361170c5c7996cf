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

/// The page of `ui/`, made by `cargo xtask ui`.
const PAGE: &str = include_str!("page.html");

/// The placeholder of the data: a JSON string, so that the page is valid without data.
const PLACE: &str = "\"@gake-page@\"";

/// The name and version of the data, known only to this crate and `ui/`.
const SCHEMA: &str = "gake.page/1";

/// Most bytes of a page.
const PAGE_MAX: usize = 500_000;

/// Most characters shown of a sentence, as it may contain text from outside.
const TEXT_MAX: usize = 400;

/// The page with `data` in it.
fn page(data: &impl Serialize) -> String {
    assemble(PAGE, &json(data))
}

/// The page with a JSON text inlined.
fn assemble(page: &str, json: &str) -> String {
    page.replacen(PLACE, json, 1)
}

/// Data as JSON in which no text can close the surrounding element.
fn json(data: &impl Serialize) -> String {
    // Cannot fail: no map has keys other than strings.
    serde_json::to_string(data).unwrap_or_default().replace('<', "\\u003c")
}

/// The page of the data that `of` makes with a bound on the length of its lists: `most`, or smaller
/// until the page is within its limit.
fn bounded<D: Serialize>(most: usize, of: impl Fn(usize) -> D) -> String {
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
        let page = assemble("<x>\"@gake-page@\"</x>", &json(&hostile));
        let inside = page.strip_prefix("<x>").unwrap().strip_suffix("</x>").unwrap();
        assert!(!inside.contains('<'));
        assert_eq!(serde_json::from_str::<String>(inside).unwrap(), hostile);
    }
}
