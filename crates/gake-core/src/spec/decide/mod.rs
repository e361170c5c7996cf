//! From a draft to a spec: applies defaults and rejects contradictions.

mod grpc;
mod load;
mod scenario;
mod websocket;

use std::time::Duration;

use scenario::Deciding;

use super::error::{FieldPath, SpecError};
use super::value::{CountValue, TimeValue};
use super::{
    ConnectionDraft, ConnectionSpec, HttpVersion, KeepSpec, RunDraft, RunSpec, SCENARIOS_MAX,
    SERIES_MAX, ScenarioSpec, TlsDraft, TlsSpec, TlsVersion, VERSION,
};
use crate::metric::MAX_SERIES;
use crate::plan::{Rate, Timeouts};

/// Longest name of a run, scenario or tag, in bytes.
const NAME_MAX: usize = 200;

/// The smallest flow-control window of a connection (RFC 9113, section 6.9.2).
const CONNECTION_WINDOW_MIN: u32 = 65_535;

/// The largest flow-control window (RFC 9113, section 6.9.1).
const WINDOW_MAX: u32 = (1 << 31) - 1;

impl RunDraft {
    /// The spec that the draft means.
    ///
    /// # Errors
    /// The first field that contradicts another or is not valid.
    pub fn decide(self) -> Result<RunSpec, SpecError> {
        let root = FieldPath::root();
        if let Some(version) = self.version.filter(|version| !(1..=VERSION).contains(version)) {
            return Err(SpecError::new(
                root.key("version"),
                format!("this gake reads versions 1 to {VERSION} of a spec, not {version}"),
            ));
        }
        let mut connection_draft = self.connection;
        if self.scenarios.iter().any(grpc::is_grpc) {
            connection_draft.http.get_or_insert(HttpVersion::Http2);
        }
        let connection = connection(connection_draft, &root.key("connection"))?;
        let list = root.key("scenario");
        if self.scenarios.is_empty() {
            return Err(SpecError::new(root, "it has no scenario: write [[scenario]] and its url"));
        }
        if self.scenarios.len() > SCENARIOS_MAX {
            let count = self.scenarios.len();
            return Err(SpecError::new(list, format!("{count} are more than {SCENARIOS_MAX}")));
        }
        let warmup = self.warmup.map_or(Duration::ZERO, |TimeValue(time)| time);
        let several = self.scenarios.len() > 1;
        let mut scenarios: Vec<ScenarioSpec> = Vec::with_capacity(self.scenarios.len());
        for (i, draft) in self.scenarios.into_iter().enumerate() {
            let at = list.index(i);
            let scenario = Deciding { draft, at: at.clone(), warmup, connection: &connection }
                .scenario(several)?;
            if scenarios.iter().any(|known| known.name == scenario.name) {
                let problem = format!("{:?} is the name of another scenario too", scenario.name);
                return Err(SpecError::new(at.key("name"), problem));
            }
            scenarios.push(scenario);
        }
        let spin = self.spin.unwrap_or(false);
        if spin && !scenarios.iter().any(|scenario| scenario.load.is_open()) {
            let problem = "it needs a rate: a closed loop has nothing to wait for";
            return Err(SpecError::new(root.key("spin"), problem));
        }
        let abort = self.abort.unwrap_or(false);
        if abort && self.objectives.is_empty() {
            return Err(SpecError::new(root.key("abort"), "it needs an objective to miss"));
        }
        let path = root.key("max_series");
        let max_series = match self.max_series {
            None => MAX_SERIES,
            Some(count) => at_least_one(count, &path)?,
        };
        if max_series > SERIES_MAX {
            return Err(SpecError::new(path, format!("at most {SERIES_MAX}")));
        }
        let name = self.name.map(|name| named(name, &root.key("name"))).transpose()?;
        let tls = tls(self.tls, connection.http)?;
        Ok(RunSpec {
            name,
            scenarios,
            threads: self.threads.map(|n| at_least_one(n, &root.key("threads"))).transpose()?,
            spin,
            seed: self.seed.map_or(1, |CountValue(seed)| seed),
            warmup,
            connection,
            tls,
            objectives: self.objectives,
            abort,
            max_series,
            watch: self.watch,
        })
    }
}

