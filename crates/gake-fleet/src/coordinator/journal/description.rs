//! The start of a journal: what another process must know of a run to go on with it.

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
use crate::files::{recordings, take_along};
use crate::message::{AgentHello, PROTOCOL, UnitRange};
use crate::script::{JournalScript, OrphanScript};
use crate::token::SEAL;

/// Bytes of a message beside a part of a description.
const MARGIN: usize = 1_024;

/// What another process must know of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunDescription {
    protocol: u32,
    version: String,
    /// The exact encoding of the spec, with what agents are not told.
    spec: String,
    pub(crate) on_loss: OnLoss,
    /// How long agents go on without their coordinator, in ns.
    pub(crate) alone_max: u64,
    /// The hashes of its recordings.
    recordings: Vec<String>,
    agents: Vec<(AgentHello, usize, ClockOffset, UnitRange)>,
    /// The script, if it is the run of one.
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

    /// The same of a script's run.
    pub(crate) fn of_script(self, script: Option<JournalScript>) -> Self {
        Self { script, ..self }
    }

    pub(crate) fn is_script(&self) -> bool {
        self.script.is_some()
    }

    /// The script, if it is the run of one.
    pub(crate) fn script(&self) -> Result<Option<OrphanScript>, FleetError> {
        let unreadable = || FleetError::Spec("the script in the journal cannot be read".to_owned());
        self.script.as_ref().map(|script| script.open().ok_or_else(unreadable)).transpose()
    }

    /// The spec.
    pub(crate) fn spec(&self) -> Result<RunSpec, FleetError> {
        exact::decode(self.spec.as_bytes()).map_err(|error| FleetError::Spec(error.to_string()))
    }

    /// Refuses recordings that are not those of the start: they make the schedule.
    pub(crate) fn check_recordings(&self, run: &str) -> Result<(), FleetError> {
        let mut told = for_agents(&self.spec()?).map_err(FleetError::Spec)?;
        take_along(&mut told)?;
        match recordings(&told) == self.recordings {
            true => Ok(()),
            false => {
                let why = "a recording has changed since its start";
                Err(FleetError::Spec(format!("run {run}: {why}")))
            }
        }
    }

    /// The agents that had a slice.
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

    /// Writes it as the first entries of a journal; how many they are.
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
            let part = hidden.slice(start..hidden.len().min(start + size));
            let entry = JournalEntry::Description(part, number + 1 == count);
            append(stream, &entry, (generation, number)).await?;
        }
        Ok(count)
    }

    /// Reads it from the start of a journal, with the epoch: on the first coordinator's monotonic
    /// clock, and in ns since 1970.
    pub(crate) async fn read(
        stream: &JournalStream,
        version: &str,
        entries: u64,
    ) -> Result<(Self, (u64, u64)), FleetError> {
        let unfit = |why: &str| FleetError::Spec(format!("run {}: {why}", stream.run));
        let (mut reader, mut hidden, mut description) =
            (JournalReader::default(), Vec::new(), None);
        for number in 1..=entries {
            match reader.take(&stream.get(number).await?) {
                Some(JournalEntry::Description(part, is_last)) => {
                    hidden.extend_from_slice(&part);
                    if is_last {
                        let json = stream.token.decrypt(&purpose(&stream.run), &hidden);
                        let read = json.and_then(|json| serde_json::from_slice::<Self>(&json).ok());
                        let read = read.ok_or_else(|| unfit("its journal cannot be read"))?;
                        if read.protocol != PROTOCOL || read.version != version {
                            let why = format!("gake {} started it", read.version);
                            return Err(unfit(&why));
                        }
                        description = Some(read);
                    }
                }
                Some(JournalEntry::Started(epoch, unix_ns)) => {
                    let read = description.ok_or_else(|| unfit("its journal cannot be read"))?;
                    return Ok((read, (epoch, unix_ns)));
                }
                _ => break,
            }
        }
        Err(unfit("it was never started"))
    }
}

/// Appends one of the first entries of a journal, which nobody else writes.
pub(crate) async fn append(
    stream: &JournalStream,
    entry: &JournalEntry,
    (generation, number): (u32, u64),
) -> Result<(), FleetError> {
    match stream.append_after(number, &entry.encode(generation, number)).await? {
        true => Ok(()),
        false => Err(FleetError::System("somebody else writes the journal of the run".to_owned())),
    }
}

fn purpose(run: &str) -> String {
    format!("description {run}")
}
