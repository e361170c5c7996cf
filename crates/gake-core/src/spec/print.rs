//! From a spec back to a draft, with every default explicit.

use std::time::Duration;

use super::fields::Setting;
use super::value::{
    ArrivalsValue, BodyValue, CountValue, ExpectValue, HeaderValue, OverflowValue, RateValue,
    SpeedValue, StagesValue, TimeValue, UsersValue,
};
use super::{
    BodySpec, ConnectionSpec, RequestDraft, RequestSource, RequestSpec, RunDraft, RunSpec,
    ScenarioDraft, ScenarioSpec, VERSION,
};
use crate::Load;
use crate::metric::MAX_SERIES;
use crate::plan::{Overflow, Plan, Rate, Stage};
use crate::schedule::Process;

impl RunSpec {
    /// The draft that [`RunDraft::decide`] turns into this spec.
    #[must_use]
    pub fn draft(&self) -> RunDraft {
        let timeout = self.connection.timeout;
        RunDraft {
            version: Some(VERSION),
            name: self.name.clone(),
            threads: self.threads.draft(&None),
            spin: self.spin.draft(&false),
            seed: self.seed.draft(&1),
            warmup: self.warmup.draft(&Duration::ZERO),
            objectives: self.objectives.clone(),
            abort: self.abort.draft(&false),
            max_series: self.max_series.draft(&MAX_SERIES),
            watch: self.watch.clone(),
            connection: self.connection.draft(),
            tls: self.tls.draft(),
            scenarios: self
                .scenarios
                .iter()
                .map(|one| scenario(one, timeout, &self.connection))
                .collect(),
        }
    }
}

impl From<RunSpec> for RunDraft {
    fn from(spec: RunSpec) -> Self {
        spec.draft()
    }
}

fn scenario(spec: &ScenarioSpec, timeout: Duration, connection: &ConnectionSpec) -> ScenarioDraft {
    let mut draft = ScenarioDraft {
        name: (spec.name != Plan::DEFAULT_NAME).then(|| spec.name.clone()),
        method: spec.request.method.clone(),
        headers: headers(&spec.request.headers),
        body: body(spec.request.body.as_ref()),
        user: spec.request.user.clone(),
        expect: Some(ExpectValue(spec.expect.clone())),
        expect_body: spec.expect_body.clone(),
        stream: spec.stream.draft(&false),
        body_errors: spec.body_errors.draft(&false),
        start: spec.start.draft(&Duration::ZERO),
        requests: spec.requests.draft(&None),
        tags: spec.tags.iter().cloned().collect(),
        ..ScenarioDraft::default()
    };
    source(&spec.source, &mut draft);
    load(spec, &mut draft);
    let is_multiplexed = connection.http.is_multiplexed();
    if is_multiplexed && !spec.load.is_open() {
        draft.connections = Some(CountValue(spec.connections as u64));
    }
    if spec.load.is_open() {
        draft.connections = Some(CountValue(spec.connections as u64));
        let has_bound = is_multiplexed || spec.max_in_flight != spec.connections;
        draft.max_in_flight = has_bound.then_some(CountValue(spec.max_in_flight as u64));
        draft.overflow = match spec.overflow {
            Overflow::Wait => None,
            Overflow::Drop => Some(OverflowValue::Drop),
            Overflow::Queue { waiting } => Some(OverflowValue::Queue(CountValue(waiting as u64))),
        };
    }
    let is_needless = spec.graceful_stop == timeout
        && draft.duration.is_none()
        && draft.stages.is_none()
        && (spec.requests.is_some()
            || matches!(spec.load, Load::Shared { .. } | Load::PerUser { .. }));
    draft.graceful_stop = (!is_needless).then_some(TimeValue(spec.graceful_stop));
    draft
}

