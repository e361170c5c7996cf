//! The start of a journal: the description of the run for a process that takes over.

use bytes::Bytes;
use gake_core::exact;
use gake_core::spec::RunSpec;
use serde::{Deserialize, Serialize};

use super::stream::JournalStream;
use super::{JournalEntry, JournalReader};
use crate::FleetError;
use crate::allow::for_agents;
use crate::coordinator::clock_offset::ClockOffset;
use crate::coordinator::finder::AssignedAgent;
use crate::coordinator::settings::OnLoss;
use crate::files::{collect_files, recordings};
use crate::message::{AgentHello, PROTOCOL, UnitRange};
use crate::script::{JournalScript, OrphanScript};
use crate::token::SEAL;

/// Bytes of a message besides a chunk of a description.
const MARGIN: usize = 1_024;

/// The description of a run for a process that takes over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunDescription {
    protocol: u32,
    version: String,
    /// The exact encoding of the whole spec, including what agents do not get.
    spec: String,
    pub(crate) on_loss: OnLoss,
    /// How long agents continue without a coordinator, in ns.
    pub(crate) alone_max: u64,
    /// The hashes of its recordings.
    recordings: Vec<String>,
    agents: Vec<(AgentHello, usize, ClockOffset, UnitRange)>,
    /// The script, if the run has one.
    script: Option<JournalScript>,
}

impl RunDescription {
    pub(crate) fn new(
        version: &str,
        spec: &RunSpec,
        (on_loss, alone_max): (OnLoss, u64),
        (recordings, agents): (Vec<String>, &[AssignedAgent]),
    ) -> Result<Self, FleetError> {
        let spec = exact::encode(spec).map_err(|error| FleetError::Spec(error.to_string()))?;
        let agent =
            |agent: &AssignedAgent| (agent.hello.clone(), agent.workers, agent.offset, agent.part);
        Ok(Self {
            protocol: PROTOCOL,
            version: version.to_owned(),
            spec: String::from_utf8_lossy(&spec).into_owned(),
            on_loss,
            alone_max,
            recordings,
            agents: agents.iter().map(agent).collect(),
            script: None,
        })
    }

    /// Adds the script of a run.
    pub(crate) fn of_script(self, script: Option<JournalScript>) -> Self {
        Self { script, ..self }
    }

    /// The script, if the run has one.
    pub(crate) fn script(&self) -> Result<Option<OrphanScript>, FleetError> {
        let unreadable = || FleetError::Spec("the script in the journal is not valid".to_owned());
        self.script.as_ref().map(|script| script.open().ok_or_else(unreadable)).transpose()
    }

    pub(crate) fn spec(&self) -> Result<RunSpec, FleetError> {
        exact::decode(self.spec.as_bytes()).map_err(|error| FleetError::Spec(error.to_string()))
    }

    /// Refuses recordings that have changed since the start: they make the schedule.
    pub(crate) fn check_recordings(&self, run: &str) -> Result<(), FleetError> {
        if self.recordings.is_empty() {
            return Ok(());
        }
        let mut sent = for_agents(&self.spec()?).map_err(FleetError::Spec)?;
        collect_files(&mut sent)?;
        match recordings(&sent) == self.recordings {
            true => Ok(()),
            false => {
                let why = "a recording has changed since its start";
                Err(FleetError::Spec(format!("run {run}: {why}")))
            }
        }
    }

    /// The agents with their slices.
    pub(crate) fn agents(&self) -> Vec<AssignedAgent> {
        let chosen =
            |(hello, workers, offset, part): &(AgentHello, usize, ClockOffset, UnitRange)| {
                AssignedAgent {
                    hello: hello.clone(),
                    workers: *workers,
                    offset: *offset,
                    part: *part,
                }
            };
        self.agents.iter().map(chosen).collect()
    }

    /// Writes the first entries of a journal, and returns their number.
    pub(crate) async fn write(
        &self,
        stream: &JournalStream,
        generation: u32,
    ) -> Result<u64, FleetError> {
        let json = serde_json::to_vec(self).map_err(|error| FleetError::Spec(error.to_string()))?;
        let hidden = Bytes::from(stream.token.encrypt(&purpose(&stream.run), &json)?);
        let size = stream.client.max_payload().saturating_sub(SEAL + MARGIN).max(1);
        let count = hidden.len().div_ceil(size) as u64;
        for (number, start) in (0..).zip((0..hidden.len()).step_by(size)) {
            let chunk = hidden.slice(start..hidden.len().min(start + size));
            let entry = JournalEntry::Description(chunk, number + 1 == count);
            stream.append(&entry.encode(generation, number)).await?;
        }
        Ok(count)
    }

    /// Reads the description and the epoch from the start of a journal: on the first coordinator's
    /// monotonic clock, and in Unix nanoseconds.
    pub(crate) async fn read(
        stream: &JournalStream,
        version: &str,
        entries: u64,
    ) -> Result<(Self, (u64, u64)), FleetError> {
        let unfit = |why: &str| FleetError::Spec(format!("run {}: {why}", stream.run));
        let (mut reader, mut hidden, mut description) =
            (JournalReader::default(), Vec::new(), None);
        for number in 1..=entries {
            let entry = stream.get(number).await?;
            match entry.and_then(|entry| reader.take(&entry)) {
                // Not of this run's coordinator, or a repetition.
                None => {}
                Some(JournalEntry::Description(chunk, is_last)) => {
                    hidden.extend_from_slice(&chunk);
                    if is_last {
                        let json = stream.token.decrypt(&purpose(&stream.run), &hidden);
                        let read = json.and_then(|json| serde_json::from_slice::<Self>(&json).ok());
                        let read = read.ok_or_else(|| unfit("its journal is not valid"))?;
                        if read.protocol != PROTOCOL || read.version != version {
                            let why = format!("gake {} started it", read.version);
                            return Err(unfit(&why));
                        }
                        description = Some(read);
                    }
                }
                Some(JournalEntry::Started(epoch, unix_ns)) => {
                    let read = description.ok_or_else(|| unfit("its journal is not valid"))?;
                    return Ok((read, (epoch, unix_ns)));
                }
                Some(_) => break,
            }
        }
        Err(unfit("it was never started"))
    }
}

fn purpose(run: &str) -> String {
    format!("description {run}")
}
