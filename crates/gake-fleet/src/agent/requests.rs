//! Handling of requests from coordinators.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Message;
use gake_core::exact;
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_core::spec::RunSpec;
use gake_run::script::{ConfiguredScript, ScriptRun, ScriptSlice, load_archive, within};
use gake_run::{Inputs, PreparedRun, Recordings, ResolvedRun, RunError, Scripts, SliceLog};

use super::script_reporter::ScriptReporter;
use super::slice_run::{SliceRun, SliceScript};
use super::slice_state::SliceOutcome;
use super::{Agent, AgentEvent, AgentServer, all_cores};
use crate::FleetError;
use crate::allow::for_agents;
use crate::files::{FileContents, OpenFiles};
use crate::message::{
    ClockQuestion, ClockReply, FileChunk, FileReceived, FilesMissing, FilesQuestion, LogQuestion,
    LogReply, Offer, OfferReply, ScriptOffer, SpecChunk, SpecReceived, StartOrder, StartReply,
    StopReply, StopRequest, UnitRange, decrypt_json,
};
use crate::token::random_text;

/// The reason of an agent without `--scripts`.
const NO_SCRIPTS: &str = "it runs no scripts: start it with --scripts";

/// Time limit for loading a script's users, shorter than the coordinator's.
const LOAD_MAX: Duration = Duration::from_secs(40);

/// Time limit for preparing a slice. After it, the preparation is left to itself.
const PREPARE_MAX: Duration = Duration::from_secs(45);

/// A slice that is ready to start.
struct ReadySlice {
    ready: PreparedRun,
    plan: Arc<Plan>,
    scripts: Vec<SliceScript>,
    log: Option<SliceLog>,
}

