//! `gake fleet attach`: a run whose coordinator died, continued.

use gake_core::spec::{RequestSource, RunSpec};
use gake_fleet::{Orphan, OrphanScript};
use gake_run::{Inputs, ResolvedRun, Scripts};
use gake_session::fleet::{ScriptAgents, failure, settings};
use gake_session::options::AttachArgs;
use gake_session::redaction::redactor;
use gake_session::run::{RunAgents, Session, SinkDrain};
use gake_session::script::{ScriptLoader, log};
use gake_session::{Console, Exit, Failure, files};

use crate::personality;
use crate::spec::agents::SHOWING;

/// Continues a run whose coordinator died.
///
/// # Errors
/// When there is no result.
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
    let mut prepared = ResolvedRun::new(&spec, inputs)
        .map_err(|error| gake_session::spec_error::failure(&error))?;
    prepared.redact(&redactor);
    prepared.keep_to_one_table();
    // Earlier levels of the target are lost, and later ones would be at the wrong instants.
    prepared.watch.clear();
    let asked = prepared.objectives.len();
    prepared.objectives.retain(|objective| !objective.is_about_target());
    if prepared.objectives.len() < asked {
        console.warn(
            "`attach` does not go on with --watch: objectives about the target are not judged",
        );
    }
    let drain = SinkDrain::new(args.output.sinks.sink_spill, args.output.out.as_deref(), console);
    let show = Session {
        drain: &drain,
        output: &args.output,
        web: &args.web,
        history: &args.history,
        redactor: &redactor,
        console,
        spec: Some(&spec),
        probe: false,
    };
    let begin = || {
        if let Some(OrphanScript { set_up, .. }) = script {
            let agents = ScriptAgents::of_orphan(orphan, &prepared);
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

/// Loads the script of a run that another process started.
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
    let log = log::log(console, None, log::ScriptLogFormat::default(), args.output.verbose);
    let log = log.map_err(Failure::usage)?;
    ScriptLoader::of_archive(&script.archive, path.unwrap_or("".as_ref()), log).map_err(unreadable)
}
