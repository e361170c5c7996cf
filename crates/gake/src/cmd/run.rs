//! `gake run`: plan, fire, record, judge, show.

use gake_core::spec::{RequestSource, RunSpec};
use gake_fleet::{Orphan, OrphanScript};
use gake_run::{Inputs, Prepared, Scripts};
use gake_session::fleet::{FleetMaker, ScriptAgents, failure, settings};
use gake_session::options::AttachArgs;
use gake_session::redaction::redactor;
use gake_session::run::{Reconciliation, RunAgents, Session, assemble, start_traces};
use gake_session::script::{ScriptLoader, log};
use gake_session::{Console, Exit, Failure, descriptors, files};

use crate::cli::RunArgs;
use crate::spec::agents::SHOWING;
use crate::{personality, spec};

/// Runs a load test, or prints its spec.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let mut asked = spec::of_run(args, console)?;
    if let Some(format) = args.spec.print_spec {
        console.result(&asked.print(format)?)?;
        return Ok(Exit::Done);
    }
    let has_agents = args.fleet.agents.or(args.fleet.local).is_some();
    if !has_agents {
        asked.key_log_from(std::env::var_os("SSLKEYLOGFILE"), console);
    }
    let descriptors = descriptors::raise();
    let lab = asked.start_demo()?;
    let redactor = redactor(&args.redaction, console)?;
    let loaded = asked.load()?;
    if has_agents {
        asked.check_agents(&loaded)?;
    }
    let script = asked.agent_script(&loaded, args.output.verbose);
    let agents = FleetMaker::of(&args.fleet)?;
    let agents = agents.map(|maker| maker.for_scripts(script.is_some()));
    let mut prepared = asked.prepare_loaded(&loaded)?;
    prepared.redact(&redactor);
    if has_agents {
        prepared.keep_to_one_table();
    }
    let read = asked.files(args.spec.spec.as_deref());
    files::distinct(args.output.files(), read.iter().map(std::path::PathBuf::as_path))?;
    let quiet = args.output.quiet;
    let spans = start_traces(&args.trace, &args.output.sinks, has_agents, &mut prepared)?;
    let show = Session {
        output: &args.output,
        web: &args.web,
        history: &args.history,
        redactor: &redactor,
        console,
        spec: Some(&asked.spec),
    };
    let begin = || {
        if !quiet {
            let descriptors = (!has_agents).then_some(descriptors);
            gake_session::announce::announce(&prepared, &asked.spec, descriptors, console);
        }
        let spec = loaded.inlined(&asked.spec);
        let what = (&spec, script.as_ref());
        let agents = assemble(agents.as_ref(), what, &prepared, quiet, console)?;
        let rows = args.judge.reconcile.as_deref();
        let rows = rows.map(|text| Reconciliation::begin(text, &asked.spec)).transpose()?;
        Ok((agents, rows))
    };
    let exit = show.run(&prepared, spans, begin, &|error| asked.failure(error))?;
    asked.note_repeats(console);
    if let Some(lab) = lab {
        lab.shutdown();
    }
    Ok(exit)
}

/// Goes on with a run whose coordinator died.
///
/// # Errors
/// Why there is no result.
pub fn attach(args: &AttachArgs, console: &Console) -> Result<Exit, Failure> {
    let (nats, token) = settings(&args.nats)?;
    let version = env!("CARGO_PKG_VERSION");
    let orphan = Orphan::find(&nats, &token, &args.run, version).map_err(failure)?;
    files::distinct(args.output.files(), std::iter::empty())?;
    let mut script = orphan.script().map_err(failure)?;
    if let Some(script) = script.take_if(|script| script.showing != SHOWING) {
        return personality::attach(orphan, script, args, console);
    }
    let redactor = redactor(&args.redaction, console)?;
    let spec = orphan.spec().map_err(failure)?;
    let loader =
        script.as_ref().map(|script| archived(script, &spec, args, console)).transpose()?;
    let scripts = loader.as_ref().map(|loader| loader as &dyn Scripts);
    let inputs = Inputs { scripts, ..gake_session::recording::inputs() };
    let mut prepared =
        Prepared::new(&spec, inputs).map_err(|error| gake_session::spec_error::failure(&error))?;
    prepared.redact(&redactor);
    prepared.keep_to_one_table();
    // What was read of the target before is lost, and the rest would stand at the wrong instants.
    prepared.watch.clear();
    let asked = prepared.objectives.len();
    prepared.objectives.retain(|objective| !objective.is_about_target());
    if prepared.objectives.len() < asked {
        console.warn(
            "`attach` does not go on with --watch: objectives about the target are not judged",
        );
    }
    let show = Session {
        output: &args.output,
        web: &args.web,
        history: &args.history,
        redactor: &redactor,
        console,
        spec: Some(&spec),
    };
    let begin = || {
        if let (Some(OrphanScript { set_up, .. }), Some(fired)) = (script, prepared.scripts.first())
        {
            let agents = ScriptAgents::of_orphan(orphan, &fired.script.test, &prepared);
            let agents = agents.map_err(failure)?;
            let agents = agents.described_on((!args.output.quiet).then_some(console));
            return Ok((Some(RunAgents::Script(Box::new(agents), Some(Box::new(set_up)))), None));
        }
        let fleet = orphan.adopt(&prepared).map_err(failure)?;
        if !args.output.quiet {
            console.note(&fleet.describe());
        }
        Ok((Some(RunAgents::Requests(Box::new(fleet))), None))
    };
    show.run(&prepared, Vec::new(), begin, &|error| gake_session::spec_error::failure(&error))
}

/// What loads the script of a run that another process started.
fn archived(
    script: &OrphanScript,
    spec: &RunSpec,
    args: &AttachArgs,
    console: &Console,
) -> Result<ScriptLoader, Failure> {
    let path = spec.scenarios.iter().find_map(|scenario| match &scenario.source {
        RequestSource::Script(script) => Some(script.path.as_path()),
        _ => None,
    });
    let unreadable = |why: String| Failure::could_not(format!("run {}: {why}", args.run));
    let log = log::log(console, None, log::ScriptLogFormat::Text, args.output.verbose);
    let log = log.map_err(Failure::usage)?;
    ScriptLoader::of_archive(&script.archive, path.unwrap_or("".as_ref()), log).map_err(unreadable)
}
