//! The capacity of the user's own server, from which `overload` and `noisy-neighbour` have their
//! rates.

use gake_judge::Summary;
use gake_text::units::{self, plural};

use super::bench::{Bench, Stopped, closed, goodput};
use super::server::Server;

/// Users of the first closed loop. Each further one has twice as many.
const FIRST: usize = 24;
/// Users of the last one at most.
const LAST: usize = 3_072;
/// Twice the users are worth a further loop while they get more than this times the rate.
const GROWS: f64 = 1.1;

/// What a closed loop gets out of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnCapacity {
    /// Answers a second that were ok.
    pub rate: f64,
    /// Users who got it: twice as many get hardly more.
    pub users: usize,
}

/// Doubles the users of a closed loop until throughput grows no more, and shows the loop that is
/// taken as the capacity. `None` when hardly an answer was ok, which a note says.
///
/// # Errors
/// When a load cannot be run, or a signal came.
pub fn measure(bench: &mut Bench<'_>, server: &Server) -> Result<Option<OwnCapacity>, Stopped> {
    let duration = bench.seconds(3.0, 1.5);
    let mut best: Option<(usize, Summary)> = None;
    let mut users = FIRST;
    while users <= LAST && bench.fits(users as u64).connections >= users as u64 {
        let summary = bench.fire(&closed(server, "", users, duration))?;
        let grows = best.as_ref().is_none_or(|(_, best)| goodput(&summary) > GROWS * goodput(best));
        if !grows {
            break;
        }
        best = Some((users, summary));
        users *= 2;
    }
    let Some((users, summary)) = best else { return Ok(None) };
    let found = OwnCapacity { rate: goodput(&summary), users };
    bench.step(
        format!("calibration, {}", plural(users as u64, "user")),
        server,
        summary,
        Vec::new(),
    );
    if found.rate < 1.0 {
        bench.note("no further step: hardly an answer of the calibration was ok".to_owned());
        return Ok(None);
    }
    bench.note(format!(
        "{} is taken as the capacity of the server: what {} get without a pause",
        units::rate(found.rate),
        plural(users as u64, "user")
    ));
    Ok(Some(found))
}
