//! Recordings as a load: their requests, and when each is due.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use gake_core::Load;
use gake_core::schedule::TraceBuilder;
use gake_core::spec::{FieldPath, RecordingSpec, ScenarioSpec};
use gake_run::{Inputs, Recordings, Replay, RunError};
use gake_shadow::compare::rules::Glob;
use gake_shadow::compare::template::Templates;
use gake_shadow::traffic::{Record, Traffic, TrafficError};
use gake_wire::{HttpRequest, Location, RequestList, WeightedRequest, basic_authorization};

use crate::exit::Failure;

/// Maximum memory for the distinct requests of a recording, in bytes.
const REQUESTS_BYTES_MAX: usize = 2 << 30;

/// Memory of a request besides its text, in bytes.
const REQUEST_BYTES: usize = 256;

/// Headers of the recorded connection, and those that the client sets itself.
const OWN_HEADERS: &[&str] = &[
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "content-length",
    "expect",
    "upgrade",
];

/// The format of the recording that `target` names, if any. `asked`: whether it must be one;
/// `targets`: whether it is a targets file.
///
/// # Errors
/// When it must be a recording and is not.
pub fn known(asked: bool, targets: bool, target: &str) -> Result<Option<&'static str>, Failure> {
    let path = Path::new(target);
    let may_be = !target.contains("://") && !targets && path.is_file();
    match Traffic::open(path) {
        Ok(traffic) if may_be => Ok(Some(traffic.format().name())),
        Err(TrafficError::Format) | Ok(_) if !asked => Ok(None),
        _ if !may_be && !asked => Ok(None),
        _ if !may_be => Err(Failure::usage(format!(
            "{target} is not a recording: --replay, --speed and --target need one"
        ))),
        Ok(_) => Ok(None),
        Err(TrafficError::Format) => {
            Err(Failure::usage(format!("{target}: {}", TrafficError::Format)))
        }
        Err(error) => Err(Failure::could_not(format!("{target}: {error}"))),
    }
}

/// Standard input and recordings, for specs that name them.
#[must_use]
pub fn inputs() -> Inputs<'static> {
    Inputs {
        stdin: Some(Box::new(BufReader::new(io::stdin()))),
        recordings: Some(&RecordedTraffic),
        ..Inputs::default()
    }
}

/// Reads recordings of the shadow proxy, and the other formats that it knows.
#[derive(Debug)]
pub struct RecordedTraffic;

impl Recordings for RecordedTraffic {
    fn read(
        &self,
        recording: &RecordingSpec,
        scenario: &ScenarioSpec,
        at: &FieldPath,
    ) -> Result<Replay, RunError> {
        let name = recording.path.display().to_string();
        let traffic = Traffic::open(&recording.path).map_err(|error| match error {
            TrafficError::Format => RunError::spec(at.key("recording"), format!("{name}: {error}")),
            error => RunError::cannot(format!("{name}: {error}")),
        })?;
        let mut builder = ReplayBuilder::new(recording, scenario, at)?;
        builder.all(traffic).map_err(|error| RunError::cannot(format!("{name}: {error}")))?;
        builder.finish(&name, at)
    }
}

/// Builds a replay while a recording is read.
struct ReplayBuilder<'a> {
    scenario: &'a ScenarioSpec,
    /// Scheme, user and authority, before each target.
    origin: String,
    select: Vec<Glob>,
    /// Headers of the spec, which override recorded ones.
    headers: Vec<(String, String)>,
    templates: Templates,
    requests: RequestList,
    known: HashMap<u128, u32>,
    bytes: usize,
    order: Vec<u32>,
    trace: TraceBuilder,
    first: Option<u64>,
    /// Whether the requested duration cut it off.
    cut: bool,
    notes: Vec<String>,
    skipped: SkippedCounts,
}

#[derive(Default)]
struct SkippedCounts {
    unselected: u64,
    truncated: u64,
    unsendable: u64,
    redacted: u64,
}

impl<'a> ReplayBuilder<'a> {
    fn new(
        recording: &RecordingSpec,
        scenario: &'a ScenarioSpec,
        at: &FieldPath,
    ) -> Result<Self, RunError> {
        let to = at.key("to");
        let location =
            Location::parse(&recording.to).map_err(|error| RunError::spec(to.clone(), error))?;
        if location.target != "/" {
            let problem = format!(
                "{}: the recorded paths are sent there, so it must have no path itself",
                recording.to
            );
            return Err(RunError::spec(to, problem));
        }
        let mut headers = scenario.request.headers.clone();
        let user = scenario.request.user.as_ref().or(location.user.as_ref());
        headers.extend(user.map(|user| basic_authorization(user)));
        let speed = match scenario.load {
            Load::Replay { speed, .. } => speed,
            _ => 1.0,
        };
        Ok(Self {
            scenario,
            origin: location.to_string().trim_end_matches('/').to_owned(),
            select: recording.select.iter().map(|glob| Glob::new(glob)).collect(),
            headers,
            templates: Templates::default(),
            requests: RequestList::default(),
            known: HashMap::new(),
            bytes: 0,
            order: Vec::new(),
            trace: TraceBuilder::new(speed),
            first: None,
            cut: false,
            notes: Vec::new(),
            skipped: SkippedCounts::default(),
        })
    }

