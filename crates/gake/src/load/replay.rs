//! A recording as a load: which requests, and when each is due.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use gake_core::schedule::{Trace, TraceBuilder};
use gake_shadow::compare::rules::Glob;
use gake_shadow::compare::template::Templates;
use gake_shadow::traffic::{Record, Traffic, TrafficError};
use gake_wire::{Ask, Location, basic_authorization};

use crate::cli::RunArgs;
use crate::exit::Failure;

/// Memory for the different requests of a recording.
const REQUESTS_BYTES_MAX: usize = 2 << 30;

/// What a request takes besides its text.
const REQUEST_BYTES: usize = 256;

/// Headers that belong to the connection they came on, or that the new one sets.
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

/// A recording, read.
#[derive(Debug)]
pub struct Replay {
    /// Its different requests.
    pub asks: Vec<Ask>,
    /// Which of them each arrival sends.
    pub order: Vec<u32>,
    /// When each arrival is due.
    pub trace: Trace,
    /// What the user named.
    pub name: String,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}

/// Reads what `target` names when it is a recording.
///
/// # Errors
/// When it is to be one and is none, or flags contradict each other.
pub fn read(args: &RunArgs, target: &str) -> Result<Option<Replay>, Failure> {
    let flags = &args.replay;
    let asked = flags.replay || flags.speed.is_some() || flags.target.is_some();
    let path = Path::new(target);
    let may_be = !target.contains("://") && !args.request.targets && path.is_file();
    let traffic = match Traffic::open(path) {
        Ok(traffic) if may_be => traffic,
        Err(TrafficError::Format) | Ok(_) if !asked => return Ok(None),
        _ if !may_be && !asked => return Ok(None),
        _ if !may_be => {
            return Err(Failure::usage(format!(
                "{target} is no recording: --replay, --speed and --target need one"
            )));
        }
        Ok(_) => return Ok(None),
        Err(TrafficError::Format) => {
            return Err(Failure::usage(format!("{target}: {}", TrafficError::Format)));
        }
        Err(error) => return Err(Failure::could_not(format!("{target}: {error}"))),
    };
    check(args)?;
    let Some(origin) = &flags.target else {
        return Err(Failure::usage(format!(
            "{target} is {}: say where it is to be sent, with --target http://HOST:PORT",
            traffic.format().name()
        )));
    };
    let mut reading = Reading::new(args, origin)?;
    reading.all(traffic).map_err(|error| Failure::could_not(format!("{target}: {error}")))?;
    reading.finish(target).map(Some)
}

fn check(args: &RunArgs) -> Result<(), Failure> {
    let load = &args.load;
    if load.rate.is_some() || load.stages.is_some() {
        return Err(Failure::usage("a recording has its own rates; --speed 2x doubles them"));
    }
    if load.think.is_some() || !load.warmup.is_zero() {
        return Err(Failure::usage("a replay has neither --think nor --warmup"));
    }
    if args.request.data.is_some() || args.request.method.is_some() {
        return Err(Failure::usage("a recording has its own methods and bodies"));
    }
    Ok(())
}

/// What is known while a recording is read.
struct Reading<'a> {
    args: &'a RunArgs,
    /// Scheme, user and authority, before each target.
    origin: String,
    select: Vec<Glob>,
    /// Headers of the command line, which replace recorded ones.
    headers: Vec<(String, String)>,
    templates: Templates,
    asks: Vec<Ask>,
    known: HashMap<u128, u32>,
    bytes: usize,
    order: Vec<u32>,
    trace: TraceBuilder,
    first: Option<u64>,
    /// Whether the duration asked for ended it.
    cut: bool,
    notes: Vec<String>,
    left_out: LeftOut,
}

#[derive(Default)]
struct LeftOut {
    unselected: u64,
    truncated: u64,
    unsendable: u64,
    redacted: u64,
}

impl<'a> Reading<'a> {
    fn new(args: &'a RunArgs, origin: &str) -> Result<Self, Failure> {
        let location = Location::parse(origin).map_err(Failure::usage)?;
        if location.target != "/" {
            return Err(Failure::usage(format!(
                "--target {origin}: it is where the recorded paths are sent, and has none itself"
            )));
        }
        let mut headers = args.request.header.clone();
        let user = args.request.user.as_ref().or(location.user.as_ref());
        headers.extend(user.map(|user| basic_authorization(user)));
        Ok(Self {
            args,
            origin: location.to_string().trim_end_matches('/').to_owned(),
            select: args.replay.select.iter().map(|glob| Glob::new(glob)).collect(),
            headers,
            templates: Templates::default(),
            asks: Vec::new(),
            known: HashMap::new(),
            bytes: 0,
            order: Vec::new(),
            trace: TraceBuilder::new(args.replay.speed.unwrap_or(1.0)),
            first: None,
            cut: false,
            notes: Vec::new(),
            left_out: LeftOut::default(),
        })
    }

