//! The coordinator: finds agents, starts them together, joins what they record.

mod ask;
mod clocks;
pub(crate) mod conduct;
mod feed;
mod find;
pub(crate) mod join;
pub(crate) mod journal;
mod list;
pub(crate) mod lost;
mod measure;
mod offset;
mod orphan;
mod outage;
mod settings;
mod start;
pub(crate) mod weights;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use ask::{AgentLogLine, Stopped};
use async_nats::{Client, Subscriber};
use conduct::Conduct;
pub use feed::FleetListener;
use feed::{LostAgents, call_off};
use find::{Chosen, Finder, Offered};
use gake_core::clock::{SECOND, nanos};
use gake_core::record::{AgentRecord, Run, RunEnd, RunEvent};
use gake_core::spec::RunSpec;
use gake_run::script::{LostParts, SetUp};
use gake_run::{Prepared, RemoteWorkers, RunError, RunHandle, Stop, StopHandle, agent_record};
use gake_text::duration::format_duration;
use join::{Joiner, Member};
pub use journal::StoppedBy;
use journal::description::RunDescription;
use journal::stream::JournalStream;
pub use list::{AgentList, ListedAgent};
use orphan::Adopted;
pub use orphan::Orphan;
pub use settings::{FleetSettings, OnLoss};
use start::LEAD;
use tokio::runtime::Runtime;

use crate::FleetError;
use crate::allow::for_agents;
use crate::files::{recordings, take_along};
use crate::message::figures_subject;
use crate::script::{DescribedScript, ScriptListener, ScriptParcel, take_script};
use crate::token::random_text;

/// Agents that are ready for a run.
pub struct Fleet {
    settings: FleetSettings,
    run: String,
    runtime: Option<Runtime>,
    client: Client,
    figures: Option<Subscriber>,
    agents: Vec<Chosen>,
    plan: Arc<gake_core::plan::Plan>,
    seed: u64,
    origin: Origin,
    started_unix_ns: u64,
    /// Ends the run.
    stop: Option<StopHandle>,
    feed: Option<JoinHandle<Conduct>>,
    aborted: Option<String>,
    left: Option<String>,
    is_stopped: bool,
    stopped_by: Option<StoppedBy>,
    lost: usize,
    unreplaced: usize,
    was_over: bool,
    /// Hears what scripts do.
    listener: Option<ScriptListener>,
    /// Hears what happens to agents.
    events: Option<FleetListener>,
    lost_now: LostAgents,
}

/// Where the run of a fleet comes from.
enum Origin {
    /// This process starts it, with its journal: the stream, which coordinator this is, and the
    /// entries so far. Or without one; why.
    New(Result<(JournalStream, u32, u64), String>),
    /// Another process started it.
    Adopted(Adopted),
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("run", &self.run).field("agents", &self.agents).finish()
    }
}

impl Fleet {
    /// Finds agents and gives each its slice of `spec`, which `prepared` was made of. They wait for
    /// the start then. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, agents are missing, or one of them refuses its slice.
    pub fn assemble(
        settings: FleetSettings,
        spec: &RunSpec,
        prepared: &Prepared,
    ) -> Result<Self, FleetError> {
        let mut told = for_agents(spec).map_err(FleetError::Spec)?;
        let files = take_along(&mut told)?;
        let offered = Offered::spec(&told, files)?;
        Self::gather(settings, (spec, &told), (&offered, Ok(None)), prepared)
    }

    /// As [`assemble`](Self::assemble), for a script: each agent makes its users of `parcel`, and
    /// gives them what `setup` returned. `spec` and `prepared` are those of the script; `listener`
    /// hears what it does on the agents.
    ///
    /// # Errors
    /// Likewise, and when the script cannot run on agents.
    pub fn assemble_script(
        settings: FleetSettings,
        (spec, prepared): (&RunSpec, &Prepared),
        (parcel, set_up): (&ScriptParcel, &SetUp),
        listener: ScriptListener,
    ) -> Result<Self, FleetError> {
        let settings = FleetSettings { needs_scripts: true, ..settings };
        let mut told = for_agents(spec).map_err(FleetError::Spec)?;
        let mut files = take_along(&mut told)?;
        let (offer, script_files) = take_script(parcel, set_up.data.as_deref())?;
        files.extend(script_files);
        let offered = Offered::script((offer, files), &told)?;
        let described = settings.keeps_journal.then(|| DescribedScript::new(parcel, set_up));
        let described = described.transpose();
        let mut fleet = Self::gather(settings, (spec, &told), (&offered, described), prepared)?;
        fleet.listener = Some(listener);
        Ok(fleet)
    }