    fn all(&mut self, mut traffic: Traffic) -> anyhow::Result<()> {
        let limit = self.scenario.requests.unwrap_or(u64::MAX);
        while self.trace.arrivals() < limit {
            let Some(record) = traffic.next() else { break };
            if !self.take(record?)? {
                break;
            }
        }
        self.notes.extend(traffic.notes());
        Ok(())
    }

    /// Adds a request. Returns false once the requested duration is over.
    fn take(&mut self, mut record: Record) -> anyhow::Result<bool> {
        let target = path_and_query(&record.target).to_owned();
        let path = target.split('?').next().unwrap_or_default();
        let line = format!("{} {path}", record.method);
        if !self.select.is_empty() && !self.select.iter().any(|glob| glob.matches(&line)) {
            self.skipped.unselected += 1;
            return Ok(true);
        }
        if record.truncated {
            self.skipped.truncated += 1;
            return Ok(true);
        }
        if !is_sendable(&record, &target) {
            self.skipped.unsendable += 1;
            return Ok(true);
        }
        let first = *self.first.get_or_insert(record.offset);
        let offset = record.offset.saturating_sub(first);
        let duration = self.scenario.duration.map_or(u128::MAX, |duration| duration.as_nanos());
        if u128::from(self.trace.due(offset)) >= duration {
            self.cut = true;
            return Ok(false);
        }
        let own = |name: &str| {
            OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str())
                || self.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        record.headers.retain(|(name, _)| !own(name));
        self.skipped.redacted += u64::from(record.is_redacted());
        record.headers.retain(|(_, value)| !Record::is_removed(value));
        record.target = target;
        let number = self.intern(record)?;
        self.trace.push(offset)?;
        self.order.push(number);
        Ok(true)
    }

    /// Returns the number of a request among the distinct ones.
    fn intern(&mut self, record: Record) -> anyhow::Result<u32> {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &record.method, &record.target, &record.headers, &record.body).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        // Collisions of a 128-bit hash are negligible.
        let key = half(0) << 64 | half(1);
        if let Some(&number) = self.known.get(&key) {
            return Ok(number);
        }
        let headers = record.headers.iter().map(|(name, value)| name.len() + value.len() + 48);
        let size = record.target.len() + record.body.len() + headers.sum::<usize>();
        self.bytes += size + self.origin.len() + REQUEST_BYTES;
        if self.bytes > REQUESTS_BYTES_MAX {
            anyhow::bail!(
                "its distinct requests take more than 2 GiB; replay less of it, with -n, -d or \
                 --select"
            );
        }
        let (label, _) = self.templates.endpoint(&record.method, &record.target);
        let number = u32::try_from(self.requests.len())?;
        let (mut headers, mut opaque) = (self.headers.clone(), Vec::new());
        for (name, value) in record.headers {
            match String::from_utf8(value) {
                Ok(value) => headers.push((name, value)),
                Err(error) => opaque.push((name, error.into_bytes())),
            }
        }
        let request = HttpRequest {
            url: format!("{}{}", self.origin, record.target),
            headers,
            opaque,
            body: (!record.body.is_empty()).then(|| Arc::from(record.body)),
            method: record.method,
        };
        self.requests.push(&WeightedRequest { request, label: Some(label), weight: 1 });
        self.known.insert(key, number);
        Ok(number)
    }

    fn finish(mut self, name: &str, at: &FieldPath) -> Result<Replay, RunError> {
        let SkippedCounts { unselected, truncated, unsendable, redacted } = self.skipped;
        for (count, what) in [
            (unselected, "requests are not selected"),
            (truncated, "requests are skipped: their bodies were recorded only in part"),
            (unsendable, "requests are skipped: they cannot be sent as recorded"),
            (redacted, "requests are sent with redacted values (-H replaces headers)"),
        ] {
            if count > 0 {
                self.notes.push(format!("{count} {what}"));
            }
        }
        if self.requests.is_empty() {
            let why = self.notes.join("; ");
            let problem = format!("{name} has no request to replay: {why}");
            return Err(RunError::spec(at.key("recording"), problem));
        }
        // Later requests may have shown that a path segment is a variable: relabel earlier ones.
        for label in self.requests.labels_mut() {
            *label = self.templates.rename(label);
        }
        let whole = self.scenario.duration.filter(|_| self.cut);
        let trace = self.trace.finish(whole.map(|whole| whole.as_nanos() as u64));
        let name = format!("{name} to {}", self.origin);
        Ok(Replay { requests: self.requests, order: self.order, trace, name, notes: self.notes })
    }
}

/// Path and query of a target in origin or absolute form.
fn path_and_query(target: &str) -> &str {
    match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    }
}

/// Whether the client can send it. Tunnels and upgrades are not replayed, and a recording may
/// contain invalid HTTP.
fn is_sendable(record: &Record, target: &str) -> bool {
    let is_method = record.method.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    // Other bytes than ASCII are percent-encoded.
    let is_target = target.bytes().all(|b| (b.is_ascii_graphic() || !b.is_ascii()) && b != b'#');
    let mut headers = record.headers.iter();
    let are_headers = headers.all(|(name, value)| {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !name.is_empty()
            && name.bytes().all(token)
            && !value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t')
    });
    !record.method.is_empty()
        && is_method
        && record.method != "CONNECT"
        && record.header("upgrade").is_none()
        && target.starts_with('/')
        && is_target
        && are_headers
}
