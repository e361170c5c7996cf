//! The requests of an attack: its targets in turn, or as they are read in a lazy attack, each with
//! the headers that Vegeta adds.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use gake_run::Bodies;
use gake_run::targets::{Target, TargetBody, Targets};
use gake_wire::{
    HttpRequest, LocationParser, NextRequest, RequestFeed, RequestList, WeightedRequest,
};
use tokio::sync::mpsc::{Receiver, channel};

use super::options::VegetaOptions;
use gake_session::Failure;
use gake_session::console::stdin;

/// The most targets when all are read in advance.
const TARGETS_MAX: usize = 1_000_000;

/// Targets that a lazy attack reads ahead.
const AHEAD: usize = 1_024;

/// The User-Agent of Go's client.
const USER_AGENT: (&str, &str) = ("User-Agent", "Go-http-client/1.1");

/// The header with which Go's transport asks for compressed bodies, which it decodes itself.
pub const ACCEPT_ENCODING: [&str; 2] = ["Accept-Encoding", "gzip"];

/// Creates the attack's requests, and keeps them for its results.
#[derive(Debug)]
pub struct Requests {
    source: Source,
    /// The requests of a lazy attack by number, until the result is written.
    sent: Mutex<HashMap<u64, WeightedRequest>>,
    /// Why reading targets ended early.
    fault: Arc<Mutex<Option<String>>>,
}

#[derive(Debug)]
enum Source {
    /// A fixed list, in turn.
    Fixed(Arc<RequestList>),
    /// Targets as they are read. A waiting task holds the lock.
    Lazy(tokio::sync::Mutex<Receiver<WeightedRequest>>),
}

impl Requests {
    /// Opens the targets and reads all of them, or the first one of a lazy attack. Returns these,
    /// too.
    pub fn open(options: &VegetaOptions) -> Result<(Self, Arc<RequestList>), Failure> {
        let mut reading = TargetReader::open(options)?;
        let fault = Arc::default();
        let (source, known) = if options.lazy {
            let first = reading.next().transpose()?.ok_or_else(|| reading.empty())?;
            (
                lazy(reading, first.clone(), Arc::clone(&fault))?,
                Arc::new([first].into_iter().collect()),
            )
        } else {
            let mut requests = RequestList::default();
            while let Some(request) = reading.next().transpose()? {
                if requests.len() == TARGETS_MAX {
                    return Err(Failure::usage(format!(
                        "{} holds more than {TARGETS_MAX} targets: read them with -lazy",
                        options.targets
                    )));
                }
                requests.push(&request);
            }
            if requests.is_empty() {
                return Err(reading.empty());
            }
            let requests = Arc::new(requests);
            (Source::Fixed(Arc::clone(&requests)), requests)
        };
        let requests = Self { source, sent: Mutex::default(), fault };
        Ok((requests, known))
    }

    /// The request of arrival `number`; available once in a lazy attack.
    pub fn sent(&self, number: u64) -> Option<WeightedRequest> {
        match &self.source {
            Source::Fixed(requests) => Some(in_turn(requests, number)),
            Source::Lazy(_) => lock(&self.sent).remove(&number),
        }
    }

    /// Why reading targets ended early, if it did.
    pub fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }
}

impl RequestFeed for Requests {
    fn next(&self, number: u64) -> NextRequest<'_> {
        Box::pin(async move {
            let mut next = match &self.source {
                Source::Fixed(requests) => in_turn(requests, number),
                Source::Lazy(receiver) => {
                    let request = receiver.lock().await.recv().await?;
                    lock(&self.sent).insert(number, request.clone());
                    request
                }
            };
            next.request.headers.push(("X-Vegeta-Seq".to_owned(), number.to_string()));
            Some(next)
        })
    }
}

