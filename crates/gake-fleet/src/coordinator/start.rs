//! Starts the agents of a fleet, or goes on with those that another process started.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use async_nats::Subscriber;
use gake_core::clock::Nanos;
use gake_run::{RunClock, RunHandle};
use tokio::runtime::Runtime;

use super::conduct::{Conduct, Rules};
use super::feed::{Feed, call_off};
use super::find::Finder;
use super::join::Joiner;
use super::journal::Entry;
use super::journal::description::append;
use super::journal::stream::JournalStream;
use super::{Fleet, Origin, ask, unix_seconds};
use crate::FleetError;
use crate::message::{control_subject, stop_subject};

/// How far the epoch lies ahead of the order to start.
pub(super) const LEAD: Nanos = 1_500_000_000;

/// How a run begins here.
struct Begun {
    /// On this machine's monotonic clock.
    epoch: u64,
    /// Which coordinator of the run this is.
    generation: u32,
    /// The first entry of its journal.
    journal: Option<u64>,
    /// What earlier coordinators wrote.
    earlier: Option<(JournalStream, u64)>,
}

/// What a coordinator listens to beside figures.
struct Heard {
    control: Subscriber,
    stops: Subscriber,
    stored: Subscriber,
    inbox: String,
}

impl Fleet {
    /// Starts the agents, or goes on with them. None of those that this process started goes on
    /// when that fails.
    pub(super) fn begin(&mut self) -> Result<RunHandle, FleetError> {
        let again = || FleetError::System("the agents have been started already".to_owned());
        let runtime = self.runtime.take().ok_or_else(again)?;
        let begun: Result<_, FleetError> = runtime.block_on(async {
            let heard = self.listen().await?;
            let begun = match &self.origin {
                Origin::New(_) => self.start_agents().await?,
                Origin::Adopted(_) => self.go_on_with_agents().await?,
            };
            Ok((heard, begun))
        });
        let (heard, begun) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                // Some may have been started.
                self.call_off(&runtime);
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
        let rules = Rules {
            on_loss: self.settings.on_loss,
            alone_max: self.settings.alone_max,
            generation: begun.generation,
        };
        let mut conduct = Conduct::new(joiner, rules, Instant::now());
        if let Some(first) = begun.journal {
            conduct.begin_journal(first, Instant::now());
        }
        let feed = Feed {
            client: self.client.clone(),
            token: self.settings.token.clone(),
            run: self.run.clone(),
            figures,
            control: heard.control,
            stops: heard.stops,
            stored: heard.stored,
            inbox: heard.inbox,
            conduct,
            messages: sender,
            stop: running.stop.clone(),
            interrupt: self.settings.interrupt.clone(),
            clock,
            listener: self.listener.clone(),
            lost: Arc::clone(&self.lost_now),
            events: self.events.clone(),
            told: 0,
        };
        let thread = std::thread::Builder::new().name("gake-fleet".to_owned());
        let feed = thread.spawn(move || {
            runtime.block_on(async {
                match begun.earlier {
                    Some((journal, entries)) => feed.go_on(journal, entries).await,
                    None => feed.run().await,
                }
            })
        });
        let feed = feed.map_err(|error| {
            self.call_off_anew();
            FleetError::System(error.to_string())
        })?;
        (self.feed, self.stop) = (Some(feed), Some(running.stop.clone()));
        Ok(running)
    }

    async fn listen(&self) -> Result<Heard, FleetError> {
        let failed = |error| self.settings.nats.failed(error);
        let inbox = self.client.new_inbox();
        let control = self.client.subscribe(control_subject(&self.run)).await.map_err(failed)?;
        let stops = self.client.subscribe(stop_subject(&self.run)).await.map_err(failed)?;
        let stored = self.client.subscribe(format!("{inbox}.>")).await.map_err(failed)?;
        Ok(Heard { control, stops, stored, inbox })
    }

    async fn start_agents(&self) -> Result<Begun, FleetError> {
        let epoch = gake_run::monotonic_now() + LEAD;
        let (mut generation, mut journal) = (unix_seconds(), None);
        if let Origin::New(Ok((stream, own, entries))) = &self.origin {
            // Whoever goes on with the run knows that agents may have started.
            let started = Entry::Started(epoch, gake_run::unix_now() + LEAD);
            append(stream, &started, (*own, *entries)).await?;
            (generation, journal) = (*own, Some(entries + 1));
        }
        let finder = Finder { client: &self.client, settings: &self.settings, run: &self.run };
        finder.start(&self.agents, epoch).await?;
        Ok(Begun { epoch, generation, journal, earlier: None })
    }

    async fn go_on_with_agents(&self) -> Result<Begun, FleetError> {
        let Origin::Adopted(adopted) = &self.origin else {
            return Err(FleetError::NoJournal { run: self.run.clone() });
        };
        let finder = Finder { client: &self.client, settings: &self.settings, run: &self.run };
        let epoch = adopted.epoch(&finder, &self.agents).await;
        let fenced = adopted.fence().await?;
        let earlier = Some((adopted.stream().clone(), fenced.entries));
        Ok(Begun { epoch, generation: fenced.generation, journal: None, earlier })
    }

    /// Tells the agents of a run that this process began that it will not be, and deletes its
    /// journal.
    pub(super) fn call_off(&self, runtime: &Runtime) {
        let Origin::New(journal) = &self.origin else { return };
        runtime.block_on(async {
            call_off(&self.client, &self.settings.token, &self.run).await;
            if let Ok((stream, ..)) = journal {
                // Otherwise its entries go after a day, and the empty stream stays.
                let _ = stream.delete().await;
            }
        });
    }

    /// Calls the run off over a new connection.
    fn call_off_anew(&self) {
        // Agents that are not told stop when their coordinator is silent for too long.
        let _ = ask::blocking(async {
            let client = self.settings.nats.connect("gake").await?;
            call_off(&client, &self.settings.token, &self.run).await;
            Ok(())
        });
    }
}
