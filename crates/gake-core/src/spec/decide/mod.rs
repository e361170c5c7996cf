//! From a draft to a spec: applies defaults and rejects contradictions.

mod grpc;
mod load;
mod scenario;
mod websocket;

use std::time::Duration;

use scenario::ScenarioResolver;

use super::error::{FieldPath, SpecError};
use super::fields::Setting;
use super::value::CountValue;
use super::{
    ConnectionSpec, HttpVersion, RunDraft, RunSpec, SCENARIOS_MAX, SERIES_MAX, ScenarioSpec,
    THREADS_MAX, TlsSpec, TlsVersion, VERSION,
};
use crate::metric::MAX_SERIES;

/// Longest name of a run, scenario or tag, in bytes.
const NAME_MAX: usize = 200;

/// The smallest flow-control window of a connection (RFC 9113, section 6.9.2).
const CONNECTION_WINDOW_MIN: u32 = 65_535;

/// The largest flow-control window (RFC 9113, section 6.9.1).
const WINDOW_MAX: u32 = (1 << 31) - 1;

impl RunDraft {
    /// Applies defaults and rejects contradictions.
    ///
    /// # Errors
    /// The first field that is invalid or contradicts another.
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
        let connection = ConnectionSpec::from(connection_draft);
        check_connection(&connection)?;
        let list = root.key("scenario");
        if self.scenarios.is_empty() {
            return Err(SpecError::new(
                root,
                "there is no scenario: write [[scenario]] and its url",
            ));
        }
        if self.scenarios.len() > SCENARIOS_MAX {
            let count = self.scenarios.len();
            return Err(SpecError::new(
                list,
                format!("{count} scenarios are more than {SCENARIOS_MAX}"),
            ));
        }
        let warmup = Setting::decided(self.warmup, Duration::ZERO);
        let several = self.scenarios.len() > 1;
        let mut scenarios: Vec<ScenarioSpec> = Vec::with_capacity(self.scenarios.len());
        for (i, draft) in self.scenarios.into_iter().enumerate() {
            let at = list.index(i);
            let scenario =
                ScenarioResolver { draft, at: at.clone(), warmup, connection: &connection }
                    .scenario(several)?;
            if scenarios.iter().any(|known| known.name == scenario.name) {
                let problem = format!("another scenario is named {:?} too", scenario.name);
                return Err(SpecError::new(at.key("name"), problem));
            }
            scenarios.push(scenario);
        }
        let spin = self.spin.unwrap_or(false);
        if spin && !scenarios.iter().any(|scenario| scenario.load.is_open()) {
            let problem = "it needs a rate: a closed loop has no due times to wait for";
            return Err(SpecError::new(root.key("spin"), problem));
        }
        let abort = self.abort.unwrap_or(false);
        if abort && self.objectives.is_empty() {
            return Err(SpecError::new(root.key("abort"), "it needs an objective"));
        }
        let path = root.key("max_series");
        let max_series = match self.max_series {
            None => MAX_SERIES,
            Some(count) => at_least_one(count, &path)?,
        };
        if max_series > SERIES_MAX {
            return Err(SpecError::new(path, format!("at most {SERIES_MAX}")));
        }
        let path = root.key("threads");
        let threads = self.threads.map(|n| at_least_one(n, &path)).transpose()?;
        if threads.is_some_and(|threads| threads > THREADS_MAX) {
            return Err(SpecError::new(path, format!("at most {THREADS_MAX}")));
        }
        let name = self.name.map(|name| named(name, &root.key("name"))).transpose()?;
        let tls = TlsSpec::from(self.tls);
        check_tls(&tls, connection.http)?;
        Ok(RunSpec {
            name,
            scenarios,
            threads,
            spin,
            seed: Setting::decided(self.seed, 1),
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

fn check_connection(spec: &ConnectionSpec) -> Result<(), SpecError> {
    let at = FieldPath::root().key("connection");
    let refuse = |key, problem| Err(SpecError::new(at.key(key), problem));
    for (key, time) in [
        ("timeout", Some(spec.timeout)),
        ("connect_timeout", Some(spec.connect_timeout)),
        ("first_byte_timeout", spec.first_byte_timeout),
    ] {
        if time == Some(Duration::ZERO) {
            return refuse(key, "it must be longer than 0");
        }
    }
    if spec.connect_rate == Some(f64::INFINITY) {
        return refuse("connect_rate", "write a number of connections a second");
    }
    if spec.proxy.is_some() && spec.unix_socket.is_some() {
        return refuse("proxy", "it contradicts unix_socket: both determine where connections go");
    }
    if spec.streams == Some(0) {
        return refuse("streams", "it must be at least 1");
    }
    let given = [
        ("streams", spec.streams.is_some()),
        ("stream_window", spec.stream_window.is_some()),
        ("connection_window", spec.connection_window.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given)
        && !spec.http.is_multiplexed()
    {
        return refuse(key, "it needs HTTP/2 or HTTP/3");
    }
    for (key, is_given) in
        [("proxy", spec.proxy.is_some()), ("unix_socket", spec.unix_socket.is_some())]
    {
        if is_given && spec.http == HttpVersion::Http3 {
            return refuse(key, "it does not carry UDP, which HTTP/3 needs");
        }
    }
    if spec.keep_body_bytes.is_some() && spec.keep_answers.is_none() {
        return refuse("keep_body_bytes", "it needs keep_answers");
    }
    for (key, window, min) in [
        ("stream_window", spec.stream_window, 1),
        ("connection_window", spec.connection_window, CONNECTION_WINDOW_MIN),
    ] {
        if window.is_some_and(|bytes| !(min..=WINDOW_MAX).contains(&bytes)) {
            return Err(SpecError::new(
                at.key(key),
                format!("it must be from {min} to {WINDOW_MAX}"),
            ));
        }
    }
    Ok(())
}

fn check_tls(spec: &TlsSpec, http: HttpVersion) -> Result<(), SpecError> {
    let at = FieldPath::root().key("tls");
    let refuse = |key, problem| Err(SpecError::new(at.key(key), problem));
    if spec.session_tickets && http == HttpVersion::Http3 {
        return refuse("session_tickets", "it needs TCP: sessions of HTTP/3 are not resumed");
    }
    if spec.early_data && http.is_multiplexed() && http != HttpVersion::Http3 {
        let problem = "it needs HTTP/1.1 or HTTP/3, and no negotiation between versions";
        return refuse("early_data", problem);
    }
    let is_12 = spec.max_version == Some(TlsVersion::Tls12);
    for (key, is_given) in [("early_data", spec.early_data), ("ech", spec.ech.is_some())] {
        if is_given && is_12 {
            return refuse(key, "it needs TLS 1.3");
        }
    }
    if let (Some(min), Some(max)) = (spec.min_version, spec.max_version)
        && min > max
    {
        let problem = format!("{} is newer than max_version, {}", min.name(), max.name());
        return Err(SpecError::new(at.key("min_version"), problem));
    }
    Ok(())
}

fn at_least_one(CountValue(count): CountValue, at: &FieldPath) -> Result<usize, SpecError> {
    match usize::try_from(count) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(SpecError::new(at.clone(), "it must be at least 1")),
    }
}

/// A valid name: one line, not blank, bounded.
fn named(name: String, at: &FieldPath) -> Result<String, SpecError> {
    if name.trim().is_empty() {
        return Err(SpecError::new(at.clone(), "it is empty"));
    }
    if name.len() > NAME_MAX {
        return Err(SpecError::new(at.clone(), format!("it is longer than {NAME_MAX} bytes")));
    }
    if name.chars().any(char::is_control) {
        return Err(SpecError::new(at.clone(), "it contains a line feed or a control character"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::super::file::SpecFile;

    #[test]
    fn sessions_of_http3_are_not_resumed() {
        let decided = |http: &str| {
            let text = format!(
                "[connection]\nhttp = \"{http}\"\n[tls]\nsession_tickets = true\n\
                 [[scenario]]\nurl = \"https://h/\"\nrate = 5\n"
            );
            SpecFile::read("a.toml", text.as_bytes()).unwrap().spec()
        };
        let refused = decided("3").unwrap_err();
        assert_eq!(refused.field.to_string(), "tls.session_tickets");
        // With a fallback to TCP, they may be.
        assert!(decided("auto3").is_ok());
    }

    #[test]
    fn early_data_needs_tls_1_3_and_one_version_of_http() {
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
