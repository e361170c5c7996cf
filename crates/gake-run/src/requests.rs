//! The requests of each scenario, read from the source that the spec names.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use gake_core::schedule::Trace;
use gake_core::spec::{
    BodySpec, FieldPath, GrpcSpec, RequestDefaults, RequestSource, RequestSpec, RowsSpec, RunSpec,
    ScenarioSpec, WebSocketSpec,
};
use gake_text::units::count;
use gake_wire::{
    GrpcMethod, HttpRequest, Location, LocationParser, RequestFeed, RequestList, WeightedRequest,
    basic_authorization,
};

use crate::bodies::Bodies;
use crate::data_file::{self, RowRequest, without_password};
use crate::grpc::GrpcTarget;
use crate::targets::{Target, TargetBody, TargetFormat, Targets};
use crate::{Inputs, RunError};

/// Maximum number of targets in a file; more are a log to replay, not a mix.
const TARGETS_MAX: usize = 1_000_000;

/// The requests of one scenario.
#[derive(Debug)]
pub(crate) struct RequestSet {
    pub(crate) requests: Arc<RequestList>,
    /// The request of each arrival; `None` if they are sent in turn.
    pub(crate) order: Option<Vec<u32>>,
    /// When each arrival is due, in a recording.
    pub(crate) trace: Option<Trace>,
    pub(crate) feed: Option<Arc<dyn RequestFeed>>,
    /// The target as the user named it: a URL without its password, or a file.
    pub(crate) name: String,
    pub(crate) notes: Vec<String>,
    /// Whether responses are streams of messages.
    pub(crate) is_stream: bool,
    pub(crate) call: Option<GrpcCall>,
    /// The file that errors refer to.
    pub(crate) file: Option<String>,
    /// The field of the request source, for errors.
    pub(crate) field: FieldPath,
}

/// A gRPC call, besides its encoded request.
#[derive(Debug)]
pub(crate) struct GrpcCall {
    pub(crate) method: GrpcMethod,
    /// Messages as JSON.
    pub(crate) json: Arc<[u8]>,
}

impl RequestSet {
    fn new(requests: impl Into<Arc<RequestList>>, name: String, field: FieldPath) -> Self {
        let requests = requests.into();
        let (order, trace, feed, file) = (None, None, None, None);
        let (notes, is_stream, call) = (Vec::new(), false, None);
        Self { requests, order, trace, feed, name, notes, is_stream, call, file, field }
    }
}

/// Reads the requests of every scenario; `None` for scripts, which make their own.
pub(crate) fn read(
    spec: &RunSpec,
    inputs: &mut Inputs<'_>,
) -> Result<Vec<Option<RequestSet>>, RunError> {
    let mut bodies = Bodies::default();
    let list = FieldPath::root().key("scenario");
    let scenarios = spec.scenarios.iter().enumerate();
    scenarios
        .map(|(i, scenario)| {
            if let RequestSource::Script(_) = scenario.source {
                return Ok(None);
            }
            let at = list.index(i);
            RequestReader { spec, scenario, at, inputs, bodies: &mut bodies }.read().map(Some)
        })
        .collect()
}

/// Reads the requests of one scenario.
struct RequestReader<'a, 'b> {
    spec: &'a RunSpec,
    scenario: &'a ScenarioSpec,
    at: FieldPath,
    inputs: &'a mut Inputs<'b>,
    bodies: &'a mut Bodies,
}

impl RequestReader<'_, '_> {
    fn read(mut self) -> Result<RequestSet, RunError> {
        match &self.scenario.source {
            RequestSource::Url(url) => self.url(url),
            RequestSource::Rows(rows) => self.rows(rows),
            RequestSource::WebSocket(websocket) => self.websocket(websocket),
            RequestSource::Grpc(grpc) => self.grpc(grpc),
            RequestSource::Requests(requests) => self.listed(requests),
            RequestSource::Targets(path) => self.targets(path),
            RequestSource::Recording(recording) => {
                let field = self.at.key("recording");
                let Some(reader) = self.inputs.recordings else {
                    return Err(RunError::spec(field, "this program cannot read recordings"));
                };
                let replay = reader.read(recording, self.scenario, &self.at)?;
                let mut set = RequestSet::new(replay.requests, replay.name, field);
                (set.order, set.trace) = (Some(replay.order), Some(replay.trace));
                (set.notes, set.file) = (replay.notes, Some(set.name.clone()));
                Ok(set)
            }
            RequestSource::Script(_) => {
                Err(RunError::spec(self.at.key("script"), "a script makes its own requests"))
            }
            RequestSource::Given(name) => {
                let field = self.at.key("given");
                let given = self.inputs.given.iter().find(|(known, _)| known == name);
                let Some((_, given)) = given.cloned() else {
                    let problem =
                        format!("{name:?}: only an embedding program can provide these requests");
                    return Err(RunError::spec(field, problem));
                };
                let mut set = RequestSet::new(given.requests, given.name.clone(), field);
                (set.feed, set.file) = (given.feed, Some(given.name));
                Ok(set)
            }
        }
    }