impl TryFrom<RunDraft> for RunSpec {
    type Error = SpecError;

    fn try_from(draft: RunDraft) -> Result<Self, SpecError> {
        draft.decide()
    }
}

fn connection(draft: ConnectionDraft, at: &FieldPath) -> Result<ConnectionSpec, SpecError> {
    let default = Timeouts::default();
    let positive = |time: Option<TimeValue>, key: &str| match time {
        Some(TimeValue(Duration::ZERO)) => {
            Err(SpecError::new(at.key(key), "it must be longer than 0"))
        }
        time => Ok(time.map(|TimeValue(time)| time)),
    };
    let count = |count: CountValue| usize::try_from(count.0).unwrap_or(usize::MAX);
    let connect_rate = match draft.connect_rate.map(|rate| rate.0) {
        Some(Rate::Max) => {
            return Err(SpecError::new(at.key("connect_rate"), "write a number a second"));
        }
        Some(Rate::PerSecond(rate)) => Some(rate),
        None => None,
    };
    if draft.proxy.is_some() && draft.unix_socket.is_some() {
        let problem = "it says where every connection goes, and so does unix_socket";
        return Err(SpecError::new(at.key("proxy"), problem));
    }
    let http = draft.http.unwrap_or(HttpVersion::Http11);
    let streams = draft.streams.map(|n| at_least_one(n, &at.key("streams"))).transpose()?;
    if streams.is_some() && !http.is_multiplexed() {
        return Err(SpecError::new(at.key("streams"), "it needs HTTP/2 or HTTP/3"));
    }
    for (field, is_given) in
        [("proxy", draft.proxy.is_some()), ("unix_socket", draft.unix_socket.is_some())]
    {
        if is_given && http == HttpVersion::Http3 {
            return Err(SpecError::new(at.key(field), "it carries no UDP, which HTTP/3 needs"));
        }
    }
    let keep = match (draft.keep_answers, draft.keep_body_bytes) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(SpecError::new(at.key("keep_body_bytes"), "it needs keep_answers"));
        }
        (Some(CountValue(answers)), bytes) => {
            Some(KeepSpec { answers, body_bytes: bytes.map_or(0, count) })
        }
    };
    Ok(ConnectionSpec {
        timeouts: Timeouts {
            connect: positive(draft.connect_timeout, "connect_timeout")?.unwrap_or(default.connect),
            first_byte: positive(draft.first_byte_timeout, "first_byte_timeout")?,
            total: positive(draft.timeout, "timeout")?.unwrap_or(default.total),
        },
        keepalive: draft.keepalive.unwrap_or(true),
        max_redirects: draft.max_redirects.unwrap_or(0),
        connect_rate,
        idle_connections: draft.idle_connections.map_or(0, count),
        max_idle: draft.max_idle.map(count),
        http,
        streams,
        stream_window: window(draft.stream_window, 1, http, &at.key("stream_window"))?,
        connection_window: window(
            draft.connection_window,
            CONNECTION_WINDOW_MIN,
            http,
            &at.key("connection_window"),
        )?,
        sources: draft.sources,
        resolve: draft.resolve,
        connect_to: draft.connect_to,
        unix_socket: draft.unix_socket,
        proxy: draft.proxy,
        family: draft.family,
        keep,
    })
}

/// A flow-control window of at least `least` bytes.
fn window(
    bytes: Option<u32>,
    least: u32,
    http: HttpVersion,
    at: &FieldPath,
) -> Result<Option<u32>, SpecError> {
    match bytes {
        Some(_) if !http.is_multiplexed() => {
            Err(SpecError::new(at.clone(), "it needs HTTP/2 or HTTP/3"))
        }
        Some(bytes) if !(least..=WINDOW_MAX).contains(&bytes) => {
            Err(SpecError::new(at.clone(), format!("it is from {least} to {WINDOW_MAX}")))
        }
        bytes => Ok(bytes),
    }
}

