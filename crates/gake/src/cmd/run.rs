//! `gake run`: plan, fire, record, judge, show.

use std::borrow::Cow;

use gake_session::fleet::FleetMaker;
use gake_session::redaction::redactor;
use gake_session::run::{Reconciliation, Session, SinkDrain, assemble, start_traces};
use gake_session::{Console, Exit, Failure, descriptors, files};

use crate::cli::RunArgs;
use crate::spec;

/// Runs a load test, or prints its spec.
///
/// # Errors
/// When there is no result.
pub fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let mut command = spec::of_run(args, console)?;
    if let Some(format) = args.spec.print_spec {
        console.result(&command.print(format)?)?;
        return Ok(Exit::Done);
    }
    let has_agents = args.fleet.agents.or(args.fleet.local).is_some();
    if !has_agents {
        command.key_log_from(std::env::var_os("SSLKEYLOGFILE"), console);
        command.proxy_from_environment()?;
    }
    let descriptors = descriptors::raise();
    let lab = command.start_demo()?;
    let redactor = redactor(&args.redaction, console)?;
    let loaded = command.load()?;
    if has_agents {
        command.check_agents(&loaded)?;
    }
    let scripts = command.agent_scripts(&loaded, args.output.verbose);
    let agents = FleetMaker::of(&args.fleet)?;
    let agents = agents.map(|maker| maker.for_scripts(!scripts.is_empty()));
    let mut prepared = command.prepare_loaded(&loaded)?;
    prepared.redact(&redactor);
    if args.debug {
        return gake_session::debug::debug(&prepared, &command.spec, &redactor, console);
    }
    if has_agents {
        prepared.keep_to_one_table();
    }
    let read = command.files(args.spec.spec.as_deref());
    files::distinct(args.output.files(), read.iter().map(std::path::PathBuf::as_path))?;
    let quiet = args.output.quiet;
    let sinks = &args.output.sinks;
    let drain = SinkDrain::new(sinks.sink_spill, args.output.out.as_deref(), console);
    let spans = start_traces(&args.trace, (sinks, drain.spill()), has_agents, &mut prepared)?;
    let show = Session {
        drain: &drain,
        output: &args.output,
        web: &args.web,
        history: &args.history,
        redactor: &redactor,
        console,
        spec: Some(&command.spec),
        // Rows of later requests would not be counted.
        probe: !args.judge.no_probe && args.judge.reconcile.is_none(),
    };
    let begin = || {
        if !quiet {
            let descriptors = (!has_agents).then_some(descriptors);
            gake_session::announce::announce(&prepared, &command.spec, descriptors, console);
        }
        let spec = match has_agents {
            true => Cow::Owned(loaded.inlined(&command.spec)),
            false => Cow::Borrowed(&command.spec),
        };
        let what = (&*spec, scripts.as_slice());
        let agents = assemble(agents.as_ref(), what, &prepared, quiet, console)?;
        let rows = args.judge.reconcile.as_deref();
        let rows = rows.map(|text| Reconciliation::begin(text, &command.spec)).transpose()?;
        Ok((agents, rows))
    };
    let exit = show.run(&prepared, spans, begin, &|error| command.failure(error))?;
    command.note_repeats(console);
    if let Some(lab) = lab {
        lab.shutdown();
    }
    Ok(exit)
}
