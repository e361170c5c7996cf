//! What an agent answers coordinators.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Message;
use gake_core::exact;
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_core::spec::RunSpec;
use gake_run::script::{ScriptSlice, load_archive, within};
use gake_run::{Inputs, PartLog, Prepared, PreparedRun, Recordings};

use super::slice_run::{SliceRun, SliceScript};
use super::slice_state::Outcome;
use super::voice::ScriptVoice;
use super::{Agent, AgentEvent, Serving, all_cores};
use crate::FleetError;
use crate::allow::for_agents;
use crate::files::{Contents, OpenFiles};
use crate::message::{
    ClockAnswer, ClockQuestion, FilePart, FileTaken, FilesMissing, FilesQuestion, LogAnswer,
    LogQuestion, Offer, OfferAnswer, Part, ScriptOffer, SpecPart, SpecTaken, StartAnswer,
    StartOrder, StopAnswer, StopRequest, revealed,
};
use crate::token::random_text;

/// Why an agent refuses every script.
const NO_SCRIPTS: &str = "it runs no scripts: start it with --scripts";

/// How long the users of a script may take to load: less than its coordinator waits for.
const LOAD_MAX: Duration = Duration::from_secs(40);

/// How long a slice may take to be made ready. What takes longer is left to itself.
const PREPARE_MAX: Duration = Duration::from_secs(45);

/// A slice that can start.
struct Prepare {
    ready: PreparedRun,
    plan: Arc<Plan>,
    script: Option<SliceScript>,
    log: Option<PartLog>,
}