fn tls(draft: TlsDraft, http: HttpVersion) -> Result<TlsSpec, SpecError> {
    let session_tickets = draft.session_tickets.unwrap_or(false);
    if session_tickets && http == HttpVersion::Http3 {
        let at = FieldPath::root().key("tls").key("session_tickets");
        return Err(SpecError::new(at, "it needs TCP: HTTP/3 resumes no sessions here"));
    }
    let early_data = draft.early_data.unwrap_or(false);
    if early_data {
        let refuse = |problem| {
            let at = FieldPath::root().key("tls").key("early_data");
            Err(SpecError::new(at, problem))
        };
        if http.is_multiplexed() && http != HttpVersion::Http3 {
            return refuse("it needs HTTP/1.1 or HTTP/3, and no negotiation between versions");
        }
        if draft.max_version == Some(TlsVersion::Tls12) {
            return refuse("it needs TLS 1.3");
        }
    }
    if let (Some(min), Some(max)) = (draft.min_version, draft.max_version)
        && min > max
    {
        let at = FieldPath::root().key("tls").key("min_version");
        let problem = format!("{} is newer than max_version, {}", min.name(), max.name());
        return Err(SpecError::new(at, problem));
    }
    if draft.ech.is_some() && draft.max_version == Some(TlsVersion::Tls12) {
        let at = FieldPath::root().key("tls").key("ech");
        return Err(SpecError::new(at, "it needs TLS 1.3"));
    }
    Ok(TlsSpec {
        insecure: draft.insecure.unwrap_or(false),
        ca_certificates: draft.ca_certificates,
        certificate: draft.certificate,
        key: draft.key,
        session_tickets,
        early_data,
        min_version: draft.min_version,
        max_version: draft.max_version,
        ciphers: draft.ciphers,
        ech: draft.ech,
        key_log: draft.key_log,
    })
}

fn at_least_one(CountValue(count): CountValue, at: &FieldPath) -> Result<usize, SpecError> {
    match usize::try_from(count) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(SpecError::new(at.clone(), "it must be at least 1")),
    }
}

/// A name that fits on a line.
fn named(name: String, at: &FieldPath) -> Result<String, SpecError> {
    if name.trim().is_empty() {
        return Err(SpecError::new(at.clone(), "it is empty"));
    }
    if name.len() > NAME_MAX {
        return Err(SpecError::new(at.clone(), format!("it is longer than {NAME_MAX} bytes")));
    }
    if name.chars().any(char::is_control) {
        return Err(SpecError::new(at.clone(), "it holds a line feed or a control character"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::super::file::SpecFile;

    #[test]
    fn http3_resumes_no_sessions() {
        let decided = |http: &str| {
            let text = format!(
                "[connection]\nhttp = \"{http}\"\n[tls]\nsession_tickets = true\n\
                 [[scenario]]\nurl = \"https://h/\"\nrate = 5\n"
            );
            SpecFile::read("a.toml", text.as_bytes()).unwrap().spec()
        };
        let refused = decided("3").unwrap_err();
        assert_eq!(refused.field.to_string(), "tls.session_tickets");
        // Its connections over TCP do.
        assert!(decided("auto3").is_ok());
    }

    #[test]
    fn early_data_is_refused_where_there_is_none() {
        let decided = |http: &str, newest: &str| {
            let text = format!(
                "[connection]\nhttp = \"{http}\"\n[tls]\nearly_data = true\n\
                 max_version = \"{newest}\"\n\
                 [[scenario]]\nurl = \"https://h/\"\nrate = 5\n"
            );
            SpecFile::read("a.toml", text.as_bytes()).unwrap().spec()
        };
        for (http, newest) in [("2", "1.3"), ("auto", "1.3"), ("auto3", "1.3"), ("1.1", "1.2")] {
            let refused = decided(http, newest).unwrap_err();
            assert_eq!(refused.field.to_string(), "tls.early_data", "{http} {newest}");
        }
        for http in ["1.1", "3"] {
            assert!(decided(http, "1.3").unwrap().tls.early_data, "{http}");
        }
    }
}
