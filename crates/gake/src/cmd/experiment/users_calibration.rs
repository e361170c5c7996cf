//! What rate the users service takes, found before `users-db` asks for one.

use std::time::Duration;

use gake_judge::Summary;
use gake_judge::stats::per_second;
use gake_report::experiment::Expectation;
use gake_run::spec::Load;
use gake_text::foreign;
use gake_text::units::{self, count};

use super::bench::{Bench, Stopped, goodput};
use super::server::Server;
use super::theory;
use super::users_db::posting;
use gake_session::Failure;

/// Requests a second that the matrix asks for, if the service takes as many.
pub const ASKED: [u32; 3] = [10, 100, 1_000];

/// Users who post one row after the other: as many as the pool of the calibration has connections.
pub const USERS: u32 = 100;

/// What is asked at most of the rate that is taken: random arrivals at the whole of it would wait
/// for ever longer.
const HEADROOM: f64 = 0.8;

/// Until the connections are open.
const OPENING: Duration = Duration::from_secs(1);

/// The rate that the service takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken(f64);

impl Taken {
    /// Rows a second at most that are asked of it: two digits of it.
    fn most(self) -> u32 {
        let most = (HEADROOM * self.0).max(1.0);
        let digit = 10_f64.powf(most.log10().floor() - 1.0).max(1.0);
        ((most / digit).floor() * digit) as u32
    }

    /// What is asked in place of `rate`.
    pub fn in_force(self, rate: u32) -> u32 {
        rate.min(self.most())
    }

    /// The rates in force, from low to high.
    pub fn rates(self) -> Vec<u32> {
        let mut rates = ASKED.map(|rate| self.in_force(rate)).to_vec();
        rates.dedup();
        rates
    }

    /// That a rate cannot be asked, if so.
    fn shortfall(self) -> Option<String> {
        let missing: Vec<_> = ASKED.iter().filter(|rate| self.in_force(**rate) < **rate).collect();
        let told: Vec<_> =
            missing.iter().map(|rate| format!("{}/s", count(**rate as u64))).collect();
        let most = count(self.most().into());
        (!told.is_empty()).then(|| {
            format!(
                "{} cannot be reached here: the users service takes {}, so that {most}/s are asked \
                 in place of it",
                told.join(" and "),
                units::rate(self.0)
            )
        })
    }
}

/// Its step.
pub fn name(users: u32) -> String {
    format!("calibration, {users} users")
}

/// Finds it on `server`, whose pool is as large as there are `users`. `expected` is what theory says
/// of it.
///
/// # Errors
/// When the load cannot be run, no answer was ok, or a signal came.
pub fn calibrate(
    bench: &mut Bench<'_>,
    server: &Server,
    users: u32,
    expected: impl FnOnce(&Summary) -> Result<Vec<Expectation>, Stopped>,
) -> Result<Taken, Stopped> {
    let mut spec = posting(server, Load::closed(users as usize));
    spec.scenarios[0].duration = Some(bench.seconds(5.0, 1.5));
    spec.warmup = OPENING;
    let summary = bench.fire(&spec)?;
    let taken = Taken(rate(&summary));
    let ok = summary.run.tally.counts.ok;
    let nothing = (ok == 0).then(|| nothing_ok(&summary));
    let mut expectations = vec![theory::number("ok", ok, 1..=u64::MAX, "at least 1".to_owned())];
    expectations.extend(expected(&summary)?);
    bench.step(name(users), server, summary, expectations);
    if let Some(failure) = nothing {
        return Err(failure.into());
    }
    if let Some(told) = taken.shortfall() {
        bench.note(told);
    }
    Ok(taken)
}

/// Rows a second. A slow service still answers the users of the warm-up when that is over, and those
/// who come after it in the time that follows: then all rows over all of the time are more. Neither
/// is more than the service takes.
fn rate(summary: &Summary) -> f64 {
    let run = &summary.run;
    let all = run.warmup.ok + run.tally.counts.ok;
    goodput(summary).max(per_second(all as f64, run.elapsed))
}

/// That there is no rate to ask for, in the words of the service.
fn nothing_ok(summary: &Summary) -> Failure {
    let bodies = summary.run.bodies.by_count();
    let said = bodies.first().map(|body| {
        let text = foreign::line(body.text.trim());
        format!("; the most frequent answer has status {}: {text}", body.status)
    });
    let cause = summary.verdict.nothing_ok.as_ref().map(|nothing| format!(": {}", nothing.cause));
    let (cause, said) = (cause.unwrap_or_default(), said.unwrap_or_default());
    let text = "no answer of the calibration was ok, so no rate is asked for";
    Failure::could_not(format!("{text}{cause}{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_below_what_is_taken() {
        assert_eq!(Taken(2_000.0).rates(), [10, 100, 1_000]);
        assert_eq!(Taken(2_000.0).shortfall(), None);
        assert_eq!(Taken(1_250.0).rates(), [10, 100, 1_000]);
        assert_eq!(Taken(1_199.0).rates(), [10, 100, 950]);
        assert_eq!(Taken(90.0).rates(), [10, 72]);
        assert_eq!(Taken(9.0).rates(), [7]);
        assert_eq!(Taken(0.3).rates(), [1]);
        let told = Taken(90.0).shortfall().unwrap();
        assert!(told.starts_with("100/s and 1,000/s cannot be reached here"), "{told}");
        assert!(told.contains("takes 90/s, so that 72/s are asked"), "{told}");
    }
}