impl<T: FnMut(AgentEvent)> AgentServer<'_, T> {
    /// Handles a request of a coordinator; one that cannot be decrypted is ignored.
    pub(super) async fn handle(&mut self, request: &Message) -> Result<(), FleetError> {
        let kind = request.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let (token, bytes) = (self.agent.token.clone(), &request.payload);
        let purpose = format!("{kind} {}", self.id);
        match kind.as_str() {
            "offer" => {
                let Some(offer) = decrypt_json::<Offer>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let purpose = format!("offer-answer {}", offer.nonce);
                let reply = self.consider(offer).await?;
                self.reply_encrypted(request, &purpose, &reply).await;
            }
            "spec" | "files" | "file" => self.receive(&kind, request, &purpose).await,
            "clock" => {
                let question = decrypt_json::<ClockQuestion>(&token, &purpose, bytes);
                if let Some(ClockQuestion { run, round }) = question {
                    let reply = ClockReply { round, now: gake_run::monotonic_now() };
                    self.reply_encrypted(request, &format!("clock-answer {run}"), &reply).await;
                }
            }
            "start" => {
                let Some(order) = decrypt_json::<StartOrder>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let slice = self.slice.as_mut().filter(|slice| slice.run == order.run);
                let started = slice.ok_or_else(|| "it does not have this run".to_owned());
                let reply = match started.and_then(|slice| slice.start(order.epoch)) {
                    Ok(()) => StartReply::Started,
                    Err(why) => StartReply::Refused { why },
                };
                let purpose = format!("start-answer {}", order.run);
                self.reply_encrypted(request, &purpose, &reply).await;
            }
            "stop" => {
                let Some(stop) = decrypt_json::<StopRequest>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let is_there = self.slice.as_ref().is_some_and(|slice| slice.run == stop.run);
                if is_there {
                    self.ended(SliceOutcome::Aborted("it was stopped by request".to_owned())).await;
                }
                let purpose = format!("stop-answer {}", stop.challenge);
                self.reply_encrypted(request, &purpose, &StopReply { is_there }).await;
            }
            "log" => {
                let Some(question) = decrypt_json::<LogQuestion>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let events = self.events.iter().cloned().collect();
                let purpose = format!("log-answer {}", question.challenge);
                self.reply_encrypted(request, &purpose, &LogReply { events }).await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Receives chunks and files of a spec before it is offered.
    async fn receive(&mut self, kind: &str, request: &Message, purpose: &str) {
        let (token, bytes) = (self.agent.token.clone(), &request.payload);
        match kind {
            "spec" => {
                let part = decrypt_json::<SpecChunk>(&token, purpose, bytes);
                let Some(part) = part.filter(|part| part.nonce == self.nonce) else {
                    return;
                };
                let purpose = format!("spec-answer {}", part.nonce);
                let taken = SpecReceived { parts: self.keep(part) };
                self.reply_encrypted(request, &purpose, &taken).await;
            }
            "files" => {
                let question = decrypt_json::<FilesQuestion>(&token, purpose, bytes);
                let Some(question) = question.filter(|asked| asked.nonce == self.nonce) else {
                    return;
                };
                let purpose = format!("files-answer {}", question.nonce);
                let missing = FilesMissing { hashes: self.files.missing(&question.hashes) };
                self.reply_encrypted(request, &purpose, &missing).await;
            }
            "file" => {
                let part = decrypt_json::<FileChunk>(&token, purpose, bytes);
                let Some(part) = part.filter(|part| part.nonce == self.nonce) else {
                    return;
                };
                let purpose = format!("file-answer {}", part.nonce);
                let taken = FileReceived { bytes: self.files.take(&part) };
                self.reply_encrypted(request, &purpose, &taken).await;
            }
            _ => {}
        }
    }

    /// Stores a chunk of a spec, and returns the number of chunks.
    fn keep(&mut self, part: SpecChunk) -> usize {
        if part.index == 0 {
            self.parts.clear();
        }
        let bytes: usize = self.parts.iter().map(String::len).sum();
        if part.index == self.parts.len() && bytes + part.text.len() <= exact::READ_MAX {
            self.parts.push(part.text);
        }
        self.parts.len()
    }

    /// Accepts an offer if possible.
    async fn consider(&mut self, offer: Offer) -> Result<OfferReply, FleetError> {
        let refused = |why: &str| Ok(OfferReply::Refused { why: why.to_owned() });
        if offer.nonce != self.nonce {
            return refused("the offer is outdated");
        }
        self.nonce = random_text::<16>()?;
        if self.slice.is_some() {
            return refused("it already has a run");
        }
        let Some(slice) = offer.part.slice() else {
            return refused("there is no such slice");
        };
        // Subscribe before the coordinator sends control messages.
        let control = SliceRun::listen(&self.client, &offer.run).await;
        let control = control.map_err(|error| self.agent.nats.failed(error))?;
        let (agent, spec) = (self.agent.clone(), self.parts.concat() + &offer.spec);
        self.parts.clear();
        let files = self.files.contents();
        let scripts = offer.scripts;
        let preparing = tokio::task::spawn_blocking(move || match scripts.as_slice() {
            [] => prepare(&agent, &spec, files, slice),
            scripts => prepare_scripts(&agent, (scripts, &spec), &files, slice),
        });
        let prepared = match tokio::time::timeout(PREPARE_MAX, preparing).await {
            Ok(prepared) => prepared.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err(format!("it is not ready after {} s", PREPARE_MAX.as_secs())),
        };
        Ok(match prepared {
            Ok(ReadySlice { ready, plan, scripts, log }) => {
                let workers = ready.workers();
                let UnitRange { first, width, of } = offer.part;
                let slice_text = match width {
                    1 => format!("slice {} of {of}", first + 1),
                    _ => format!("slices {} to {} of {of}", first + 1, first + width),
                };
                self.report(AgentEvent::Taken(format!("{slice_text}: {plan}")));
                let bounds = self.agent.limits.bounds(&plan, slice);
                let run = (offer.run, offer.index, Duration::from_nanos(offer.alone));
                self.slice = Some(SliceRun::new(run, plan, (ready, scripts, log), control, bounds));
                OfferReply::Ready { workers }
            }
            Err(why) => {
                // The error may quote the spec.
                let why = self.agent.redactor.text(&why).into_inner();
                self.report(AgentEvent::Refused(why.clone()));
                OfferReply::Refused { why }
            }
        })
    }
}

/// Prepares the workers of a slice, unless the agent's limits forbid it.
fn prepare(
    agent: &Agent,
    spec: &str,
    files: FileContents,
    slice: Slice,
) -> Result<ReadySlice, String> {
    let spec: RunSpec = exact::decode(spec.as_bytes()).map_err(|error| error.to_string())?;
    let mut spec = for_agents(&spec)?;
    if !agent.sources.is_empty() {
        spec.connection.sources.clone_from(&agent.sources);
    }
    // Read during preparation; not needed later.
    let _files = OpenFiles::open(&mut spec, &files)?;
    let recordings = agent.recordings.as_ref().map(|one| one.as_ref() as &dyn Recordings);
    let inputs = Inputs { recordings, ..Inputs::default() };
    let mut prepared = ResolvedRun::new(&spec, inputs).map_err(|error| error.to_string())?;
    agent.limits.check(&spec, &prepared, slice)?;
    prepared.check_descriptors(slice)?;
    prepared.limit_threads(agent.cores.unwrap_or_else(all_cores));
    let mut log = slice_log(agent)?;
    let ready = prepared.ready(slice, log.as_mut()).map_err(|error| error.to_string())?;
    Ok(ReadySlice { ready, plan: Arc::clone(&prepared.plan), scripts: Vec::new(), log })
}

/// Creates the log of a slice, if the agent keeps one.
fn slice_log(agent: &Agent) -> Result<Option<SliceLog>, String> {
    let log = agent.log.as_deref().map(SliceLog::create).transpose();
    log.map_err(|error| error.to_string())
}

/// Scripts of a run that have been loaded from their archives, in the order of its spec.
#[derive(Debug)]
struct LoadedScripts(Mutex<VecDeque<ConfiguredScript>>);

impl Scripts for LoadedScripts {
    fn load(&self, path: &Path) -> Result<ConfiguredScript, RunError> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or_else(|| RunError::cannot(format!("{} was not sent", path.display())))
    }
}

/// Prepares a slice of a run with scripts, unless the agent's limits forbid it. `spec` is the encoded
/// spec; empty if the options of the only script describe the load.
fn prepare_scripts(
    agent: &Agent,
    (offers, spec): (&[ScriptOffer], &str),
    files: &FileContents,
    slice: Slice,
) -> Result<ReadySlice, String> {
    if !agent.scripts {
        return Err(NO_SCRIPTS.to_owned());
    }
    agent.limits.check_script()?;
    let file = |hash: &String| files.get(hash).ok_or("the script was not sent with its run");
    let load_until = Instant::now() + LOAD_MAX;
    let (mut loaded, mut reporters, mut data) = (VecDeque::new(), Vec::new(), Vec::new());
    for (number, offer) in offers.iter().enumerate() {
        let returned = offer.data.as_ref().map(file).transpose()?;
        let returned = returned.map(|bytes| std::str::from_utf8(bytes)).transpose();
        data.push(returned.map_err(|_| "the data of setup is not UTF-8")?);
        let reporter = Arc::new(ScriptReporter::of(number));
        let (archive, log) = (file(&offer.archive)?, reporter.log(offer.is_verbose));
        loaded.push_back(within(load_until, || load_archive(archive, offer.seed, log))?);
        reporters.push(reporter);
    }
    let spec: RunSpec = match loaded.front() {
        Some(own) if spec.is_empty() => own.run.spec.clone(),
        _ => exact::decode(spec.as_bytes()).map_err(|error| error.to_string())?,
    };
    let mut spec = for_agents(&spec)?;
    // Read during preparation; not needed later.
    let _files = OpenFiles::open(&mut spec, files)?;
    if !agent.sources.is_empty() {
        spec.connection.sources.clone_from(&agent.sources);
    }
    let has_own_load = offers.iter().any(|offer| offer.keys.is_none());
    let prepared = match loaded.front() {
        Some(own) if has_own_load => {
            own.script.prepare(&ScriptRun { spec: spec.clone(), ..own.run.clone() })
        }
        _ => {
            let scripts = LoadedScripts(Mutex::new(loaded));
            let recordings = agent.recordings.as_ref().map(|one| one.as_ref() as &dyn Recordings);
            let inputs = Inputs { recordings, scripts: Some(&scripts), ..Inputs::default() };
            ResolvedRun::new(&spec, inputs)
        }
    };
    let mut prepared = prepared.map_err(|error| error.to_string())?;
    for (script, offer) in prepared.scripts.iter_mut().zip(offers) {
        // Objectives, which select some of them, stay with the coordinator.
        script.run.keys = offer.keys.clone().unwrap_or_else(|| script.run.keys.clone());
    }
    agent.limits.check(&spec, &prepared, slice)?;
    prepared.limit_threads(agent.cores.unwrap_or_else(all_cores));
    let permit = agent.limits.permit(&spec.connection, &prepared, slice);
    let mut log = slice_log(agent)?;
    let part = ScriptSlice { slice, data, permit, load_until, log: log.as_mut() };
    let ready = prepared.ready_scripts(part).map_err(|error| error.to_string())?;
    let plan = Arc::clone(&prepared.plan);
    let scripts = prepared.scripts.into_iter().map(|one| one.script).zip(reporters);
    let scripts = scripts.map(|(script, reporter)| SliceScript { script, reporter }).collect();
    Ok(ReadySlice { ready, plan, scripts, log })
}
