//! `gake doctor`: what this machine can generate, and what limits it.
//!
//! `facts` reads the system's settings, `timing` and `calibrate` measure, `limits`, `processor` and
//! `demand` judge, `show` writes.

mod calibrate;
mod check;
mod demand;
mod facts;
mod limits;
mod parse;
mod processor;
mod show;
mod timing;

use std::time::Duration;

pub use facts::Facts;

use crate::cli::DoctorArgs;
use gake_session::Console;
use gake_session::descriptors;
use gake_session::{Exit, Failure};

use calibrate::Calibration;
use check::Group;
use demand::Demand;
use timing::Lateness;

/// Requests a second that a core of this machine sends over loopback, measured for `length`.
///
/// # Errors
/// When it cannot be measured, and why.
#[cfg(feature = "fleet")]
pub fn rate_of_core(length: Duration) -> Result<f64, String> {
    calibrate::calibrate(length).map(|measured| measured.per_thread())
}

/// All findings.
#[derive(Debug)]
struct Findings {
    facts: Facts,
    /// The share of its time that a busy thread waited for a core.
    waited: Option<f64>,
    lateness: Result<Lateness, String>,
    /// Not measured without load.
    calibration: Option<Result<Calibration, String>>,
    /// Present if a number of connections was given.
    demand: Option<Demand>,
    groups: Vec<Group>,
}

/// Examines the machine and prints the findings, which are no failure.
///
/// # Errors
/// When the result cannot be written.
pub fn run(args: &DoctorArgs, console: &Console) -> Result<Exit, Failure> {
    // Read first, before gake raises any limit.
    let facts = Facts::read();
    descriptors::raise();
    if console.live() {
        let load = if args.no_load { 0 } else { args.seconds };
        console.note(&format!("measuring for {:.0} s ...", 1.0 + 1.5 * load as f64));
    }
    let findings = examine(args, facts);
    let result = if args.json() {
        format!("{:#}\n", show::json(&findings))
    } else {
        show::text(&findings, console.colour_out() && !args.no_color)
    };
    console.result(&result)?;
    Ok(Exit::Done)
}

fn examine(args: &DoctorArgs, facts: Facts) -> Findings {
    let waited = timing::contention();
    let lateness = timing::lateness();
    let calibration =
        (!args.no_load).then(|| calibrate::calibrate(Duration::from_secs(args.seconds)));
    let demand = args.connections.map(|connections| Demand::new(connections, &facts));

    let mut groups = Vec::from(limits::groups(&facts));
    let mut processor = processor::group(&facts, waited);
    processor.checks.push(timing::check(&lateness));
    groups.push(processor);
    groups.extend(calibration.as_ref().map(|measured| match measured {
        Ok(measured) => measured.group(),
        Err(reason) => calibrate::failed(reason),
    }));
    groups.extend(demand.as_ref().map(|demand| demand.group(&facts)));
    Findings { facts, waited, lateness, calibration, demand, groups }
}
