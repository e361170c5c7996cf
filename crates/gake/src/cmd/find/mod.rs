//! `gake find`: the capacity of a target, by trial after trial.

mod backlog;
mod live;
mod objectives;
mod reach;
mod target;
mod trials;

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use gake_core::plan::{OTHER_DESCRIPTORS, tables_hold};
use gake_core::spec::{HttpVersion, RequestSource, RunSpec, ScenarioSpec};
use gake_judge::overload::{self, Overload};
use gake_judge::search::{
    Ask, CapacityAnswer, Dimension, Found, Purpose, Search, SearchOptions, StepOutcome, StopReason,
};
use gake_judge::{Clause, Objective};
use gake_lab::LabConfig;
use gake_report::find::FindReport;
use gake_report::{Format, Style, html};
use gake_run::{LoadedRequests, unix_now};
use gake_text::redact::Redactor;
use gake_text::units;

use crate::cli::{DimensionArg, FindArgs};
use crate::cmd::demo;
use crate::spec;
use gake_session::Console;
use gake_session::Results;
use gake_session::Signals;
use gake_session::descriptors;
use gake_session::files;
use gake_session::fleet::{self, FleetMaker};
use gake_session::history::{Entry, Store, folder};
use gake_session::options::Form;
use gake_session::redaction::redactor;
use gake_session::script::is_script;
use gake_session::{Exit, Failure};
use live::SearchLive;
use target::{ScriptTarget, Target};
use trials::Trials;

/// A rest looks this often whether a signal has come.
const LOOK: Duration = Duration::from_millis(50);

/// Searches for the capacity.
///
/// # Errors
/// Why there is no answer.
pub fn run(args: &FindArgs, console: &Console) -> Result<Exit, Failure> {
    let output = &args.output;
    files::distinct(output.files(), [Path::new(&args.target)])?;
    let results =
        Results::create(output.formats.iter().chain(&output.html), output.no_color, console)?;
    let history = history(output.save)?;
    let agents = agents(args)?;
    let size = usize::try_from(descriptors::raise()).unwrap_or(usize::MAX);
    let (lab, url) = demo::target(&args.target, demo_config()?)?;
    let spec = spec::without_load(&args.request, &args.connection, &url)?;
    let redactor = redactor(&args.redaction, console)?;
    let (target, objectives) = target(args, &spec, &redactor, console)?;
    if let Some(agents) = agents.as_ref().filter(|_| target.is_script()) {
        // Before `setup` runs.
        agents.find().map_err(fleet::failure)?;
    }
    let started_unix_ns = unix_now();
    let signals = Signals::watch().map_err(Failure::signals)?;
    let mut live = SearchLive::new(args, console);
    let agents = agents.as_ref();
    // A lab is in the table of the process.
    let has_one_table = target.is_script() || lab.is_some() || !gake_files::can_own_table();
    let most = most_connections(size, has_one_table, agents.map(FleetMaker::agents));
    let mut trials = Trials::new(args, &spec, &target, &redactor, most, &signals, agents)?;
    announce(args, &target, console);
    let clauses = objectives::clauses(&objectives, &mut trials)?;
    live.plan(&plan_line(args, &target, &clauses));
    trials.limit(&clauses);
    let mut search = Search::new(clauses, options(args, most));
    follow(&mut search, &mut trials, &signals, &mut live)?;
    let answer = search.answer();
    let map = if args.search.map { map(args, &answer, &mut trials, &live)? } else { None };
    live.clear();
    if let Some(lab) = lab {
        lab.shutdown();
    }
    if let [first, others @ ..] = trials.losses() {
        console.warn(first);
        if !others.is_empty() {
            console.warn(&format!("the files of {} more steps were lost too", others.len()));
        }
    }
    let (causes, overloaded) = trials.causes();
    let report = FindReport {
        target: target.name().to_owned(),
        started_unix_ns,
        dimension: args.search.dimension.into(),
        arrivals: trials.arrivals(),
        budget: args.search.budget,
        precision: args.search.precision,
        clauses: search.clauses().to_vec(),
        steps: search.steps().to_vec(),
        answer,
        map,
        causes,
        overloaded,
        bodies: trials.bodies(),
    };
    results.put(console, |form, style| {
        Ok(match form {
            Form::Summary(Format::Json) => gake_report::find::json(&report)?,
            Form::Summary(Format::Html) => html::find(&report).map_err(io::Error::other)?,
            _ => gake_report::find::text(&report, style),
        }
        .into_bytes())
    })?;
    if let Some(history) = history {
        let text = gake_report::find::text(&report, Style::default());
        history.add(&Entry::of_search(&report, text))?;
    }
    Ok(exit(&report.answer, signals.came()))
}

