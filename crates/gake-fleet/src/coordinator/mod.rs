//! The coordinator: finds agents, starts them together, joins their figures.

mod admin;
mod clock_offset;
mod clocks;
pub(crate) mod controller;
mod coordinator_loop;
mod finder;
pub(crate) mod join;
pub(crate) mod journal;
mod list;
pub(crate) mod lost_arrivals;
mod measure;
mod orphan;
mod outage;
mod settings;
mod start;
pub(crate) mod weights;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use admin::{AgentLogLine, StopRecipient};
use async_nats::{Client, Subscriber};
use controller::Controller;
pub use coordinator_loop::FleetListener;
use coordinator_loop::{LostAgents, release_agents};
use finder::{AssignedAgent, Finder, SliceOffer};
use gake_core::clock::{SECOND, nanos};
use gake_core::record::{AgentRecord, Run, RunEnd, RunEvent};
use gake_core::spec::RunSpec;
use gake_run::script::{LostSlices, SetupResult};
use gake_run::{RemoteWorkers, ResolvedRun, RunError, RunHandle, Stop, StopHandle, agent_record};
use gake_text::duration::format_duration;
use join::{Joiner, Member};
pub use journal::StoppedBy;
use journal::description::RunDescription;
use journal::stream::JournalStream;
pub use list::{AgentList, ListedAgent};
use orphan::AdoptedRun;
pub use orphan::Orphan;
pub use settings::{FleetSettings, OnLoss};
use start::LEAD;
use tokio::runtime::Runtime;

use crate::FleetError;
use crate::allow::for_agents;
use crate::files::{collect_files, recordings};
use crate::message::figures_subject;
use crate::script::{JournalScript, ScriptListener, ScriptParcel, script_offer};
use crate::token::random_text;

/// Agents that are ready for a run.
pub struct Fleet {
    settings: FleetSettings,
    run: String,
    runtime: Option<Runtime>,
    client: Client,
    figures: Option<Subscriber>,
    agents: Vec<AssignedAgent>,
    plan: Arc<gake_core::plan::Plan>,
    seed: u64,
    origin: FleetOrigin,
    started_unix_ns: u64,
    /// Ends the run.
    stop: Option<StopHandle>,
    feed: Option<JoinHandle<Controller>>,
    aborted: Option<String>,
    left: Option<String>,
    is_stopped: bool,
    stopped_by: Option<StoppedBy>,
    lost: usize,
    unreplaced: usize,
    was_over: bool,
    /// Receives events of scripts.
    listener: Option<ScriptListener>,
    /// Receives events of agents.
    events: Option<FleetListener>,
    lost_now: LostAgents,
}

/// The process that starts the run of a fleet.
enum FleetOrigin {
    /// This process starts it. The journal: stream, generation and number of entries; or why there
    /// is none.
    New(Result<(JournalStream, u32, u64), String>),
    /// Another process started it.
    AdoptedRun(AdoptedRun),
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("run", &self.run).field("agents", &self.agents).finish()
    }
}

impl Fleet {
    /// Finds agents and prepares a slice of `spec` on each, from which `prepared` was made. They
    /// wait for the start then. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, agents are missing, or one refuses its slice.
    pub fn assemble(
        settings: FleetSettings,
        spec: &RunSpec,
        prepared: &ResolvedRun,
    ) -> Result<Self, FleetError> {
        let mut sent = for_agents(spec).map_err(FleetError::Spec)?;
        let files = collect_files(&mut sent)?;
        let offer = SliceOffer::spec(&sent, files)?;
        Self::find_and_offer(settings, (spec, &sent), (&offer, Ok(None)), prepared)
    }

