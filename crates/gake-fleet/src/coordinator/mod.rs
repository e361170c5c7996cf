//! The coordinator: finds agents, starts them together, joins what they record.

mod ask;
pub(crate) mod conduct;
mod feed;
mod find;
pub(crate) mod join;
mod list;
pub(crate) mod lost;
mod offset;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use ask::{AgentLogLine, Stopped};
use async_nats::{Client, Subscriber};
use conduct::Conduct;
use feed::{Feed, call_off};
use find::{Chosen, Finder};
use gake_core::clock::Nanos;
use gake_core::duration::format_duration;
use gake_core::record::{Ending, Event, Run};
use gake_core::spec::RunSpec;
use gake_run::{Prepared, RemoteWorkers, RunClock, RunError, Running};
use join::Joiner;
pub use list::{AgentList, ListedAgent};
pub use settings::{FleetSettings, OnLoss};
use tokio::runtime::Runtime;

use crate::FleetError;
use crate::allow::for_agents;
use crate::message::{control_subject, figures_subject, stop_subject};
use crate::token::random_text;

/// How far the epoch lies ahead of the order to start.
const LEAD: Nanos = 1_500_000_000;

/// What one agent recorded.
#[derive(Debug)]
pub struct AgentRun {
    /// Its name.
    pub name: String,
    /// Its figures, as a run of its slice.
    pub run: Run,
}

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
    feed: Option<JoinHandle<Conduct>>,
    runs: Vec<AgentRun>,
    aborted: bool,
    is_stopped: bool,
    lost: usize,
    unreplaced: usize,
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
        let spec = for_agents(spec).map_err(FleetError::Spec)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| FleetError::System(error.to_string()))?;
        let run = random_text::<8>()?;
        let (client, figures, agents) = runtime.block_on(async {
            let client = settings.nats.connect("gake").await?;
            let finder = Finder { client: &client, settings: &settings, run: &run };
            let figures = client.subscribe(figures_subject(&run, "*")).await;
            let figures = figures.map_err(|error| settings.nats.failed(error))?;
            let found = finder.agents().await?;
            match finder.offer(found, &spec).await {
                Ok(agents) => Ok((client, figures, agents)),
                Err(error) => {
                    call_off(&client, &settings.token, &run).await;
                    Err(error)
                }
            }
        })?;
        Ok(Self {
            settings,
            run,
            runtime: Some(runtime),
            client,
            figures: Some(figures),
            agents,
            plan: Arc::clone(&prepared.plan),
            seed: prepared.seed,
            feed: None,
            runs: Vec::new(),
            aborted: false,
            is_stopped: false,
            lost: 0,
            unreplaced: 0,
        })
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

    /// What each agent recorded, once the run is over.
    #[must_use]
    pub fn runs(&self) -> &[AgentRun] {
        &self.runs
    }

    /// Whether the run was ended because an agent was lost.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.aborted
    }

    /// Whether somebody else ended the run ([`Stopped::ask`]).
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
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

    /// The agents' own runs.
    fn take_runs(&mut self, joiner: Joiner, whole: &Run) {
        let of = self.agents.len().max(1) as f64;
        let agents = joiner.members.into_iter().zip(&self.agents);
        self.runs = agents
            .map(|(member, agent)| {
                let cores = agent.hello.cores;
                let ending = whole.ending.clone();
                let run = member.collector.finish(whole.started_unix_ns, ending, cores);
                let asked_rate = run.asked_rate.map(|rate| rate / of);
                AgentRun { name: member.name, run: Run { asked_rate, ..run } }
            })
            .collect();
    }
}

impl Drop for Fleet {
    /// Tells agents that were never started.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(call_off(&self.client, &self.settings.token, &self.run));
        }
    }
}

impl RemoteWorkers for Fleet {
    fn start(&mut self) -> Result<Running, RunError> {
        let again = || RunError::cannot("the agents have been started already");
        let runtime = self.runtime.take().ok_or_else(again)?;
        let figures = self.figures.take().ok_or_else(again)?;
        let epoch = gake_run::monotonic_now() + LEAD;
        let (client, settings) = (&self.client, &self.settings);
        let started = runtime.block_on(async {
            let control = client.subscribe(control_subject(&self.run)).await;
            let control = control.map_err(|error| settings.nats.failed(error))?;
            let stops = client.subscribe(stop_subject(&self.run)).await;
            let stops = stops.map_err(|error| settings.nats.failed(error))?;
            let finder = Finder { client, settings, run: &self.run };
            let started = finder.start(&self.agents, epoch).await;
            if started.is_err() {
                call_off(client, &settings.token, &self.run).await;
            }
            started.map(|()| (control, stops))
        });
        let (control, stops) = started.map_err(RunError::cannot)?;
        let named = self.agents.iter().map(|agent| (agent.hello.name.clone(), agent.workers));
        let joiner = Joiner::new(&self.plan, self.seed, &named.collect::<Vec<_>>());
        let (sender, messages) = channel();
        let clock = RunClock::starting_in(epoch.saturating_sub(gake_run::monotonic_now()));
        let running = Running::elsewhere(messages, joiner.workers(), clock);
        let feed = Feed {
            client: self.client.clone(),
            token: self.settings.token.clone(),
            run: self.run.clone(),
            figures,
            control,
            stops,
            conduct: Conduct::new(joiner, self.settings.on_loss, Instant::now()),
            messages: sender,
            stop: running.stop.clone(),
            epoch,
        };
        let thread = std::thread::Builder::new().name("gake-fleet".to_owned());
        let feed = thread.spawn(move || runtime.block_on(feed.run())).map_err(RunError::cannot)?;
        self.feed = Some(feed);
        Ok(running)
    }

    fn lead(&self) -> Nanos {
        LEAD
    }

    fn complete(&mut self, run: &mut Run) {
        let Some(Ok(Conduct { joiner, aborted, is_stopped, .. })) =
            self.feed.take().map(JoinHandle::join)
        else {
            return;
        };
        self.aborted = aborted.is_some();
        (self.lost, self.unreplaced) = (joiner.lost().len(), joiner.unreplaced());
        self.is_stopped = is_stopped;
        if is_stopped {
            run.ending = Ending::Interrupted;
        }
        if let Some(why) = aborted {
            run.ending = Ending::Aborted(why);
        }
        run.events.insert(0, Event { at: 0, text: self.describe() });
        run.events.extend(joiner.events.iter().cloned());
        let last = joiner.members.iter().filter_map(|member| member.last.as_ref());
        run.generator.rss_bytes = last.map(|word| word.rss_bytes).sum();
        run.generator.cores = self.cores(&joiner);
        for agent in &self.agents {
            let host = format!("{}: {}", agent.hello.name, agent.hello.host);
            run.origin.hosts.push(host);
        }
        self.take_runs(joiner, run);
    }
}