    fn url(&mut self, url: &str) -> Result<RequestSet, RunError> {
        let field = self.at.key("url");
        let location =
            Location::parse(url).map_err(|error| RunError::spec(field.clone(), error))?;
        let request = self.request(&RequestSpec::new(url))?;
        let mut set = RequestSet::new(only(request), location.to_string(), field);
        if location.scheme_assumed {
            set.notes.push(format!("{url} has no scheme: http is assumed"));
        }
        Ok(set)
    }

    /// A request for each row of a data file.
    fn rows(&mut self, rows: &RowsSpec) -> Result<RequestSet, RunError> {
        let field = self.at.key("data_file");
        let data = data_file::open(&rows.path).map_err(RunError::Cannot)?;
        let template = self.request(&RequestSpec::new(&rows.url))?.request;
        let body = template.body.as_deref().map(str::from_utf8).transpose();
        let body = body.map_err(|_| {
            RunError::spec(self.at.key("body"), "a body with ${name} must be UTF-8")
        })?;
        let template = RowRequest {
            method: &template.method,
            url: &template.url,
            headers: &template.headers,
            body,
        };
        let mut parser = LocationParser::default();
        let check = |url: &str| parser.parse(url).map(drop).map_err(|error| error.to_string());
        let name = rows.path.display();
        let requests = template
            .requests(data, check)
            .map_err(|problem| RunError::spec(field.clone(), format!("{name}: {problem}")))?;
        let target = match requests.len() {
            1 => requests.get(0).request.url,
            several => format!("{} ({} rows)", rows.url, count(several as u64)),
        };
        Ok(RequestSet::new(requests, without_password(&target), field))
    }

    /// The upgrade request, with the message as its body.
    fn websocket(&mut self, websocket: &WebSocketSpec) -> Result<RequestSet, RunError> {
        let field = self.at.key("url");
        let location = Location::parse_websocket(&websocket.url)
            .map_err(|error| RunError::spec(field.clone(), error))?;
        let mut request = self.request(&RequestSpec::new(&websocket.url))?;
        request.request.body = match &websocket.message {
            Some(message) => Some(self.body(message)?),
            None => None,
        };
        Ok(RequestSet::new(only(request), location.websocket_url(), field))
    }

    /// The gRPC call, with the messages as its body.
    fn grpc(&mut self, grpc: &GrpcSpec) -> Result<RequestSet, RunError> {
        let field = self.at.key("url");
        let at = self.at.clone();
        let target = GrpcTarget::new(self.spec, grpc, &at)?;
        let common = &self.scenario.request;
        let json = common.body.as_ref().map(|body| self.body(body)).transpose()?;
        let json = json.unwrap_or_else(|| Arc::from(&b"{}"[..]));
        let set = grpc.proto_set.as_ref().map(|set| self.body(set)).transpose()?;
        let (request, method) = target.call(&headers(common), set.as_deref(), &json)?;
        let request = WeightedRequest { request, label: None, weight: 1 };
        let mut set = RequestSet::new(only(request), target.name(), field);
        set.is_stream = method.is_server_streaming();
        set.call = Some(GrpcCall { method, json });
        Ok(set)
    }

    fn listed(&mut self, requests: &[RequestSpec]) -> Result<RequestSet, RunError> {
        let field = self.at.key("request");
        let mut all = RequestList::default();
        for (i, request) in requests.iter().enumerate() {
            Location::parse(&request.url)
                .map_err(|error| RunError::spec(field.index(i).key("url"), error))?;
            all.push(&self.request(request)?);
        }
        let first = requests.first().and_then(|request| request.name.as_ref());
        let is_one = requests.iter().all(|request| request.name.as_ref() == first);
        let name = match (requests, first) {
            ([only], _) => only.url.clone(),
            (several, Some(name)) if is_one => {
                format!("{name} ({} different requests)", count(several.len() as u64))
            }
            (several, _) => format!("{} requests", several.len()),
        };
        // Hides a password in the URL.
        let name = Location::parse(&name).map_or(name, |location| location.to_string());
        Ok(RequestSet::new(all, name, field))
    }