    /// Checks that agents can do a run of `spec`, as far as that is known before they are found.
    ///
    /// # Errors
    /// What they cannot do.
    pub fn check(spec: &RunSpec) -> Result<(), FleetError> {
        for_agents(spec).map(drop).map_err(FleetError::Spec)
    }

    /// Whether enough agents are there that could do a run, or come in time. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, agents are missing, or whoever asks does not wait for them.
    pub fn find(settings: &FleetSettings) -> Result<(), FleetError> {
        runtime()?.block_on(async {
            let client = settings.nats.connect("gake").await?;
            let finder = Finder { client: &client, settings, run: "" };
            finder.unless_interrupted(finder.agents()).await.map(drop)
        })
    }

    /// Finds agents and offers them `offered`, which `told` was made of. `script` is what the journal
    /// is to have of a script, or why it cannot.
    fn gather(
        settings: FleetSettings,
        (spec, told): (&RunSpec, &RunSpec),
        (offered, script): (&Offered, Result<Option<DescribedScript>, String>),
        prepared: &Prepared,
    ) -> Result<Self, FleetError> {
        let runtime = runtime()?;
        let run = random_text::<8>()?;
        let (client, figures, agents, journal) = runtime.block_on(async {
            let client = settings.nats.connect("gake").await?;
            let finder = Finder { client: &client, settings: &settings, run: &run };
            let figures = client.subscribe(figures_subject(&run, "*")).await;
            let figures = figures.map_err(|error| settings.nats.failed(error))?;
            let found = finder.unless_interrupted(finder.agents()).await?;
            match finder.unless_interrupted(finder.offer(found, offered, &prepared.plan)).await {
                Ok(agents) => {
                    let about = (spec, told, agents.as_slice());
                    let journal = match script {
                        Ok(script) => begin_journal(&client, &settings, &run, about, script).await,
                        Err(why) => Err(why),
                    };
                    Ok((client, figures, agents, journal))
                }
                Err(error) => {
                    call_off(&client, &settings.token, &run).await;
                    Err(error)
                }
            }
        })?;
        let connection = (runtime, client, figures);
        let origin = Origin::New(journal);
        Ok(Self::ready(settings, run, connection, agents, prepared, origin))
    }