    /// As [`assemble`](Self::assemble), for a run with scripts: each agent creates users of the
    /// parcels with the return values of `setup`. `listener` receives events of the scripts on
    /// agents. A run with several scripts has no journal.
    ///
    /// # Errors
    /// As [`assemble`](Self::assemble), and when a script cannot run on agents.
    pub fn assemble_scripts(
        settings: FleetSettings,
        (spec, prepared): (&RunSpec, &ResolvedRun),
        (parcels, set_up): (&[ScriptParcel], &[SetupResult]),
        listener: ScriptListener,
    ) -> Result<Self, FleetError> {
        let settings = FleetSettings { needs_scripts: true, ..settings };
        let mut sent = for_agents(spec).map_err(FleetError::Spec)?;
        let mut files = collect_files(&mut sent)?;
        let mut offers = Vec::new();
        for (parcel, set_up) in parcels.iter().zip(set_up) {
            let (offer, script_files) = script_offer(parcel, set_up.data.as_deref())?;
            files.extend(script_files);
            offers.push(offer);
        }
        let offer = SliceOffer::scripts((offers, files), &sent)?;
        let journal_script = match (settings.keeps_journal, parcels, set_up) {
            (true, [parcel], [set_up]) => JournalScript::new(parcel, set_up).map(Some),
            (true, ..) => Err("a journal holds one script".to_owned()),
            (false, ..) => Ok(None),
        };
        let mut fleet =
            Self::find_and_offer(settings, (spec, &sent), (&offer, journal_script), prepared)?;
        fleet.listener = Some(listener);
        Ok(fleet)
    }

    /// Checks that agents support a run of `spec`, as far as that is known before they are found.
    ///
    /// # Errors
    /// What they do not support.
    pub fn check(spec: &RunSpec) -> Result<(), FleetError> {
        for_agents(spec).map(drop).map_err(FleetError::Spec)
    }

    /// Waits until enough suitable agents are available, at most for the time in the settings.
    /// Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, agents are missing, or the wait is interrupted.
    pub fn find(settings: &FleetSettings) -> Result<(), FleetError> {
        runtime()?.block_on(async {
            let client = settings.nats.connect("gake").await?;
            let finder = Finder { client: &client, settings, run: "" };
            finder.unless_interrupted(finder.agents()).await.map(drop)
        })
    }

    /// Finds agents and sends them the offer, which was made from `sent`. `script` is the script
    /// for the journal, or why there can be no journal.
    fn find_and_offer(
        settings: FleetSettings,
        (spec, sent): (&RunSpec, &RunSpec),
        (offer, script): (&SliceOffer, Result<Option<JournalScript>, String>),
        prepared: &ResolvedRun,
    ) -> Result<Self, FleetError> {
        let runtime = runtime()?;
        let run = random_text::<8>()?;
        let (client, figures, agents, journal) = runtime.block_on(async {
            let client = settings.nats.connect("gake").await?;
            let finder = Finder { client: &client, settings: &settings, run: &run };
            let figures = client.subscribe(figures_subject(&run, "*")).await;
            let figures = figures.map_err(|error| settings.nats.failed(error))?;
            let found = finder.unless_interrupted(finder.agents()).await?;
            match finder.unless_interrupted(finder.offer(found, offer, &prepared.plan)).await {
                Ok(agents) => {
                    let about = (spec, sent, agents.as_slice());
                    let journal = match script {
                        Ok(script) => begin_journal(&client, &settings, &run, about, script).await,
                        Err(why) => Err(why),
                    };
                    Ok((client, figures, agents, journal))
                }
                Err(error) => {
                    release_agents(&client, &settings.token, &run).await;
                    Err(error)
                }
            }
        })?;
        let connection = (runtime, client, figures);
        let origin = FleetOrigin::New(journal);
        Ok(Self::ready(settings, run, connection, agents, prepared, origin))
    }

    /// A fleet that has not been started.
    fn ready(
        settings: FleetSettings,
        run: String,
        (runtime, client, figures): (Runtime, Client, Subscriber),
        agents: Vec<AssignedAgent>,
        prepared: &ResolvedRun,
        origin: FleetOrigin,
    ) -> Self {
        let started_unix_ns = match &origin {
            FleetOrigin::New(_) => 0,
            FleetOrigin::AdoptedRun(adopted) => adopted.started_unix_ns(),
        };
        Self {
            settings,
            run,
            runtime: Some(runtime),
            client,
            figures: Some(figures),
            agents,
            plan: Arc::clone(&prepared.plan),
            seed: prepared.seed,
            origin,
            started_unix_ns,
            stop: None,
            feed: None,
            aborted: None,
            left: None,
            is_stopped: false,
            stopped_by: None,
            lost: 0,
            unreplaced: 0,
            was_over: false,
            listener: None,
            events: None,
            lost_now: LostAgents::default(),
        }
    }