    fn request(&mut self, request: &RequestSpec) -> Result<WeightedRequest, RunError> {
        let common = &self.scenario.request;
        let body = match request.body.as_ref().or(common.body.as_ref()) {
            Some(body) => Some(self.body(body)?),
            None => None,
        };
        let method = match (request.method.as_ref().or(common.method.as_ref()), &body) {
            (Some(method), _) => method.clone(),
            (None, Some(_)) => "POST".to_owned(),
            (None, None) => "GET".to_owned(),
        };
        let own = HttpRequest {
            method,
            url: request.url.trim().to_owned(),
            headers: joined(&headers(common), &request.headers),
            opaque: Vec::new(),
            body,
        };
        Ok(WeightedRequest { request: own, label: request.name.clone(), weight: request.weight })
    }

    fn body(&mut self, body: &BodySpec) -> Result<Arc<[u8]>, RunError> {
        self.bodies.of(body, &mut self.inputs.stdin).map_err(RunError::Cannot)
    }

    fn targets(&mut self, path: &Path) -> Result<RequestSet, RunError> {
        let field = self.at.key("targets");
        let common = self.scenario.request.body.as_ref();
        let body = common.map(|body| self.body(body)).transpose()?;
        let is_stdin = path.as_os_str() == "-";
        let shown = path.display().to_string();
        let reader: Box<dyn BufRead + '_> = if is_stdin {
            let problem = "standard input is not available (it may already be in use for the body)";
            let missing = || RunError::spec(field.clone(), problem);
            self.inputs.stdin.take().ok_or_else(missing)?
        } else {
            let file = File::open(path)
                .map_err(|error| RunError::cannot(format!("targets file {shown}: {error}")))?;
            Box::new(BufReader::with_capacity(1 << 18, file))
        };
        let name = if is_stdin { "standard input".to_owned() } else { shown };
        let wrong = |error: &dyn Display| RunError::spec(field.clone(), format!("{name}: {error}"));
        let targets = Targets::detect(reader).map_err(|error| wrong(&error))?;
        let format = targets.format();
        let headers = headers(&self.scenario.request);
        let (mut requests, mut parser) = (RequestList::default(), LocationParser::default());
        for target in targets {
            let target = target.map_err(|error| wrong(&error))?;
            if requests.len() == TARGETS_MAX {
                return Err(wrong(&format!("more than {TARGETS_MAX} targets")));
            }
            let line = target.line;
            let defaults = TargetDefaults {
                request: &self.scenario.request,
                headers: &headers,
                body: body.as_ref(),
            };
            let problem = |error: &dyn Display| wrong(&format!("line {line}: {error}"));
            parser.parse(&target.url).map_err(|error| problem(&error))?;
            let request = of_target(target, &defaults, self.bodies);
            requests.push(&request.map_err(|error| problem(&error))?);
        }
        if requests.is_empty() {
            let example = match format {
                TargetFormat::Http => "URLs, or lines like `GET http://localhost:8080/`",
                TargetFormat::Json => "objects like {\"method\":\"GET\",\"url\":\"...\"}",
            };
            return Err(wrong(&format!("no target; write {example}")));
        }
        let mut set = RequestSet::new(requests, name, field);
        set.file = Some(set.name.clone());
        Ok(set)
    }
}

fn only(request: WeightedRequest) -> RequestList {
    [request].into_iter().collect()
}

fn headers(common: &RequestDefaults) -> Vec<(String, String)> {
    let user = common.user.as_ref().map(|user| basic_authorization(user));
    common.headers.iter().cloned().chain(user).collect()
}

/// Joins headers; a request's own header overrides a common one.
fn joined(common: &[(String, String)], own: &[(String, String)]) -> Vec<(String, String)> {
    let is_own = |name: &str| own.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let common = common.iter().filter(|(name, _)| !is_own(name));
    common.chain(own).cloned().collect()
}

/// Defaults for the targets of a file.
struct TargetDefaults<'a> {
    request: &'a RequestDefaults,
    headers: &'a [(String, String)],
    body: Option<&'a Arc<[u8]>>,
}

fn of_target(
    target: Target,
    defaults: &TargetDefaults<'_>,
    bodies: &mut Bodies,
) -> Result<WeightedRequest, String> {
    let own = match target.body {
        TargetBody::None => None,
        TargetBody::Bytes(bytes) => Some(Arc::from(bytes)),
        TargetBody::File(path) => Some(bodies.of_file(&path)?),
    };
    let request = HttpRequest {
        method: defaults.request.method.clone().unwrap_or(target.method),
        url: target.url,
        headers: joined(defaults.headers, &target.headers),
        opaque: Vec::new(),
        body: own.or_else(|| defaults.body.cloned()),
    };
    Ok(WeightedRequest { request, label: target.label, weight: target.weight })
}
