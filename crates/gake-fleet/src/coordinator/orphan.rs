//! Runs whose coordinator has died, and taking them over.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use gake_core::spec::RunSpec;
use gake_run::{Interrupt, ResolvedRun};
use tokio::runtime::Runtime;

use super::finder::Finder;
use super::journal::description::RunDescription;
use super::journal::stream::JournalStream;
use super::journal::{Decision, JournalEntry, StoppedBy, attached, generation};
use super::settings::FleetSettings;
use super::{Fleet, FleetOrigin, unix_seconds};
use crate::message::{
    Control, StopOrder, control_purpose, control_subject, figures_subject, open_json, seal_json,
};
use crate::script::{OrphanScript, ScriptListener};
use crate::{FleetError, FleetToken, NatsSettings};

/// A coordinator that is silent for this long has died.
const SILENCE_MAX: Duration = Duration::from_millis(1_500);

/// Time limit for measuring an agent's clock.
const CLOCK_MAX: Duration = Duration::from_secs(2);

/// Attempts to take over a run that other processes take over at the same time.
const FENCE_ATTEMPTS: usize = 20;

/// A run whose coordinator has died.
#[derive(Debug)]
pub struct Orphan {
    runtime: Runtime,
    stream: JournalStream,
    description: RunDescription,
    /// The epoch on the first coordinator's monotonic clock, and in Unix nanoseconds.
    epoch: (u64, u64),
    version: String,
}

/// A run that this process takes over.
pub(super) struct AdoptedRun {
    stream: JournalStream,
    epoch: (u64, u64),
}

/// The state of a journal when a coordinator takes over.
pub(super) struct JournalFence {
    /// The generation of the new coordinator.
    pub(super) generation: u32,
    /// The number of messages of earlier coordinators.
    pub(super) entries: u64,
}

impl Orphan {
    /// Finds the run with the id `run`. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, the run has no complete journal there, it has a coordinator,
    /// another version of gake started it, or one of its recordings cannot be read or has changed.
    pub fn find(
        nats: &NatsSettings,
        token: &FleetToken,
        run: &str,
        version: &str,
    ) -> Result<Self, FleetError> {
        let none = || FleetError::NoJournal { run: run.to_owned() };
        // It becomes part of a NATS subject.
        if run.is_empty() || !run.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(none());
        }
        let runtime = super::runtime()?;
        let (nats, token, run) = (nats.clone(), token.clone(), run.to_owned());
        let (stream, description, epoch) = runtime.block_on(async {
            let client = nats.connect("gake").await?;
            let stream = JournalStream { client, nats, token, run };
            let (first, last) = stream.bounds().await?.ok_or_else(none)?;
            if has_coordinator(&stream).await? {
                return Err(FleetError::HasCoordinator { run: stream.run });
            }
            if first > 1 {
                let why = "the start of its journal has expired: NATS keeps entries for 24 hours";
                return Err(FleetError::Spec(format!("run {}: {why}", stream.run)));
            }
            let (description, epoch) = RunDescription::read(&stream, version, last).await?;
            description.check_recordings(&stream.run)?;
            Ok((stream, description, epoch))
        })?;
        Ok(Self { runtime, stream, description, epoch, version: version.to_owned() })
    }

    /// The spec of the run; with a script, only if it replaces the script's load.
    ///
    /// # Errors
    /// When its entry in the journal is not valid.
    pub fn spec(&self) -> Result<RunSpec, FleetError> {
        self.description.spec()
    }

    /// The script, if the run has one.
    ///
    /// # Errors
    /// When its entry in the journal is not valid.
    pub fn script(&self) -> Result<Option<OrphanScript>, FleetError> {
        self.description.script()
    }

    /// As [`adopt`](Self::adopt), for a script: `listener` receives its events on agents, and how
    /// it ended the test before. The journal records whether `interrupt` ended the run.
    ///
    /// # Errors
    /// As [`adopt`](Self::adopt).
    pub fn adopt_script(
        self,
        prepared: &ResolvedRun,
        listener: ScriptListener,
        interrupt: &Interrupt,
    ) -> Result<Fleet, FleetError> {
        let mut fleet = self.adopt(prepared)?;
        fleet.listener = Some(listener);
        fleet.settings.interrupt = Some(interrupt.clone());
        Ok(fleet)
    }

    /// Takes over the agents; the run continues once the fleet is started. `prepared` was made from
    /// its spec. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used.
    pub fn adopt(self, prepared: &ResolvedRun) -> Result<Fleet, FleetError> {
        let Self { runtime, stream, description, epoch, version, .. } = self;
        let (client, run) = (stream.client.clone(), stream.run.clone());
        let figures = runtime.block_on(client.subscribe(figures_subject(&run, "*")));
        let figures = figures.map_err(|error| stream.nats.failed(error))?;
        let agents = description.agents();
        let settings = FleetSettings {
            nats: stream.nats.clone(),
            token: stream.token.clone(),
            agents: agents.len(),
            filter: Vec::new(),
            needs_scripts: false,
            on_loss: description.on_loss,
            version,
            wait: Duration::ZERO,
            interrupt: None,
            alone_max: Duration::from_nanos(description.alone_max),
            keeps_journal: true,
        };
        let connection = (runtime, client, figures);
        let origin = FleetOrigin::AdoptedRun(AdoptedRun { stream, epoch });
        Ok(Fleet::ready(settings, run, connection, agents, prepared, origin))
    }
}