    /// One that is not started yet.
    fn ready(
        settings: FleetSettings,
        run: String,
        (runtime, client, figures): (Runtime, Client, Subscriber),
        agents: Vec<Chosen>,
        prepared: &Prepared,
        origin: Origin,
    ) -> Self {
        let started_unix_ns = match &origin {
            Origin::New(_) => 0,
            Origin::Adopted(adopted) => adopted.started_unix_ns(),
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

    /// Whether another process can go on with the run if this one ends, in a sentence.
    #[must_use]
    pub fn describe_journal(&self) -> String {
        match &self.origin {
            Origin::New(Err(why)) => format!("the run ends with this process: {why}"),
            Origin::New(Ok(_)) | Origin::Adopted(_) => {
                format!("if this process dies, `gake fleet attach {}` goes on", self.run)
            }
        }
    }

    /// Why no other process can go on with the run, if none can.
    #[must_use]
    pub fn why_no_journal(&self) -> Option<&str> {
        match &self.origin {
            Origin::New(Err(why)) => Some(why),
            Origin::New(Ok(_)) | Origin::Adopted(_) => None,
        }
    }

    /// Deletes the journal of the run, whose result is where it belongs. Blocks.
    pub fn forget(&self) {
        let stream = match &self.origin {
            Origin::New(Ok((stream, ..))) => stream,
            Origin::Adopted(adopted) => adopted.stream(),
            Origin::New(Err(_)) => return,
        };
        if self.left.is_some() {
            return;
        }
        let stream = stream.clone();
        // Otherwise its entries go after a day, and the empty stream stays.
        let _ = ask::blocking(async move {
            let client = stream.nats.connect("gake").await?;
            JournalStream { client, ..stream }.delete().await
        });
    }

    /// Who does the run, in a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        let names: Vec<_> = self.agents.iter().map(|agent| agent.hello.name.as_str()).collect();
        let cores: usize = self.agents.iter().map(|agent| agent.hello.cores).sum();
        let error = self.agents.iter().map(|agent| agent.offset.error).max().unwrap_or(0);
        // Each start may be off by the error, in either direction.
        let apart = Duration::from_micros((2 * error).div_ceil(1_000));
        format!(
            "run {}: {} agents with {cores} cores in all: {}; their starts differ by at most {}",
            self.run,
            names.len(),
            names.join(", "),
            format_duration(apart)
        )
    }

    /// Tells `listener` what happens to the agents, and to the way to them, while the run goes on.
    pub fn tell(&mut self, listener: FleetListener) {
        self.events = Some(listener);
    }

    /// Why the run was ended before its time, if it was: agents were lost, or NATS.
    #[must_use]
    pub fn aborted(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    /// Why this process gave the run up, though its agents may go on.
    #[must_use]
    pub fn left(&self) -> Option<&str> {
        self.left.as_deref()
    }

    /// Whether the run was told to stop: by somebody else ([`Stopped::ask`]), or under an earlier
    /// coordinator, it is not known by whom.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Who told the run to stop, other than the run itself: under this coordinator or an earlier
    /// one. An interrupt is known where its [`FleetSettings`] have it.
    #[must_use]
    pub fn stopped_by(&self) -> Option<StoppedBy> {
        self.stopped_by
    }

    /// Whether an earlier coordinator had the whole run already, and began what follows it.
    #[must_use]
    pub fn was_over(&self) -> bool {
        self.was_over
    }

    /// Tells the slices of the agents that are lost by now, during the run.
    #[must_use]
    pub fn lost_parts(&self) -> LostParts {
        let lost = Arc::clone(&self.lost_now);
        let slices: Vec<_> = self.agents.iter().map(Chosen::slice).collect();
        Arc::new(move || {
            let lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
            lost.iter().filter_map(|index| slices.get(*index).copied()).collect()
        })
    }

    /// How many agents were lost.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// How many agents were lost whose arrivals no other agent took over.
    #[must_use]
    pub fn unreplaced(&self) -> usize {
        self.unreplaced
    }

    /// The cores that the agents may use: those of a machine count once.
    fn cores(&self, joiner: &Joiner) -> usize {
        let mut machines = BTreeMap::<&str, (usize, usize)>::new();
        for (agent, member) in self.agents.iter().zip(&joiner.members) {
            let (used, own) = machines.entry(&agent.hello.host).or_insert((0, usize::MAX));
            *used += agent.hello.cores;
            *own = member.last.as_ref().map_or(*own, |word| word.cores);
        }
        machines.into_values().map(|(used, own)| used.min(own)).sum()
    }

    /// What each agent did, judged by its own figures.
    fn records(&self, joiner: Joiner, whole: &Run) -> Vec<AgentRecord> {
        let agents = joiner.members.into_iter().zip(&self.agents);
        let record = |(member, agent): (Member, &Chosen)| {
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
    /// Tells agents that were never started, and ends a run that nobody waits for.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.call_off(&runtime);
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
            Origin::New(_) => gake_run::unix_now() + LEAD,
            Origin::Adopted(_) => self.started_unix_ns,
        }
    }

    fn complete(&mut self, run: &mut Run) {
        let Some(Ok(Conduct { joiner, aborted, left, is_stopped, stopped_by, was_over, .. })) =
            self.feed.take().map(JoinHandle::join)
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
        run.events.insert(0, RunEvent { at: 0, text: self.describe() });
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

/// Begins the journal of a run, unless it is not wanted; returns why there is no journal.
async fn begin_journal(
    client: &Client,
    settings: &FleetSettings,
    run: &str,
    (spec, told, agents): (&RunSpec, &RunSpec, &[Chosen]),
    script: Option<DescribedScript>,
) -> Result<(JournalStream, u32, u64), String> {
    if !settings.keeps_journal {
        return Err("no journal is wanted".to_owned());
    }
    let (nats, token) = (settings.nats.clone(), settings.token.clone());
    let stream = JournalStream { client: client.clone(), nats, token, run: run.to_owned() };
    let rules = (settings.on_loss, nanos(settings.alone_max));
    let begun: Result<_, FleetError> = async {
        if !stream.create().await? {
            return Ok(None);
        }
        let generation = unix_seconds();
        let about = (recordings(told), agents);
        let description = RunDescription::new(&settings.version, spec, rules, about)?;
        let description = description.of_script(script);
        description.write(&stream, generation).await.map(|entries| Some((generation, entries)))
    }
    .await;
    if begun.is_err() {
        // There may be none, and there is no other way to be rid of it.
        let _ = stream.delete().await;
    }
    match begun {
        Ok(Some((generation, entries))) => Ok((stream, generation, entries)),
        Ok(None) => Err("NATS has no JetStream".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What coordinators run on: a thread of their own.
fn runtime() -> Result<Runtime, FleetError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FleetError::System(error.to_string()))
}

/// Seconds since 1970, which number the coordinators of a run.
fn unix_seconds() -> u32 {
    u32::try_from(gake_run::unix_now() / SECOND).unwrap_or(u32::MAX).max(1)
}