fn in_turn(requests: &RequestList, number: u64) -> WeightedRequest {
    requests.get((number % requests.len() as u64) as usize)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads on a separate thread, at most a queue's length ahead.
fn lazy(
    reading: TargetReader,
    first: WeightedRequest,
    fault: Arc<Mutex<Option<String>>>,
) -> Result<Source, Failure> {
    let (sender, receiver) = channel(AHEAD);
    let read = move || {
        for request in std::iter::once(Ok(first)).chain(reading) {
            match request {
                Ok(request) => {
                    // The receiver is gone after the attack.
                    if sender.blocking_send(request).is_err() {
                        return;
                    }
                }
                Err(failure) => *lock(&fault) = Some(failure.to_string()),
            }
        }
    };
    thread::Builder::new()
        .name("gake-targets".to_owned())
        .spawn(read)
        .map_err(Failure::could_not)?;
    Ok(Source::Lazy(tokio::sync::Mutex::new(receiver)))
}

/// Reads targets one by one and converts them to requests.
struct TargetReader {
    targets: Targets<Box<dyn BufRead + Send>>,
    name: String,
    attack: String,
    headers: Vec<(String, String)>,
    body: Option<Arc<[u8]>>,
    bodies: Bodies,
    parser: LocationParser,
}

impl TargetReader {
    fn open(options: &VegetaOptions) -> Result<Self, Failure> {
        let name = options.targets.clone();
        let reader: Box<dyn BufRead + Send> = match name.as_str() {
            "stdin" => Box::new(BufReader::new(stdin())),
            path => {
                let opened = File::open(path).map_err(|error| {
                    Failure::could_not(format!("error opening {path}: {error}"))
                })?;
                Box::new(BufReader::new(opened))
            }
        };
        let mut bodies = Bodies::default();
        let body = options.body.as_deref().map(|path| bodies.of_file(path)).transpose();
        Ok(Self {
            targets: Targets::new(reader, options.format),
            name,
            attack: options.name.clone(),
            headers: options.headers.clone(),
            body: body.map_err(Failure::could_not)?,
            bodies,
            parser: LocationParser::default(),
        })
    }

    fn empty(&self) -> Failure {
        Failure::could_not(format!(
            "no targets to attack: {} holds none; write lines like `GET http://localhost:8080/`",
            self.name
        ))
    }

    fn request_of(&mut self, target: Target) -> Result<WeightedRequest, String> {
        // `http://:80` means this machine, as in Go.
        let url = target.url.replacen("://:", "://localhost:", 1);
        self.parser.parse(&url).map_err(|error| error.to_string())?;
        let own = match target.body {
            TargetBody::None => None,
            TargetBody::Bytes(bytes) => Some(Arc::from(bytes)),
            TargetBody::File(path) => Some(self.bodies.of_file(&path)?),
        };
        let mut headers = self.headers.clone();
        headers.extend(target.headers);
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("X-Vegeta-Seq"));
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(USER_AGENT.0)) {
            headers.push((USER_AGENT.0.to_owned(), USER_AGENT.1.to_owned()));
        }
        if !self.attack.is_empty() {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("X-Vegeta-Attack"));
            headers.push(("X-Vegeta-Attack".to_owned(), self.attack.clone()));
        }
        let is_given =
            |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        // As Go's transport: compression is its own affair unless the target mentions it.
        if target.method != "HEAD" && !is_given("Accept-Encoding") && !is_given("Range") {
            headers.push(ACCEPT_ENCODING.map(str::to_owned).into());
        } else {
            // The last place is for the header that is not the target's.
            headers.sort_by_key(|(name, _)| !name.eq_ignore_ascii_case("Accept-Encoding"));
        }
        let body = own.or_else(|| self.body.clone());
        let request = HttpRequest { url, headers, body, ..HttpRequest::new(target.method, "") };
        Ok(WeightedRequest { request, label: target.label, weight: 1 })
    }
}

impl Iterator for TargetReader {
    type Item = Result<WeightedRequest, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let wrong = |name: &str, error: String| Failure::could_not(format!("{name}: {error}"));
        let target = match self.targets.next()? {
            Ok(target) => target,
            Err(error) => return Some(Err(wrong(&self.name, error.to_string()))),
        };
        let line = target.line;
        let request =
            self.request_of(target).map_err(|why| wrong(&self.name, format!("line {line}: {why}")));
        Some(request)
    }
}