/// What makes the agents of each step, when others have the load.
fn agents(args: &FindArgs) -> Result<Option<FleetMaker>, Failure> {
    let agents = FleetMaker::of(&args.fleet)?.map(FleetMaker::without_journal);
    Ok(match is_script(Path::new(&args.target)) {
        true => agents.map(FleetMaker::of_scripts),
        false => agents,
    })
}

/// The history, when the answer is to be kept.
fn history(is_kept: bool) -> Result<Option<Store>, Failure> {
    if !is_kept {
        return Ok(None);
    }
    Store::create(&folder()?).map(Some)
}

/// What is loaded, and the objectives that were given for it.
fn target(
    args: &FindArgs,
    spec: &RunSpec,
    redactor: &Redactor,
    console: &Console,
) -> Result<(Target, Vec<Objective>), Failure> {
    let given = &args.search.slo;
    if !is_script(Path::new(&args.target)) {
        check(args, spec)?;
        let target = LoadedRequests::read(spec, gake_session::recording::inputs());
        let mut target = target.map_err(|error| gake_session::spec_error::failure(&error))?;
        if args.search.dimension == DimensionArg::TlsHandshakes && !target.is_secure() {
            let needs = "--dimension tls-handshakes needs https:// (or grpcs://) in every URL";
            return Err(Failure::usage(needs));
        }
        target.redact(redactor);
        return Ok((Target::Requests(target), given.clone()));
    }
    let plain = FindArgs::plain(&args.target).map_err(Failure::usage)?;
    let plain = spec::without_load(&plain.request, &plain.connection, &args.target)?;
    if *spec != plain {
        return Err(Failure::usage(
            "a script says itself what it sends and how it connects: leave out the flags for \
             requests and connections, or set them in the script's options",
        ));
    }
    if !matches!(Dimension::from(args.search.dimension), Dimension::Rate | Dimension::Users) {
        return Err(Failure::usage("a script is searched by --dimension rate or users"));
    }
    let on_agents = args.fleet.agents.or(args.fleet.local).is_some();
    let (script, objectives) = ScriptTarget::load(&args.target, given, on_agents, console)?;
    Ok((Target::Script(script), objectives))
}

