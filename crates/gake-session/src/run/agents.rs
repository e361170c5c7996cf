//! What is said of the agents of a run.

use gake_core::record::AgentRecord;
use gake_core::spec::RunSpec;
use gake_fleet::Fleet;
use gake_judge::agent_lines;
use gake_run::Prepared;

use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::fleet::{FleetMaker, failure};

/// The agents for a run, ready to start; `None` when this process does it alone.
///
/// # Errors
/// When there are too few, or one refuses.
pub fn assemble(
    maker: Option<&FleetMaker>,
    spec: &RunSpec,
    prepared: &Prepared,
    quiet: bool,
    console: &Console,
) -> Result<Option<Fleet>, Failure> {
    let Some(maker) = maker else { return Ok(None) };
    let fleet = maker.assemble(spec, prepared).map_err(failure)?;
    if !quiet {
        console.note(&fleet.describe());
        if maker.keeps_journal() {
            console.note(&fleet.describe_journal());
        }
    }
    Ok(Some(fleet))
}

/// What is said of the agents after a run that would end with `exit`, and how it ends. With `quiet`,
/// nothing is said of each one.
pub fn conclude(
    (fleet, agents): (&Fleet, &[AgentRecord]),
    quiet: bool,
    exit: Exit,
    console: &Console,
) -> Exit {
    if !quiet {
        agent_lines(agents).for_each(|line| console.note(&line));
    }
    if fleet.is_stopped() {
        console.warn("the run was told to stop");
        return Exit::Interrupted;
    }
    if let Some(why) = fleet.left() {
        console.error(&format!("these figures end early: {why}"));
        return Exit::CouldNot;
    }
    if let Some(why) = fleet.aborted() {
        console.error(&format!("the run was ended: {why}"));
        return Exit::CouldNot;
    }
    // Users of a closed loop just stop: no count shows that they are missing.
    if fleet.unreplaced() > 0 && exit == Exit::Done {
        console.error("agents were lost: the load was not what was asked for");
        return Exit::Invalid;
    }
    exit
}
