//! What is sent: one URL, or the targets of a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gake_core::plan::targets::{Target, TargetBody, TargetFormat, Targets};
use gake_wire::{Ask, Location, WireError, basic_authorization};

use crate::cli::RequestArgs;
use crate::exit::Failure;

/// Targets held at most. More than this is a log to replay, not a mix.
const TARGETS_MAX: usize = 1_000_000;

/// What is sent, and what to call it.
#[derive(Debug)]
pub struct Sent {
    /// The requests.
    pub asks: Vec<Ask>,
    /// What the user named: the URL without its password, or the file.
    pub name: String,
    /// Whether the URL had no scheme.
    pub scheme_assumed: bool,
    /// Whether they come from a file.
    pub from_file: bool,
}

/// Reads what is to be sent.
///
/// # Errors
/// What is wrong with the target, the headers, or a file, and where.
pub fn asks(args: &RequestArgs, target: &str) -> Result<Sent, Failure> {
    let mut headers = args.header.clone();
    if let Some(user) = &args.user {
        headers.push(basic_authorization(user));
    }
    let mut bodies = Bodies::default();
    let body = match &args.body {
        Some(body) => Some(Arc::clone(body)),
        None => args.data.as_deref().map(|data| bodies.of_flag(data)).transpose()?,
    };
    if args.targets || (!target.contains("://") && Path::new(target).is_file()) {
        return from_file(args, target, &headers, body, &mut bodies);
    }
    if target == "-" {
        return Err(Failure::usage("`-` is a targets file on standard input: add --targets"));
    }
    let method = match (&args.method, &body) {
        (Some(method), _) => method.clone(),
        (None, Some(_)) => "POST".to_owned(),
        (None, None) => "GET".to_owned(),
    };
    let location = Location::parse(target).map_err(Failure::usage)?;
    let (name, scheme_assumed) = (location.to_string(), location.scheme_assumed);
    let url = target.to_owned();
    let ask = Ask { method, url, headers, body, label: None, weight: 1 };
    Ok(Sent { asks: vec![ask], name, scheme_assumed, from_file: false })
}

fn from_file(
    args: &RequestArgs,
    path: &str,
    headers: &[(String, String)],
    body: Option<Arc<[u8]>>,
    bodies: &mut Bodies,
) -> Result<Sent, Failure> {
    let reader: Box<dyn BufRead> = if path == "-" {
        if bodies.stdin_taken {
            return Err(Failure::usage(
                "--data @- and targets on standard input exclude each other",
            ));
        }
        Box::new(BufReader::new(io::stdin()))
    } else {
        let file = File::open(path)
            .map_err(|error| Failure::could_not(format!("targets file {path}: {error}")))?;
        Box::new(BufReader::with_capacity(1 << 18, file))
    };
    let name = if path == "-" { "standard input" } else { path };
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("{name}: {error}"));
    let targets = Targets::detect(reader).map_err(|error| wrong(&error))?;
    let format = targets.format();
    let mut asks = Vec::new();
    for target in targets {
        let target = target.map_err(|error| wrong(&error))?;
        if asks.len() == TARGETS_MAX {
            return Err(wrong(&format!("it holds more than {TARGETS_MAX} targets")));
        }
        let line = target.line;
        let ask = ask(args, target, headers, body.as_ref(), bodies)
            .map_err(|error| wrong(&format!("line {line}: {error}")))?;
        asks.push(ask);
    }
    if asks.is_empty() {
        let form = match format {
            TargetFormat::Http => "lines like `GET http://localhost:8080/`",
            TargetFormat::Json => "objects like {\"method\":\"GET\",\"url\":\"...\"}",
        };
        return Err(wrong(&format!("it holds no target; write {form}")));
    }
    Ok(Sent { asks, name: name.to_owned(), scheme_assumed: false, from_file: true })
}

fn ask(
    args: &RequestArgs,
    target: Target,
    headers: &[(String, String)],
    body: Option<&Arc<[u8]>>,
    bodies: &mut Bodies,
) -> Result<Ask, String> {
    Location::parse(&target.url).map_err(|error| error.to_string())?;
    let own = match target.body {
        TargetBody::None => None,
        TargetBody::Bytes(bytes) => Some(Arc::from(bytes)),
        TargetBody::File(path) => Some(bodies.of_file(&path)?),
    };
    // A target's own header wins over one for all targets.
    let own_names: Vec<_> =
        target.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let common = headers.iter().filter(|(name, _)| !own_names.contains(&name.to_ascii_lowercase()));
    Ok(Ask {
        method: args.method.clone().unwrap_or(target.method),
        url: target.url,
        headers: common.cloned().chain(target.headers.iter().cloned()).collect(),
        body: own.or_else(|| body.cloned()),
        label: target.label,
        weight: target.weight,
    })
}

/// Bodies from files, each read once.
#[derive(Debug, Default)]
pub struct Bodies {
    files: HashMap<PathBuf, Arc<[u8]>>,
    stdin_taken: bool,
}

impl Bodies {
    /// The body of `--data`: a text, `@FILE`, or `@-`.
    fn of_flag(&mut self, data: &str) -> Result<Arc<[u8]>, Failure> {
        match data.strip_prefix('@') {
            None => Ok(Arc::from(data.as_bytes())),
            Some("-") => {
                self.stdin_taken = true;
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes).map_err(|error| {
                    Failure::could_not(format!("the body on standard input: {error}"))
                })?;
                Ok(Arc::from(bytes))
            }
            Some(path) => self.of_file(Path::new(path)).map_err(Failure::could_not),
        }
    }

    /// What a file holds.
    ///
    /// # Errors
    /// When it cannot be read, with its name.
    pub fn of_file(&mut self, path: &Path) -> Result<Arc<[u8]>, String> {
        if let Some(bytes) = self.files.get(path) {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = std::fs::read(path)
            .map_err(|error| format!("body file {}: {error}", path.display()))?
            .into();
        self.files.insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }
}

/// What a wire that cannot be prepared means for the user.
pub fn wire_failure(error: WireError, sent: &Sent) -> Failure {
    let place = if sent.from_file { format!("{}: ", sent.name) } else { String::new() };
    match error {
        WireError::Resolve(_) | WireError::Tls(_) => Failure::could_not(format!("{place}{error}")),
        _ => Failure::usage(format!("{place}{error}")),
    }
}