fn source(source: &RequestSource, draft: &mut ScenarioDraft) {
    match source {
        RequestSource::Url(url) => draft.url = Some(url.clone()),
        RequestSource::Rows(rows) => {
            draft.url = Some(rows.url.clone());
            draft.data_file = Some(rows.path.clone());
        }
        RequestSource::WebSocket(websocket) => {
            draft.url = Some(websocket.url.clone());
            draft.ws_message = body(websocket.message.as_ref());
            draft.ws_expect.clone_from(&websocket.expect);
            draft.ws_send_only = websocket.send_only.then_some(true);
        }
        RequestSource::Grpc(grpc) => {
            draft.url = Some(grpc.url.clone());
            draft.proto.clone_from(&grpc.proto);
            draft.proto_set = body(grpc.proto_set.as_ref());
            draft.proto_paths.clone_from(&grpc.proto_paths);
        }
        RequestSource::Requests(requests) => draft.request = requests.iter().map(request).collect(),
        RequestSource::Targets(path) => draft.targets = Some(path.clone()),
        RequestSource::Recording(recording) => {
            draft.recording = Some(recording.path.clone());
            draft.to = Some(recording.to.clone());
            draft.select.clone_from(&recording.select);
        }
        RequestSource::Script(script) => {
            draft.script = Some(script.path.clone());
            draft.function.clone_from(&script.function);
            draft.environment = script.environment.iter().cloned().collect();
        }
        RequestSource::Given(name) => draft.given = Some(name.clone()),
    }
}

fn load(spec: &ScenarioSpec, draft: &mut ScenarioDraft) {
    let users = |users: usize| Some(UsersValue::Number(users));
    let time = |time: Duration| (!time.is_zero()).then_some(TimeValue(time));
    // Without an explicit end, a default would apply.
    let forever = || Some(TimeValue(spec.duration.unwrap_or(Duration::MAX)));
    let bounded = || match spec.requests {
        Some(_) => spec.duration.map(TimeValue),
        None => forever(),
    };
    match &spec.load {
        Load::Open { stages, process } => {
            draft.arrivals = match *process {
                Process::Uniform => None,
                Process::Poisson => Some(ArrivalsValue::Poisson),
                Process::Bursts { size, jitter } => Some(ArrivalsValue::Bursts {
                    size: CountValue(size),
                    jitter: time(Duration::from_nanos(jitter)),
                }),
            };
            match stages.as_slice() {
                [Stage { from, to, duration }] if from == to => {
                    draft.rate = Some(RateValue(Rate::PerSecond(*from)));
                    let is_counted = *duration == Duration::MAX && spec.requests.is_some();
                    draft.duration = (!is_counted).then_some(TimeValue(*duration));
                }
                _ => draft.stages = Some(StagesValue(stages.clone())),
            }
        }
        Load::Replay { speed, .. } => {
            draft.speed = (*speed != 1.0).then_some(SpeedValue(*speed));
            draft.duration = spec.duration.map(TimeValue);
        }
        Load::Closed { users: number, think } => {
            (draft.users, draft.think, draft.duration) = (users(*number), time(*think), bounded());
        }
        Load::Paced { users: number, pace } => {
            (draft.users, draft.pace, draft.duration) = (users(*number), time(*pace), bounded());
        }
        Load::Ramping { stages, graceful_ramp_down, think } => {
            draft.users = Some(UsersValue::Stages(stages.clone()));
            draft.graceful_ramp_down = Some(TimeValue(*graceful_ramp_down));
            draft.think = time(*think);
        }
        Load::Shared { users: number, iterations } => {
            draft.users = users(*number);
            draft.iterations = Some(CountValue(*iterations));
            draft.duration = spec.duration.map(TimeValue);
        }
        Load::PerUser { users: number, iterations } => {
            draft.users = users(*number);
            draft.iterations_per_user = Some(CountValue(*iterations));
            draft.duration = spec.duration.map(TimeValue);
        }
        Load::External { users: number, max } => {
            draft.users = users(*number);
            draft.users_max = Some(CountValue(*max as u64));
            draft.duration = spec.duration.map(TimeValue);
        }
    }
}

fn request(spec: &RequestSpec) -> RequestDraft {
    RequestDraft {
        name: spec.name.clone(),
        url: Some(spec.url.clone()),
        method: spec.method.clone(),
        headers: headers(&spec.headers),
        body: body(spec.body.as_ref()),
        weight: (spec.weight != 1).then_some(spec.weight),
    }
}

fn headers(headers: &[(String, String)]) -> Vec<HeaderValue> {
    headers.iter().map(HeaderValue::of).collect()
}

fn body(body: Option<&BodySpec>) -> Option<BodyValue> {
    body.cloned().map(BodyValue)
}
