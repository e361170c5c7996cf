//! The page of a run in progress, which a server sends and keeps up to date.

use gake_judge::Summary;

use super::run::{POINTS_MAX, PageControl, RunForm};
use super::{NoUi, PAGE, PLACE, bounded_json};

/// Points of the series while the run goes on: each viewer gets all of them with every update.
const POINTS_LIVE: usize = 300;

/// What the policy of a page that asks for nothing begins with, and that of the served page.
const POLICY: [&str; 2] = ["default-src 'none';", "default-src 'none'; connect-src 'self';"];

/// The page before and after its data, with a policy that lets it ask its own server.
///
/// # Errors
/// When this gake was built without the page.
pub fn frame() -> Result<[String; 2], NoUi> {
    let (before, after) = PAGE.split_once(PLACE).ok_or(NoUi)?;
    Ok([before.replacen(POLICY[0], POLICY[1], 1), after.to_owned()])
}

/// The data of a run in progress as JSON on one line; `control` is what the page offers.
#[must_use]
pub fn running_data(so_far: &Summary, control: PageControl) -> String {
    bounded_json(POINTS_LIVE, |points| RunForm::running(so_far, points, control))
}

/// The data of a run that is over: exactly that of its report.
#[must_use]
pub fn run_data(summary: &Summary) -> String {
    bounded_json(POINTS_MAX, |points| RunForm::new(summary, points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::troubled;

    #[test]
    fn the_last_data_make_the_report() {
        let summary = Summary::new(troubled(), &[]);
        let [before, after] = frame().unwrap();
        let page = [before.as_str(), &run_data(&summary), &after].concat();
        assert_eq!(page.replacen(POLICY[1], POLICY[0], 1), crate::html::run(&summary).unwrap());
        assert_ne!(page, crate::html::run(&summary).unwrap());
        let running = running_data(&summary, PageControl::default());
        assert!(running.contains("\"live\":{") && !running.contains(['\n', '<']), "{running}");
    }
}