/// Rejects what a search by streams, and one of a WebSocket, cannot have.
fn check(args: &FindArgs, spec: &RunSpec) -> Result<(), Failure> {
    let is_websocket = |one: &ScenarioSpec| matches!(one.source, RequestSource::WebSocket(_));
    let dimension = Dimension::from(args.search.dimension);
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

/// Runs every trial that the search asks for.
fn follow(
    search: &mut Search,
    trials: &mut Trials<'_>,
    signals: &Signals,
    live: &mut SearchLive<'_>,
) -> Result<(), Failure> {
    while !signals.came() {
        match search.next() {
            Ask::Done => return Ok(()),
            Ask::Rest(rest) => live.resting(rest, || wait(rest, signals)),
            Ask::Trial(trial) => {
                let seen = trials.run(&trial, search.clauses(), |second| {
                    live.second(&trial, second);
                })?;
                if signals.came() {
                    break;
                }
                search.tell(seen);
                trials.learn(search.unloaded());
                if let Some(step) = search.steps().last() {
                    let climbing = step.trial.purpose == Purpose::Ladder;
                    if step.outcome != StepOutcome::Limited && (climbing || step.missed()) {
                        trials.blame();
                    }
                    live.step(step, search);
                }
            }
        }
    }
    search.interrupt();
    Ok(())
}

/// Goes beyond the capacity and back, when there is one to go beyond.
fn map(
    args: &FindArgs,
    answer: &CapacityAnswer,
    trials: &mut Trials<'_>,
    live: &SearchLive<'_>,
) -> Result<Option<Overload>, Failure> {
    let Found::Capacity(estimate) = &answer.found else { return Ok(None) };
    if trials.interrupted() || !Dimension::from(args.search.dimension).is_rate() {
        return Ok(None);
    }
    let steps = overload::steps(estimate.capacity, args.search.max_rate);
    let length: u64 = steps.iter().map(|step| step.seconds).sum();
    live.plan(&format!(
        "mapping what comes after it: up to {} and back, {length} s",
        units::rate(steps.iter().map(|step| step.level).fold(0.0, f64::max))
    ));
    let seconds = trials.climb(&steps, answer.binding.as_slice())?;
    Ok((!trials.interrupted()).then(|| overload::judge(&steps, &seconds)))
}

fn wait(rest: Duration, signals: &Signals) {
    let mut left = rest;
    while !left.is_zero() && !signals.came() {
        let part = left.min(LOOK);
        sleep(part);
        left -= part;
    }
}

/// Connections that a search can have at once, with descriptor tables of `size`.
fn most_connections(size: usize, has_one_table: bool, agents: Option<usize>) -> usize {
    let one = size.saturating_sub(OTHER_DESCRIPTORS);
    let most = match agents {
        // Each agent may have as many as this process.
        Some(agents) => one.saturating_mul(agents),
        None if has_one_table => one,
        None => tables_hold(size),
    };
    most.max(1)
}

fn options(args: &FindArgs, most: usize) -> SearchOptions {
    let users = most / 2;
    SearchOptions {
        dimension: args.search.dimension.into(),
        budget: args.search.budget,
        precision: args.search.precision,
        highest: args.search.max_rate,
        users_max: SearchOptions::default().users_max.min(users),
        seed: args.search.seed,
    }
}

/// A server whose capacity theory knows: eight slots, 400/s at most.
fn demo_config() -> Result<LabConfig, Failure> {
    let service = "exp:20ms".parse().map_err(Failure::could_not)?;
    Ok(LabConfig { threads: Some(8), service: Some(service), ..LabConfig::default() })
}

fn announce(args: &FindArgs, target: &Target, console: &Console) {
    if !args.output.quiet {
        target.notes().into_iter().for_each(|note| console.note(note));
    }
}

/// The one line before the first step.
fn plan_line(args: &FindArgs, target: &Target, clauses: &[Clause]) -> String {
    let search = &args.search;
    let what = match Dimension::from(search.dimension) {
        Dimension::Rate if target.is_script() => "the most iterations a second",
        Dimension::Rate => "the highest rate",
        Dimension::Users => "the most users",
        Dimension::Connections => "the most open connections",
        Dimension::ConnectRate => "the most new connections a second",
        Dimension::TlsHandshakes => "the most TLS handshakes a second",
        Dimension::Streams => "the most concurrent streams",
    };
    let texts: Vec<&str> = clauses.iter().map(|clause| clause.text.as_str()).collect();
    let highest = search.max_rate.map(|rate| format!(", never over {}", units::number(rate)));
    format!(
        "{}: {what} with {} (to {} in {}{})",
        target.name(),
        texts.join(" and "),
        units::percent(search.precision),
        units::duration(search.budget.as_nanos() as f64),
        highest.unwrap_or_default()
    )
}

fn exit(answer: &CapacityAnswer, interrupted: bool) -> Exit {
    if interrupted {
        return Exit::Interrupted;
    }
    match (&answer.found, answer.ended) {
        (_, StopReason::Gone) => Exit::CouldNot,
        (Found::Capacity(_) | Found::AtLeast { .. }, _) => Exit::Done,
        (Found::Infeasible { .. }, _) => Exit::ObjectiveFailed,
        (Found::Unknown, StopReason::Generator) => Exit::Invalid,
        (Found::Unknown, _) => Exit::CouldNot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_process_may_use_many_descriptor_tables() {
        let most = |has_one_table, agents| most_connections(256, has_one_table, agents);
        assert_eq!([most(true, None), most(false, None)], [192, 2_304]);
        // Agents have one table each.
        assert_eq!([most(false, Some(4)), most(true, Some(4))], [768, 768]);
        assert_eq!(most_connections(10, true, None), 1);
    }
}