impl<T: FnMut(AgentEvent)> Serving<'_, T> {
    /// Answers a request of a coordinator; one that cannot be decrypted gets no answer.
    pub(super) async fn answer(&mut self, request: &Message) -> Result<(), FleetError> {
        let kind = request.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let (token, bytes) = (self.agent.token.clone(), &request.payload);
        let purpose = format!("{kind} {}", self.id);
        match kind.as_str() {
            "offer" => {
                let Some(offer) = revealed::<Offer>(&token, &purpose, bytes) else { return Ok(()) };
                let purpose = format!("offer-answer {}", offer.nonce);
                let answer = self.consider(offer).await?;
                self.reply_hidden(request, &purpose, &answer).await;
            }
            "spec" | "files" | "file" => self.receive(&kind, request, &purpose).await,
            "clock" => {
                let question = revealed::<ClockQuestion>(&token, &purpose, bytes);
                if let Some(ClockQuestion { run, round }) = question {
                    let answer = ClockAnswer { round, now: gake_run::monotonic_now() };
                    self.reply_hidden(request, &format!("clock-answer {run}"), &answer).await;
                }
            }
            "start" => {
                let Some(order) = revealed::<StartOrder>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let slice = self.slice.as_mut().filter(|slice| slice.run == order.run);
                let started = slice.ok_or_else(|| "it does not have this run".to_owned());
                let answer = match started.and_then(|slice| slice.start(order.epoch)) {
                    Ok(()) => StartAnswer::Started,
                    Err(why) => StartAnswer::Refused { why },
                };
                let purpose = format!("start-answer {}", order.run);
                self.reply_hidden(request, &purpose, &answer).await;
            }
            "stop" => {
                let Some(stop) = revealed::<StopRequest>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let is_there = self.slice.as_ref().is_some_and(|slice| slice.run == stop.run);
                if is_there {
                    self.ended(Outcome::GivenUp("it was told to stop".to_owned())).await;
                }
                let purpose = format!("stop-answer {}", stop.challenge);
                self.reply_hidden(request, &purpose, &StopAnswer { is_there }).await;
            }
            "log" => {
                let Some(question) = revealed::<LogQuestion>(&token, &purpose, bytes) else {
                    return Ok(());
                };
                let events = self.events.iter().cloned().collect();
                let purpose = format!("log-answer {}", question.challenge);
                self.reply_hidden(request, &purpose, &LogAnswer { events }).await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes what a spec is made of before it is offered.
    async fn receive(&mut self, kind: &str, request: &Message, purpose: &str) {
        let (token, bytes) = (self.agent.token.clone(), &request.payload);
        match kind {
            "spec" => {
                let part = revealed::<SpecPart>(&token, purpose, bytes);
                let Some(part) = part.filter(|part| part.nonce == self.nonce) else {
                    return;
                };
                let purpose = format!("spec-answer {}", part.nonce);
                let taken = SpecTaken { parts: self.keep(part) };
                self.reply_hidden(request, &purpose, &taken).await;
            }
            "files" => {
                let question = revealed::<FilesQuestion>(&token, purpose, bytes);
                let Some(question) = question.filter(|asked| asked.nonce == self.nonce) else {
                    return;
                };
                let purpose = format!("files-answer {}", question.nonce);
                let missing = FilesMissing { hashes: self.files.missing(&question.hashes) };
                self.reply_hidden(request, &purpose, &missing).await;
            }
            "file" => {
                let part = revealed::<FilePart>(&token, purpose, bytes);
                let Some(part) = part.filter(|part| part.nonce == self.nonce) else {
                    return;
                };
                let purpose = format!("file-answer {}", part.nonce);
                let taken = FileTaken { bytes: self.files.take(&part) };
                self.reply_hidden(request, &purpose, &taken).await;
            }
            _ => {}
        }
    }

    /// Keeps a part of a spec; how many there are.
    fn keep(&mut self, part: SpecPart) -> usize {
        if part.index == 0 {
            self.parts.clear();
        }
        let bytes: usize = self.parts.iter().map(String::len).sum();
        if part.index == self.parts.len() && bytes + part.text.len() <= exact::READ_MAX {
            self.parts.push(part.text);
        }
        self.parts.len()
    }

    /// Takes an offer, when it can.
    async fn consider(&mut self, offer: Offer) -> Result<OfferAnswer, FleetError> {
        let refused = |why: &str| Ok(OfferAnswer::Refused { why: why.to_owned() });
        if offer.nonce != self.nonce {
            return refused("the offer is an old one");
        }
        self.nonce = random_text::<16>()?;
        if self.slice.is_some() {
            return refused("it has a run already");
        }
        let Some(slice) = offer.part.slice() else {
            return refused("there is no such slice");
        };
        // Before the coordinator can say anything.
        let control = SliceRun::listen(&self.client, &offer.run).await;
        let control = control.map_err(|error| self.agent.nats.failed(error))?;
        let (agent, spec) = (self.agent.clone(), self.parts.concat() + &offer.spec);
        self.parts.clear();
        let files = self.files.contents();
        let script = offer.script;
        let preparing = tokio::task::spawn_blocking(move || match script {
            Some(script) => prepare_script(&agent, (&script, &spec), &files, slice),
            None => prepare(&agent, &spec, files, slice),
        });
        let prepared = match tokio::time::timeout(PREPARE_MAX, preparing).await {
            Ok(prepared) => prepared.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err(format!("it is not ready after {} s", PREPARE_MAX.as_secs())),
        };
        Ok(match prepared {
            Ok(Prepare { ready, plan, script, log }) => {
                let workers = ready.workers();
                let Part { first, width, of } = offer.part;
                let slice_text = match width {
                    1 => format!("slice {} of {of}", first + 1),
                    _ => format!("slices {} to {} of {of}", first + 1, first + width),
                };
                self.say(AgentEvent::Taken(format!("{slice_text}: {plan}")));
                let bounds = self.agent.limits.bounds(&plan, slice);
                let run = (offer.run, offer.index, Duration::from_nanos(offer.alone));
                self.slice = Some(SliceRun::new(run, plan, (ready, script, log), control, bounds));
                OfferAnswer::Ready { workers }
            }
            Err(why) => {
                // It may quote the spec.
                let why = self.agent.redactor.text(&why).into_owned();
                self.say(AgentEvent::Refused(why.clone()));
                OfferAnswer::Refused { why }
            }
        })
    }
}

/// Makes the workers of a slice ready, unless the agent must not do it.
fn prepare(agent: &Agent, spec: &str, files: Contents, slice: Slice) -> Result<Prepare, String> {
    let spec: RunSpec = exact::decode(spec.as_bytes()).map_err(|error| error.to_string())?;
    let mut spec = for_agents(&spec)?;
    if !agent.sources.is_empty() {
        spec.connection.sources.clone_from(&agent.sources);
    }
    // They are read before the start.
    let _files = OpenFiles::open(&mut spec, &files)?;
    let recordings = agent.recordings.as_ref().map(|one| one.as_ref() as &dyn Recordings);
    let inputs = Inputs { recordings, ..Inputs::default() };
    let mut prepared = Prepared::new(&spec, inputs).map_err(|error| error.to_string())?;
    agent.limits.check(&spec, &prepared, slice)?;
    prepared.check_descriptors(slice)?;
    prepared.limit_threads(agent.cores.unwrap_or_else(all_cores));
    let mut log = slice_log(agent)?;
    let ready = prepared.ready(slice, log.as_mut()).map_err(|error| error.to_string())?;
    Ok(Prepare { ready, plan: Arc::clone(&prepared.plan), script: None, log })
}

/// The log of a slice, when the agent keeps one.
fn slice_log(agent: &Agent) -> Result<Option<PartLog>, String> {
    let log = agent.log.as_deref().map(PartLog::create).transpose();
    log.map_err(|error| error.to_string())
}

/// Makes the users of a slice of a script's run ready, unless the agent must not do it. `spec` is
/// the encoding of the spec, where another load takes the place of the script's own.
fn prepare_script(
    agent: &Agent,
    (offer, spec): (&ScriptOffer, &str),
    files: &Contents,
    slice: Slice,
) -> Result<Prepare, String> {
    if !agent.scripts {
        return Err(NO_SCRIPTS.to_owned());
    }
    agent.limits.check_script()?;
    let file = |hash: &String| files.get(hash).ok_or("the script did not travel with its run");
    let archive = file(&offer.archive)?;
    let data = offer.data.as_ref().map(file).transpose()?;
    let data = data.map(|bytes| std::str::from_utf8(bytes)).transpose();
    let data = data.map_err(|_| "what setup returned is not UTF-8")?;
    let voice = Arc::new(ScriptVoice::default());
    let load_until = Instant::now() + LOAD_MAX;
    let log = voice.log(offer.is_verbose);
    let (script, mut run) = within(load_until, || load_archive(archive, offer.seed, log))?;
    if let Some(other) = &offer.other_load {
        other.replace(&mut run, exact::decode(spec.as_bytes()).map_err(|e| e.to_string())?);
    }
    run.spec = for_agents(&run.spec)?;
    // They are read before the start.
    let _files = OpenFiles::open(&mut run.spec, files)?;
    if !agent.sources.is_empty() {
        run.spec.connection.sources.clone_from(&agent.sources);
    }
    let mut prepared = script.prepare(&run).map_err(|error| error.to_string())?;
    agent.limits.check_users(&prepared.plan, slice)?;
    prepared.limit_threads(agent.cores.unwrap_or_else(all_cores));
    let permit = agent.limits.permit(&run.spec.connection);
    let mut log = slice_log(agent)?;
    let part = ScriptSlice { slice, data, permit, load_until, log: log.as_mut() };
    let ready = script.ready(&run, &prepared, part).map_err(|error| error.to_string())?;
    let plan = Arc::clone(&prepared.plan);
    Ok(Prepare { ready, plan, script: Some(SliceScript { script, voice }), log })
}
