//! The live page, which a server sends and updates.

use gake_judge::Summary;

use super::run::{POINTS_MAX, PageControl, RunJson};
use super::{PAGE, PLACE, bounded_json};

/// Points of the series during the run: every update sends all of them to each viewer.
const POINTS_LIVE: usize = 300;

/// The start of the content security policy of a saved page and of the served page.
const POLICY: [&str; 2] = ["default-src 'none';", "default-src 'none'; connect-src 'self';"];

/// The page before and after its data, with a policy that allows requests to its own server.
#[must_use]
pub fn frame() -> [String; 2] {
    // The page has the place: a test of this module's parent counts it.
    let (before, after) = PAGE.split_once(PLACE).unwrap_or((PAGE, ""));
    [before.replacen(POLICY[0], POLICY[1], 1), after.to_owned()]
}

/// The data of a run in progress as JSON on one line; `control` enables the page's controls.
#[must_use]
pub fn running_data(so_far: &Summary, control: PageControl) -> String {
    bounded_json(POINTS_LIVE, |points| RunJson::running(so_far, points, control))
}

/// The data of a finished run, identical to its report's.
#[must_use]
pub fn run_data(summary: &Summary) -> String {
    bounded_json(POINTS_MAX, |points| RunJson::new(summary, points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::troubled;

    #[test]
    fn the_last_data_make_the_report() {
        let summary = Summary::new(troubled(), &[]);
        let [before, after] = frame();
        let page = [before.as_str(), &run_data(&summary), &after].concat();
        assert_eq!(page.replacen(POLICY[1], POLICY[0], 1), crate::html::run(&summary));
        assert_ne!(page, crate::html::run(&summary));
        let running = running_data(&summary, PageControl::default());
        assert!(running.contains("\"live\":{") && !running.contains(['\n', '<']), "{running}");
    }
}
