//! `gake find`: the capacity of a target, by trial after trial.

mod live;

use std::path::Path;

use gake_core::schedule::Process;
use gake_core::spec::{HttpVersion, RequestSource, RunSpec, ScenarioSpec};
use gake_judge::search::{CapacityResult, Dimension, SearchOptions, SearchResult, StopReason};
use gake_lab::LabConfig;
use gake_report::find::FindReport;
use gake_report::{Format, Style, html};
use gake_run::search::{CapacityOptions, Trials, connections_max};
use gake_session::fleet::{self, FleetMaker};
use gake_session::history::{HistoryEntry, HistoryStore, folder};
use gake_session::options::ResultFormat;
use gake_session::redaction::redactor;
use gake_session::run::SessionTrials;
use gake_session::{Console, Exit, Failure, Results, Signals, descriptors, files};

use crate::cli::{Arrivals, DimensionArg, FindArgs};
use crate::cmd::demo;
use crate::spec::{self, CommandSpec};
use live::SearchLive;

/// Searches for the capacity.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &FindArgs, console: &Console) -> Result<Exit, Failure> {
    let output = &args.output;
    files::distinct(output.files(), [Path::new(&args.target)])?;
    let results =
        Results::create(output.formats.iter().chain(&output.html), output.no_color, console)?;
    let history = history(output.save)?;
    let agents = FleetMaker::of(&args.fleet)?.map(FleetMaker::without_journal);
    let size = usize::try_from(descriptors::raise()).unwrap_or(usize::MAX);
    let (lab, url) = demo::target(&args.target, demo_config()?)?;
    let mut command = spec::of_find(args, &url, console)?;
    check(args, &command.spec)?;
    if agents.is_none() {
        command.proxy_from_environment()?;
    }
    let agents = agents.map(|agents| agents.for_scripts(command.has_scripts()));
    let redactor = redactor(&args.redaction, console)?;
    let signals = Signals::watch().map_err(Failure::signals)?;
    // A lab is in the table of the process.
    let has_one_table = command.has_scripts() || lab.is_some() || !gake_files::can_own_table();
    let most = connections_max(size, has_one_table, agents.as_ref().map(FleetMaker::agents));
    let options = CapacityOptions {
        search: search_options(args),
        warmup: args.search.warmup,
        arrivals: match args.search.arrivals {
            Arrivals::Uniform => Process::Uniform,
            Arrivals::Poisson => Process::Poisson,
        },
        connections: args.search.connections,
        connections_max: most,
        maps: args.search.map,
        interrupt: signals.interrupt().clone(),
        redactor: redactor.clone(),
    };
    let mut runner = SessionTrials::new(output.out.as_deref(), agents.as_ref(), &redactor);
    let trials = Trials::new(&command.spec, &options, command.inputs(), &mut runner)?;
    check_loaded(args, &command, &trials, agents.as_ref())?;
    if !output.quiet {
        trials.loaded().notes().for_each(|note| console.note(note));
    }
    let mut live = SearchLive::new(args, trials.loaded().name(), command.has_scripts(), console);
    let report = trials.capacity(|event| live.show(event))?;
    live.clear();
    if let Some(lab) = lab {
        lab.shutdown();
    }
    if let [first, others @ ..] = runner.losses() {
        console.warn(first);
        if !others.is_empty() {
            console.warn(&format!("the files of {} more steps were lost too", others.len()));
        }
    }
    show(&report, results, console)?;
    if let Some(history) = history {
        let text = gake_report::find::text(&report, Style::default());
        history.add(&HistoryEntry::of_search(&report, text))?;
    }
    Ok(exit(&report.result, signals.came()))
}

/// The history, when the result is to be kept.
fn history(is_kept: bool) -> Result<Option<HistoryStore>, Failure> {
    if !is_kept {
        return Ok(None);
    }
    HistoryStore::create(&folder()?).map(Some)
}

/// Rejects dimensions that the target cannot have.
fn check(args: &FindArgs, spec: &RunSpec) -> Result<(), Failure> {
    let is_websocket = |one: &ScenarioSpec| matches!(one.source, RequestSource::WebSocket(_));
    let is_script = |one: &ScenarioSpec| matches!(one.source, RequestSource::Script(_));
    let dimension = Dimension::from(args.search.dimension);
    if spec.scenarios.iter().any(is_script)
        && !matches!(dimension, Dimension::Rate | Dimension::Users)
    {
        return Err(Failure::usage("a script is searched by --dimension rate or users"));
    }
    if dimension.connects_each() && spec.scenarios.iter().any(is_websocket) {
        return Err(Failure::usage(format!(
            "--dimension {} opens a connection for each request, and the sessions of a WebSocket \
             stay open: search by rate, users or connections",
            dimension.name()
        )));
    }
    if args.search.dimension != DimensionArg::Streams {
        return Ok(());
    }
    if !matches!(spec.connection.http, HttpVersion::Http2 | HttpVersion::Http3) {
        let needs = "--dimension streams needs --http2 or --http3: HTTP/1.1 has no streams";
        return Err(Failure::usage(needs));
    }
    if spec.connection.streams.is_some() {
        return Err(Failure::usage("--streams is what --dimension streams searches: leave it out"));
    }
    Ok(())
}

/// Rejects a dimension that the requests cannot have, and scripts that agents cannot run.
fn check_loaded(
    args: &FindArgs,
    command: &CommandSpec,
    trials: &Trials<'_>,
    agents: Option<&FleetMaker>,
) -> Result<(), Failure> {
    let loaded = trials.loaded();
    if args.search.dimension == DimensionArg::TlsHandshakes && !loaded.is_secure() {
        let needs = "--dimension tls-handshakes needs https:// (or grpcs://) in every URL";
        return Err(Failure::usage(needs));
    }
    if let Some(agents) = agents
        && loaded.scripts().next().is_some()
    {
        command.check_agents(loaded)?;
        // Before `setup` runs.
        agents.find().map_err(fleet::failure)?;
    }
    Ok(())
}

fn search_options(args: &FindArgs) -> SearchOptions {
    SearchOptions {
        dimension: args.search.dimension.into(),
        budget: args.search.budget,
        precision: args.search.precision,
        highest: args.search.max_rate,
        seed: args.search.seed,
        ..SearchOptions::default()
    }
}

/// A server whose capacity theory knows: eight slots, 400/s at most.
fn demo_config() -> Result<LabConfig, Failure> {
    let service = "exp:20ms".parse().map_err(Failure::could_not)?;
    Ok(LabConfig { threads: Some(8), service: Some(service), ..LabConfig::default() })
}

fn show(report: &FindReport, results: Results, console: &Console) -> Result<(), Failure> {
    results.put(console, |format, style| {
        Ok(match format {
            ResultFormat::Summary(Format::Json) => gake_report::find::json(report)?,
            ResultFormat::Summary(Format::Html) => html::find(report),
            _ => gake_report::find::text(report, style),
        }
        .into_bytes())
    })
}

fn exit(result: &SearchResult, interrupted: bool) -> Exit {
    if interrupted {
        return Exit::Interrupted;
    }
    match (&result.found, result.ended) {
        (_, StopReason::Gone) => Exit::CouldNot,
        (CapacityResult::Capacity(_) | CapacityResult::AtLeast { .. }, _) => Exit::Done,
        (CapacityResult::Infeasible { .. }, _) => Exit::ObjectiveFailed,
        (CapacityResult::Unknown, StopReason::Generator) => Exit::Invalid,
        (CapacityResult::Unknown, _) => Exit::CouldNot,
    }
}