    /// Whether another process can take over the run if this one dies, in a sentence.
    #[must_use]
    pub fn describe_journal(&self) -> String {
        match &self.origin {
            FleetOrigin::New(Err(why)) => format!("the run ends with this process: {why}"),
            FleetOrigin::New(Ok(_)) | FleetOrigin::AdoptedRun(_) => {
                format!(
                    "if this process dies, continue the run with `gake fleet attach {}`",
                    self.run
                )
            }
        }
    }

    /// Why no other process can take over the run, if so.
    #[must_use]
    pub fn why_no_journal(&self) -> Option<&str> {
        match &self.origin {
            FleetOrigin::New(Err(why)) => Some(why),
            FleetOrigin::New(Ok(_)) | FleetOrigin::AdoptedRun(_) => None,
        }
    }

    /// Deletes the journal of the run, once the result is stored. Blocks.
    pub fn forget(&self) {
        let stream = match &self.origin {
            FleetOrigin::New(Ok((stream, ..))) => stream,
            FleetOrigin::AdoptedRun(adopted) => adopted.stream(),
            FleetOrigin::New(Err(_)) => return,
        };
        if self.left.is_some() {
            return;
        }
        let stream = stream.clone();
        // Otherwise its entries expire after a day, and the empty stream stays.
        let _ = admin::blocking(async move {
            let client = stream.nats.connect("gake").await?;
            JournalStream { client, ..stream }.delete().await
        });
    }

    /// The agents of the run, in a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        let names: Vec<_> = self.agents.iter().map(|agent| agent.hello.name.as_str()).collect();
        let cores: usize = self.agents.iter().map(|agent| agent.hello.cores).sum();
        let error = self.agents.iter().map(|agent| agent.offset.error).max().unwrap_or(0);
        // Each start may be off by the error in either direction.
        let apart = Duration::from_micros((2 * error).div_ceil(1_000));
        format!(
            "run {}: {} agents with {cores} cores in all: {}; their starts differ by at most {}",
            self.run,
            names.len(),
            names.join(", "),
            format_duration(apart)
        )
    }

    /// Sets the receiver of events of agents and of the connection to NATS during the run.
    pub fn set_listener(&mut self, listener: FleetListener) {
        self.events = Some(listener);
    }

    /// Why the run was ended early, if it was: agents or the connection to NATS were lost.
    #[must_use]
    pub fn aborted(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    /// Why this process abandoned the run, whose agents may continue.
    #[must_use]
    pub fn left(&self) -> Option<&str> {
        self.left.as_deref()
    }

    /// Whether a request stopped the run ([`StopRecipient::request_stop`]), or an earlier
    /// coordinator, for an unknown reason.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Who stopped the run, other than the run itself, under this coordinator or an earlier one. An
    /// interrupt is only known if it is part of [`FleetSettings`].
    #[must_use]
    pub fn stopped_by(&self) -> Option<StoppedBy> {
        self.stopped_by
    }

    /// Whether an earlier coordinator had completed the run and started `teardown`.
    #[must_use]
    pub fn was_over(&self) -> bool {
        self.was_over
    }

    /// Returns a function for the slices of agents that are lost so far.
    #[must_use]
    pub fn lost_slices(&self) -> LostSlices {
        let lost = Arc::clone(&self.lost_now);
        let slices: Vec<_> = self.agents.iter().map(AssignedAgent::slice).collect();
        Arc::new(move || {
            let lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
            lost.iter().filter_map(|index| slices.get(*index).copied()).collect()
        })
    }

    /// The number of lost agents.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// The number of lost agents whose arrivals were not completely taken over.
    #[must_use]
    pub fn unreplaced(&self) -> usize {
        self.unreplaced
    }

    /// The cores that the agents may use. Those on one machine are counted together, up to its
    /// cores.
    fn cores(&self, joiner: &Joiner) -> usize {
        let mut machines = BTreeMap::<&str, (usize, usize)>::new();
        for (agent, member) in self.agents.iter().zip(&joiner.members) {
            let (used, own) = machines.entry(&agent.hello.host).or_insert((0, usize::MAX));
            *used += agent.hello.cores;
            *own = member.last.as_ref().map_or(*own, |word| word.cores);
        }
        machines.into_values().map(|(used, own)| used.min(own)).sum()
    }

    /// A record of each agent, judged by its own figures.
    fn records(&self, joiner: Joiner, whole: &Run) -> Vec<AgentRecord> {
        let agents = joiner.members.into_iter().zip(&self.agents);
        let record = |(member, agent): (Member, &AssignedAgent)| {
            let cores = agent.hello.cores;
            let ending = whole.ending.clone();
            let run = member.collector.finish(whole.started_unix_ns, ending, cores);
            let asked_rate = run.asked_rate.map(|rate| rate * agent.slice().fraction());
            agent_record(member.name, member.lost_at, &Run { asked_rate, ..run })
        };
        agents.map(record).collect()
    }
}

