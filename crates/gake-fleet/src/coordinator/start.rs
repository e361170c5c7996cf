//! Starts the agents of a fleet, or takes over agents that another process started.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use async_nats::Subscriber;
use gake_core::clock::Nanos;
use gake_run::{RunClock, RunHandle};
use tokio::runtime::Runtime;

use super::controller::{ControlRules, Controller};
use super::coordinator_loop::{CoordinatorLoop, release_agents};
use super::finder::Finder;
use super::join::Joiner;
use super::journal::JournalEntry;
use super::journal::stream::JournalStream;
use super::{Fleet, FleetOrigin, admin, unix_seconds};
use crate::FleetError;
use crate::message::{control_subject, stop_subject};

/// Time from the order to start until the epoch.
pub(super) const LEAD: Nanos = 1_500_000_000;

/// The start of a run in this process.
struct RunStart {
    /// The epoch on this machine's monotonic clock.
    epoch: u64,
    /// The generation of this coordinator.
    generation: u32,
    /// The number of the next journal entry, if there is a journal.
    journal: Option<u64>,
    /// The journal of earlier coordinators, and its number of messages.
    earlier: Option<(JournalStream, u64)>,
}

/// Subscriptions of a coordinator, besides figures.
struct ControlSubscriptions {
    control: Subscriber,
    stops: Subscriber,
    stored: Subscriber,
    inbox: String,
}

impl Fleet {
    /// Starts the agents, or takes them over. If that fails, agents that this process started are
    /// released.
    pub(super) fn begin(&mut self) -> Result<RunHandle, FleetError> {
        let again = || FleetError::System("the agents have already been started".to_owned());
        let runtime = self.runtime.take().ok_or_else(again)?;
        let begun: Result<_, FleetError> = runtime.block_on(async {
            let heard = self.listen().await?;
            let begun = match &self.origin {
                FleetOrigin::New(_) => self.start_agents().await?,
                FleetOrigin::AdoptedRun(_) => self.take_over_agents().await?,
            };
            Ok((heard, begun))
        });
        let (heard, begun) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                // Some agents may have started.
                self.release_agents(&runtime);
                return Err(error);
            }
        };
        let figures = self.figures.take().ok_or_else(again)?;
        let agents = self.agents.iter();
        let named = agents.map(|agent| (agent.hello.name.clone(), agent.workers, agent.part));
        let joiner = Joiner::new(&self.plan, self.seed, &named.collect::<Vec<_>>());
        let (sender, messages) = channel();
        let clock = RunClock::started_at(begun.epoch);
        let running = RunHandle::elsewhere(messages, joiner.workers(), clock.clone());
        let rules = ControlRules {
            on_loss: self.settings.on_loss,
            alone_max: self.settings.alone_max,
            generation: begun.generation,
        };
        let mut controller = Controller::new(joiner, rules, Instant::now());
        if let Some(first) = begun.journal {
            controller.begin_journal(first, Instant::now());
        }
        let feed = CoordinatorLoop {
            client: self.client.clone(),
            token: self.settings.token.clone(),
            run: self.run.clone(),
            figures,
            control: heard.control,
            stops: heard.stops,
            stored: heard.stored,
            inbox: heard.inbox,
            controller,
            messages: sender,
            stop: running.stop.clone(),
            interrupt: self.settings.interrupt.clone(),
            clock,
            listener: self.listener.clone(),
            lost: Arc::clone(&self.lost_now),
            events: self.events.clone(),
            reported: 0,
        };
        let thread = std::thread::Builder::new().name("gake-fleet".to_owned());
        let feed = thread.spawn(move || {
            runtime.block_on(async {
                match begun.earlier {
                    Some((journal, entries)) => feed.resume(journal, entries).await,
                    None => feed.run().await,
                }
            })
        });
        let feed = feed.map_err(|error| {
            self.release_agents_anew();
            FleetError::System(error.to_string())
        })?;
        (self.feed, self.stop) = (Some(feed), Some(running.stop.clone()));
        Ok(running)
    }

    async fn listen(&self) -> Result<ControlSubscriptions, FleetError> {
        let failed = |error| self.settings.nats.failed(error);
        let inbox = self.client.new_inbox();
        let control = self.client.subscribe(control_subject(&self.run)).await.map_err(failed)?;
        let stops = self.client.subscribe(stop_subject(&self.run)).await.map_err(failed)?;
        let stored = self.client.subscribe(format!("{inbox}.>")).await.map_err(failed)?;
        Ok(ControlSubscriptions { control, stops, stored, inbox })
    }

    async fn start_agents(&self) -> Result<RunStart, FleetError> {
        let epoch = gake_run::monotonic_now() + LEAD;
        let (mut generation, mut journal) = (unix_seconds(), None);
        if let FleetOrigin::New(Ok((stream, own, entries))) = &self.origin {
            // A coordinator that takes over must know that agents may have started.
            let started = JournalEntry::Started(epoch, gake_run::unix_now() + LEAD);
            stream.append(&started.encode(*own, *entries)).await?;
            (generation, journal) = (*own, Some(entries + 1));
        }
        let finder = Finder { client: &self.client, settings: &self.settings, run: &self.run };
        finder.start(&self.agents, epoch).await?;
        Ok(RunStart { epoch, generation, journal, earlier: None })
    }

    async fn take_over_agents(&self) -> Result<RunStart, FleetError> {
        let FleetOrigin::AdoptedRun(adopted) = &self.origin else {
            return Err(FleetError::NoJournal { run: self.run.clone() });
        };
        let finder = Finder { client: &self.client, settings: &self.settings, run: &self.run };
        let epoch = adopted.epoch(&finder, &self.agents).await;
        let fenced = adopted.fence().await?;
        let earlier = Some((adopted.stream().clone(), fenced.entries));
        Ok(RunStart { epoch, generation: fenced.generation, journal: None, earlier })
    }

    /// Releases the agents of a run that this process started, and deletes its journal.
    pub(super) fn release_agents(&self, runtime: &Runtime) {
        let FleetOrigin::New(journal) = &self.origin else { return };
        runtime.block_on(async {
            release_agents(&self.client, &self.settings.token, &self.run).await;
            if let Ok((stream, ..)) = journal {
                // Otherwise its entries expire after a day, and the empty stream stays.
                let _ = stream.delete().await;
            }
        });
    }

    /// Releases the agents over a new connection.
    fn release_agents_anew(&self) {
        // Agents that miss it time out without a coordinator.
        let _ = admin::blocking(async {
            let client = self.settings.nats.connect("gake").await?;
            release_agents(&client, &self.settings.token, &self.run).await;
            Ok(())
        });
    }
}