/// Records in the journal of a run without a coordinator that its agents are stopped. Otherwise a
/// process that takes over would count them as silent, and wait. `false` if the run cannot be taken
/// over, or has a coordinator.
pub(super) async fn note_stop(
    stream: JournalStream,
    version: &str,
    asked: StopOrder,
) -> Result<bool, FleetError> {
    let Some((1, last)) = stream.bounds().await? else { return Ok(false) };
    if has_coordinator(&stream).await? {
        return Ok(false);
    }
    let (description, epoch) = RunDescription::read(&stream, version, last).await?;
    let adopted = AdoptedRun { stream, epoch };
    let JournalFence { generation, entries } = adopted.fence().await?;
    let at = gake_run::unix_now().saturating_sub(adopted.started_unix_ns());
    let stopped = |index| (index, "it was stopped by request".to_owned());
    let decision = Decision {
        at,
        lost: (0..description.agents().len()).map(stopped).collect(),
        stopped: Some(at),
        asked,
        stopped_by: Some(StoppedBy::Request),
    };
    let entry = JournalEntry::Decision(decision).encode(generation, 0);
    let number = adopted.stream.append(&entry).await?;
    // After the entry with which this process took over, another one may have done so.
    let others = adopted.stream.between(entries + 1, number).await?;
    Ok(others.iter().all(|other| self::generation(other) < Some(generation)))
}

/// Whether the run has a coordinator.
async fn has_coordinator(stream: &JournalStream) -> Result<bool, FleetError> {
    let control = stream.client.subscribe(control_subject(&stream.run)).await;
    let mut control = control.map_err(|error| stream.nats.failed(error))?;
    let purpose = control_purpose(&stream.run);
    let until = tokio::time::Instant::now() + SILENCE_MAX;
    while let Ok(Some(message)) = tokio::time::timeout_at(until, control.next()).await {
        if open_json::<Control>(&stream.token, &purpose, &message.payload).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl AdoptedRun {
    pub(super) fn stream(&self) -> &JournalStream {
        &self.stream
    }

    /// Takes over the run: agents ignore earlier coordinators from now on, and so do readers of the
    /// journal.
    pub(super) async fn fence(&self) -> Result<JournalFence, FleetError> {
        let stream = &self.stream;
        for _ in 0..FENCE_ATTEMPTS {
            let none = || FleetError::NoJournal { run: stream.run.clone() };
            let (_, before) = stream.bounds().await?.ok_or_else(none)?;
            let mut last = None;
            for number in (1..=before).rev() {
                last = stream.get(number).await?.and_then(|entry| generation(&entry));
                if last.is_some() {
                    break;
                }
            }
            let last = last.unwrap_or(0);
            let generation = unix_seconds().max(last.saturating_add(1));
            let number = super::controller::first_number(generation);
            let control = Control { number, ..Control::default() };
            let message = seal_json(&stream.token, &control_purpose(&stream.run), &control);
            let published =
                stream.client.publish(control_subject(&stream.run), message.into()).await;
            published.map_err(|error| stream.nats.failed(error))?;
            let number = stream.append(&attached(generation)).await?;
            // Another process may have taken over since.
            let others = stream.between(before, number).await?;
            if others.iter().all(|other| self::generation(other) < Some(generation)) {
                return Ok(JournalFence { generation, entries: number - 1 });
            }
        }
        Err(FleetError::HasCoordinator { run: stream.run.clone() })
    }

    /// The start of the run, in Unix nanoseconds.
    pub(super) fn started_unix_ns(&self) -> u64 {
        self.epoch.1
    }

    /// The epoch on this machine's monotonic clock, modulo 2^64: converted by the clock of the
    /// agent that replies fastest, or by the time of day if none does.
    pub(super) async fn epoch(&self, finder: &Finder<'_>, agents: &[super::AssignedAgent]) -> u64 {
        let (started, started_unix_ns) = self.epoch;
        let asked = agents.iter().map(|agent| async {
            let offset = tokio::time::timeout(CLOCK_MAX, finder.offset(&agent.hello)).await;
            let offset = offset.ok()?.ok()?;
            // The epoch on the agent's clock, on ours.
            Some((offset.error, offset.ours(agent.offset.theirs(started))))
        });
        let epochs = join_all(asked).await.into_iter().flatten();
        let by_day = || {
            let since = gake_run::unix_now().saturating_sub(started_unix_ns);
            gake_run::monotonic_now().wrapping_sub(since)
        };
        epochs.min().map_or_else(by_day, |(_, epoch)| epoch)
    }
}