impl Drop for Fleet {
    /// Releases agents that were never started, and ends a run in progress.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.release_agents(&runtime);
        }
        if let (Some(feed), Some(stop)) = (self.feed.take(), &self.stop) {
            stop.stop(Stop::Now);
            let _ = feed.join();
        }
    }
}

impl RemoteWorkers for Fleet {
    fn start(&mut self) -> Result<RunHandle, RunError> {
        self.begin().map_err(RunError::cannot)
    }

    fn started_unix_ns(&self) -> u64 {
        match &self.origin {
            FleetOrigin::New(_) => gake_run::unix_now() + LEAD,
            FleetOrigin::AdoptedRun(_) => self.started_unix_ns,
        }
    }

    fn complete(&mut self, run: &mut Run) {
        let Some(Ok(Controller {
            joiner, aborted, left, is_stopped, stopped_by, was_over, ..
        })) = self.feed.take().map(JoinHandle::join)
        else {
            return;
        };
        (self.aborted, self.left, self.was_over) = (aborted.clone(), left, was_over);
        (self.lost, self.unreplaced) = (joiner.lost().len(), joiner.unreplaced());
        let is_aborted = matches!(run.ending, RunEnd::Aborted(_));
        (self.is_stopped, self.stopped_by) = (is_stopped && !is_aborted, stopped_by);
        if (is_stopped || stopped_by.is_some()) && !is_aborted {
            run.ending = RunEnd::Interrupted;
        }
        if let Some(why) = aborted {
            run.ending = RunEnd::Aborted(why);
        }
        run.events.insert(0, RunEvent::new(0, &self.describe()));
        run.events.extend(joiner.events.iter().cloned());
        let last = joiner.members.iter().filter_map(|member| member.last.as_ref());
        run.generator.rss_bytes = last.map(|word| word.rss_bytes).sum();
        run.generator.cores = self.cores(&joiner);
        for agent in &self.agents {
            let host = format!("{}: {}", agent.hello.name, agent.hello.host);
            run.origin.hosts.push(host);
        }
        run.plan.threads = joiner.workers();
        run.agents = self.records(joiner, run);
    }
}

/// Starts the journal of a run, unless it is disabled; returns why there is no journal.
async fn begin_journal(
    client: &Client,
    settings: &FleetSettings,
    run: &str,
    (spec, sent, agents): (&RunSpec, &RunSpec, &[AssignedAgent]),
    script: Option<JournalScript>,
) -> Result<(JournalStream, u32, u64), String> {
    if !settings.keeps_journal {
        return Err("the journal is disabled".to_owned());
    }
    let (nats, token) = (settings.nats.clone(), settings.token.clone());
    let stream = JournalStream { client: client.clone(), nats, token, run: run.to_owned() };
    let rules = (settings.on_loss, nanos(settings.alone_max));
    let begun: Result<_, FleetError> = async {
        if !stream.create().await? {
            return Ok(None);
        }
        let generation = unix_seconds();
        let about = (recordings(sent), agents);
        let description = RunDescription::new(&settings.version, spec, rules, about)?;
        let description = description.of_script(script);
        description.write(&stream, generation).await.map(|entries| Some((generation, entries)))
    }
    .await;
    if begun.is_err() {
        // There may be no stream, and nothing else would delete it.
        let _ = stream.delete().await;
    }
    match begun {
        Ok(Some((generation, entries))) => Ok((stream, generation, entries)),
        Ok(None) => Err("NATS has no JetStream".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The runtime of a coordinator, on its own thread.
fn runtime() -> Result<Runtime, FleetError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FleetError::System(error.to_string()))
}

/// The time in Unix seconds, which is the generation of a coordinator.
fn unix_seconds() -> u32 {
    u32::try_from(gake_run::unix_now() / SECOND).unwrap_or(u32::MAX).max(1)
}