    fn all(&mut self, mut traffic: Traffic) -> anyhow::Result<()> {
        let limit = self.args.load.requests.unwrap_or(u64::MAX);
        while self.trace.arrivals() < limit {
            let Some(record) = traffic.next() else { break };
            if !self.take(record?)? {
                break;
            }
        }
        self.notes.extend(traffic.notes());
        Ok(())
    }

    /// Takes a request in; tells whether there is room for more.
    fn take(&mut self, mut record: Record) -> anyhow::Result<bool> {
        let target = path_and_query(&record.target).to_owned();
        let path = target.split('?').next().unwrap_or_default();
        let line = format!("{} {path}", record.method);
        if !self.select.is_empty() && !self.select.iter().any(|glob| glob.matches(&line)) {
            self.left_out.unselected += 1;
            return Ok(true);
        }
        if record.truncated {
            self.left_out.truncated += 1;
            return Ok(true);
        }
        if !is_sendable(&record, &target) {
            self.left_out.unsendable += 1;
            return Ok(true);
        }
        let first = *self.first.get_or_insert(record.offset);
        let offset = record.offset.saturating_sub(first);
        let duration = self.args.load.duration.map_or(u128::MAX, |duration| duration.as_nanos());
        if u128::from(self.trace.due(offset)) >= duration {
            self.cut = true;
            return Ok(false);
        }
        let own = |name: &str| {
            OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str())
                || self.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        record.headers.retain(|(name, _)| !own(name));
        self.left_out.redacted += u64::from(record.is_redacted());
        record.headers.retain(|(_, value)| !Record::is_redaction(value));
        record.target = target;
        let number = self.intern(record)?;
        self.trace.push(offset)?;
        self.order.push(number);
        Ok(true)
    }

    /// The number of a request among the different ones.
    fn intern(&mut self, record: Record) -> anyhow::Result<u32> {
        let part = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &record.method, &record.target, &record.headers, &record.body).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        // Two requests with the same 128 bits are the same.
        let key = part(0) << 64 | part(1);
        if let Some(&number) = self.known.get(&key) {
            return Ok(number);
        }
        let headers = record.headers.iter().map(|(name, value)| name.len() + value.len() + 48);
        let size = record.target.len() + record.body.len() + headers.sum::<usize>();
        self.bytes += size + self.origin.len() + REQUEST_BYTES;
        if self.bytes > REQUESTS_BYTES_MAX {
            anyhow::bail!(
                "its different requests take more than 2 GiB; take a part of it, with -n, -d or \
                 --select"
            );
        }
        let (label, _) = self.templates.endpoint(&record.method, &record.target);
        let number = u32::try_from(self.asks.len())?;
        self.asks.push(Ask {
            url: format!("{}{}", self.origin, record.target),
            headers: self.headers.iter().cloned().chain(record.headers).collect(),
            body: (!record.body.is_empty()).then(|| Arc::from(record.body)),
            method: record.method,
            label: Some(label),
            weight: 1,
        });
        self.known.insert(key, number);
        Ok(number)
    }

    fn finish(mut self, name: &str) -> Result<Replay, Failure> {
        let LeftOut { unselected, truncated, unsendable, redacted } = self.left_out;
        for (count, what) in [
            (unselected, "requests are not selected"),
            (truncated, "requests are left out: their bodies were not recorded whole"),
            (unsendable, "requests are left out: they cannot be sent as they were recorded"),
            (redacted, "requests are sent without headers that were redacted (-H gives them)"),
        ] {
            if count > 0 {
                self.notes.push(format!("{count} {what}"));
            }
        }
        if self.asks.is_empty() {
            let why = self.notes.join("; ");
            return Err(Failure::usage(format!("{name} has no request to replay: {why}")));
        }
        // Labels of places that were learned to hold names only later.
        for ask in &mut self.asks {
            ask.label = ask.label.as_deref().map(|label| self.templates.again(label));
        }
        let whole = self.args.load.duration.filter(|_| self.cut);
        let trace = self.trace.finish(whole.map(|whole| whole.as_nanos() as u64));
        let name = format!("{name} to {}", self.origin);
        Ok(Replay { asks: self.asks, order: self.order, trace, name, notes: self.notes })
    }
}

/// Path and query of a target, whatever its form.
fn path_and_query(target: &str) -> &str {
    match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    }
}

/// Whether the wire can render it: tunnels and upgrades are no requests to load, and a recording
/// may hold what never was HTTP.
fn is_sendable(record: &Record, target: &str) -> bool {
    let is_method = record.method.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_target = target.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    let mut headers = record.headers.iter();
    let are_headers = headers.all(|(name, value)| {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !name.is_empty()
            && name.bytes().all(token)
            && !value.chars().any(|c| c.is_control() && c != '\t')
    });
    !record.method.is_empty()
        && is_method
        && record.method != "CONNECT"
        && record.header("upgrade").is_none()
        && target.starts_with('/')
        && is_target
        && are_headers
}
