//! One scenario: source, load, limits, tags.

use std::time::Duration;

use super::super::error::{FieldPath, SpecError};
use super::super::value::{CountValue, HeaderValue, OverflowValue, TimeValue};
use super::super::{
    ConnectionSpec, RecordingSpec, RequestDefaults, RequestDraft, RequestSource, RequestSpec,
    RowsSpec, STREAMS, ScenarioDraft, ScenarioSpec, ScriptSpec,
};
use super::{at_least_one, named};
use crate::Load;
use crate::plan::{DRAIN, OPEN_CONNECTIONS, Overflow, Plan, Rate};

/// Maximum number of tags of a scenario.
const TAGS_MAX: usize = 50;

/// Turns the draft of a scenario into its spec.
pub(super) struct ScenarioResolver<'a> {
    pub(super) draft: ScenarioDraft,
    pub(super) at: FieldPath,
    pub(super) warmup: Duration,
    pub(super) connection: &'a ConnectionSpec,
}

impl ScenarioResolver<'_> {
    pub(super) fn scenario(mut self, several: bool) -> Result<ScenarioSpec, SpecError> {
        let name = match self.draft.name.take() {
            Some(name) => named(name, &self.at.key("name"))?,
            None if several => {
                let problem = "each of several scenarios needs a name";
                return Err(SpecError::new(self.at.key("name"), problem));
            }
            None => Plan::DEFAULT_NAME.to_owned(),
        };
        let source = self.source()?;
        let load = self.load(&source)?;
        let duration = self.duration(&load)?;
        let requests = self.draft.requests.map(|CountValue(count)| count);
        if requests == Some(0) {
            return Err(self.refuse("requests", "it must be at least 1"));
        }
        let (connections, max_in_flight) = self.bounds(&load)?;
        let overflow = self.overflow(&load)?;
        // With a count, wait for all responses; the time-out bounds each.
        let is_counted =
            requests.is_some() || matches!(load, Load::Shared { .. } | Load::PerUser { .. });
        let is_timed = self.draft.duration.is_some() || self.draft.stages.is_some();
        let graceful_stop = match self.draft.graceful_stop {
            Some(TimeValue(time)) => time,
            None if is_counted && !is_timed => self.connection.timeout,
            None => DRAIN,
        };
        let tags = self.tags()?;
        let expected = source.expect();
        let draft = self.draft;
        Ok(ScenarioSpec {
            name,
            source,
            request: RequestDefaults {
                method: draft.method,
                headers: draft.headers.into_iter().filter_map(HeaderValue::decided).collect(),
                body: draft.body.map(|body| body.0),
                user: draft.user,
            },
            load,
            start: draft.start.map_or(Duration::ZERO, |TimeValue(time)| time),
            duration,
            requests,
            graceful_stop,
            connections,
            max_in_flight,
            overflow,
            tags,
            expect: draft.expect.map_or(expected, |expect| expect.0),
            expect_body: draft.expect_body,
            stream: draft.stream.unwrap_or(false),
            body_errors: draft.body_errors.unwrap_or(false),
            stripes: None,
        })
    }

    pub(super) fn refuse(&self, key: &str, problem: &str) -> SpecError {
        SpecError::new(self.at.key(key), problem)
    }

    /// Whether a field is set. A rate of `max` and a pace of 0 count as unset.
    pub(super) fn given(&self, key: &str) -> bool {
        let draft = &self.draft;
        match key {
            "rate" => matches!(draft.rate, Some(rate) if rate.0 != Rate::Max),
            "pace" => draft.pace.is_some_and(|pace| !pace.0.is_zero()),
            key => draft.keys().contains(&key),
        }
    }

    /// Rejects the first of `keys` that is set.
    pub(super) fn without(&self, keys: &[&str], problem: &str) -> Result<(), SpecError> {
        match keys.iter().find(|key| self.given(key)) {
            Some(key) => Err(self.refuse(key, problem)),
            None => Ok(()),
        }
    }

    fn source(&mut self) -> Result<RequestSource, SpecError> {
        let draft = &mut self.draft;
        let requests = std::mem::take(&mut draft.request);
        let grpc = self.grpc()?;
        // Also without a URL: it rejects fields of WebSockets.
        let url = self.url()?;
        let url = match (grpc.or(url), self.draft.data_file.take()) {
            (Some(RequestSource::Url(url)), Some(path)) => {
                Some(RequestSource::Rows(RowsSpec { url, path }))
            }
            (_, Some(_)) => {
                let problem = "it fills in ${column} in a URL: http://HOST:PORT/${column}";
                return Err(self.refuse("data_file", problem));
            }
            (url, None) => url,
        };
        let draft = &mut self.draft;
        let mut all = vec![
            ("url", url),
            ("targets", draft.targets.take().map(RequestSource::Targets)),
            ("given", draft.given.take().map(RequestSource::Given)),
        ];
        let recording = draft.recording.take();
        let script = draft.script.take();
        if recording.is_none() {
            self.without(&["to", "speed", "select"], "it belongs to a recording")?;
        }
        if script.is_none() {
            self.without(&["function", "environment"], "it belongs to a script")?;
        }
        if !requests.is_empty() {
            let list = self.at.key("request");
            let requests: Result<_, _> = requests
                .into_iter()
                .enumerate()
                .map(|(i, draft)| request(draft, &list.index(i)))
                .collect();
            all.push(("request", Some(RequestSource::Requests(requests?))));
        }
        if let Some(path) = recording {
            let Some(to) = self.draft.to.take() else {
                let problem = "a recording needs a target: http://HOST:PORT";
                return Err(self.refuse("to", problem));
            };
            let select = std::mem::take(&mut self.draft.select);
            let recording = RecordingSpec { path, to, select };
            all.push(("recording", Some(RequestSource::Recording(recording))));
        }
        if let Some(path) = script {
            let own = "a script determines its own requests";
            self.without(&["method", "headers", "body", "user", "expect_body", "stream"], own)?;
            let environment = std::mem::take(&mut self.draft.environment).into_iter().collect();
            let function = self.draft.function.take();
            let script = ScriptSpec { path, function, environment };
            all.push(("script", Some(RequestSource::Script(script))));
        }
        let mut named = all.into_iter().filter_map(|(key, source)| Some((key, source?)));
        match (named.next(), named.next()) {
            (Some((_, source)), None) => Ok(source),
            (Some((first, _)), Some((second, _))) => {
                Err(self.refuse(second, &format!("the scenario already has {first}")))
            }
            (None, _) => Err(SpecError::new(
                self.at.clone(),
                "there is nothing to send: write url, targets, request or recording",
            )),
        }
    }

    fn bounds(&self, load: &Load) -> Result<(usize, usize), SpecError> {
        let at_least_one = |count: Option<CountValue>, key: &str| {
            count.map(|count| at_least_one(count, &self.at.key(key))).transpose()
        };
        let connections = at_least_one(self.draft.connections, "connections")?;
        let max_in_flight = at_least_one(self.draft.max_in_flight, "max_in_flight")?;
        if self.connection.http.is_multiplexed() {
            return self.multiplexed(load.users(), connections, max_in_flight);
        }
        let Some(users) = load.users() else {
            let connections = connections.unwrap_or(OPEN_CONNECTIONS);
            return Ok((connections, max_in_flight.unwrap_or(connections)));
        };
        for (key, given, why) in [
            (
                "connections",
                connections,
                "it needs a rate: in a closed loop each user has one connection",
            ),
            ("max_in_flight", max_in_flight, "it needs a rate: a user has one request in flight"),
        ] {
            if given.is_some_and(|given| given != users) {
                return Err(self.refuse(key, why));
            }
        }
        Ok((users, users))
    }

    /// [`Self::bounds`] for connections that carry concurrent requests.
    fn multiplexed(
        &self,
        users: Option<usize>,
        connections: Option<usize>,
        max_in_flight: Option<usize>,
    ) -> Result<(usize, usize), SpecError> {
        let Some(users) = users else {
            let streams = self.connection.streams.unwrap_or(STREAMS);
            let all = |connections: usize| connections.saturating_mul(streams);
            let max_in_flight =
                max_in_flight.unwrap_or_else(|| connections.map_or(OPEN_CONNECTIONS, all));
            return Ok((
                connections.unwrap_or_else(|| max_in_flight.div_ceil(streams)),
                max_in_flight,
            ));
        };
        if max_in_flight.is_some_and(|max_in_flight| max_in_flight != users) {
            return Err(
                self.refuse("max_in_flight", "it needs a rate: a user has one request in flight")
            );
        }
        let default = || users.div_ceil(self.connection.streams.unwrap_or(1));
        Ok((connections.unwrap_or_else(default).clamp(1, users.max(1)), users))
    }

    fn overflow(&self, load: &Load) -> Result<Overflow, SpecError> {
        let overflow = match self.draft.overflow {
            None | Some(OverflowValue::Wait) => return Ok(Overflow::Wait),
            Some(OverflowValue::Drop) => Overflow::Drop,
            Some(OverflowValue::Queue(CountValue(waiting))) => {
                Overflow::Queue { waiting: usize::try_from(waiting).unwrap_or(usize::MAX) }
            }
        };
        match load.is_open() {
            true => Ok(overflow),
            false => Err(self.refuse("overflow", "it needs a rate: a closed loop never overflows")),
        }
    }

    fn tags(&mut self) -> Result<Vec<(String, String)>, SpecError> {
        let at = self.at.key("tags");
        let tags = std::mem::take(&mut self.draft.tags);
        if tags.len() > TAGS_MAX {
            return Err(SpecError::new(
                at,
                format!("{} tags are more than {TAGS_MAX}", tags.len()),
            ));
        }
        tags.into_iter()
            .map(|(key, value)| {
                let at = at.key(&key);
                Ok((named(key, &at)?, named(value, &at)?))
            })
            .collect()
    }
}

fn request(draft: RequestDraft, at: &FieldPath) -> Result<RequestSpec, SpecError> {
    if draft.weight == Some(0) {
        return Err(SpecError::new(at.key("weight"), "it must be at least 1"));
    }
    Ok(RequestSpec {
        name: draft.name.map(|name| named(name, &at.key("name"))).transpose()?,
        method: draft.method,
        url: draft.url.ok_or_else(|| SpecError::new(at.key("url"), "it is missing"))?,
        headers: draft.headers.into_iter().filter_map(HeaderValue::decided).collect(),
        body: draft.body.map(|body| body.0),
        weight: draft.weight.unwrap_or(1),
    })
}
