//! Runs scripts against a lab.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gake_core::metric::{SeriesValue, Tags};
use gake_core::record::Run;
use gake_k6::files::ScriptFiles;
use gake_k6::secrets::Secrets;
use gake_k6::test::{LogLevel, LogLine, UserSettings};
use gake_lab::{Lab, LabConfig};
use gake_run::script::{
    LoadedScript, RemoteUsers, ScriptEnd, ScriptRun, ScriptRunError, ScriptTls,
};
use gake_run::spec::{HttpVersion, Load, RequestSource, RunSpec, ScenarioSpec, ScriptSpec};
use gake_run::{Interrupt, RecordedRun, RunOptions};
use gake_text::redact::Redactor;

pub struct CaseResult {
    pub result: Result<RecordedRun, ScriptRunError>,
    pub log: Vec<LogLine>,
}

impl CaseResult {
    pub fn run(&self) -> &Run {
        &self.result.as_ref().unwrap().run
    }

    /// How the script ended.
    pub fn end(&self) -> &ScriptEnd {
        &self.result.as_ref().unwrap().scripts[0]
    }

    /// The messages of the log from `level` on.
    pub fn messages(&self, level: LogLevel) -> Vec<&str> {
        let lines = self.log.iter().filter(|line| line.level >= level);
        lines.map(|line| &*line.message).collect()
    }

    /// The sum of a metric's samples under all tags that contain `tags`.
    pub fn metric<const N: usize>(&self, name: &str, tags: [(&str, &str); N]) -> Metric {
        let selector = Tags::new(tags);
        let mut metric = Metric::default();
        for (key, value) in self.run().tally.series.series() {
            if key.metric.name != name || !key.tags.contains(&selector) {
                continue;
            }
            metric.samples += value.samples();
            match value {
                SeriesValue::Counter { sum, .. } => metric.sum += sum.value(),
                SeriesValue::Rate { passed, .. } => metric.sum += *passed as f64,
                SeriesValue::Trend(trend) => metric.sum += trend.sum() as f64,
                SeriesValue::Gauge { last, .. } => metric.sum += last,
            }
        }
        metric
    }
}

/// The sum of samples.
#[derive(Debug, Default, PartialEq)]
pub struct Metric {
    pub samples: u64,
    pub sum: f64,
}

pub type Log = Arc<Mutex<Vec<LogLine>>>;

/// Makes users in other processes, which may write to the log.
pub type MakeRemote = Box<dyn FnOnce(Log) -> Box<dyn RemoteUsers>>;

/// A script and how it runs.
pub struct ScriptCase {
    pub text: String,
    pub load: Load,
    pub duration: Option<Duration>,
    pub graceful_stop: Duration,
    pub settings: UserSettings,
    pub interrupt: Option<Interrupt>,
    /// Users in other processes.
    pub remote: Option<MakeRemote>,
    pub keys: Vec<String>,
}

impl ScriptCase {
    /// One iteration of a default function with this body.
    pub fn new(body: &str) -> Self {
        Self::of(&format!(
            "import http from 'k6/http'; import {{ check, sleep, group, fail }} from 'k6';\n\
             export default function (data) {{ {body} }}"
        ))
    }

    /// One iteration of a whole script.
    pub fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            load: Load::Shared { users: 1, iterations: 1 },
            duration: None,
            graceful_stop: Duration::from_secs(30),
            settings: UserSettings::default(),
            interrupt: None,
            remote: None,
            keys: Vec::new(),
        }
    }

    /// Runs it; `BASE` in its text is the lab's URL.
    pub fn run(self, lab: Option<&Lab>) -> CaseResult {
        let folder = tempfile::tempdir().unwrap();
        self.run_in(lab, folder.path())
    }

    /// Runs it in a folder with other files.
    pub fn run_in(self, lab: Option<&Lab>, folder: &Path) -> CaseResult {
        let base = lab.map_or_else(String::new, |lab| format!("http://{}", lab.addr()));
        let path = folder.join("script.js");
        let log = Log::default();
        let lines = Arc::clone(&log);
        let sink = Arc::new(move |line: &LogLine| lines.lock().unwrap().push(line.clone()));
        let text = self.text.replace("BASE", &base).into_bytes();
        let files = ScriptFiles::on_disk(None).with(&path, text);
        let early = UserSettings { redactor: Redactor::off(), ..UserSettings::default() };
        let result = LoadedScript::load(&path, files, early, Secrets::none(), sink)
            .and_then(|script| self.fire(&script, &path, &log));
        let log = log.lock().unwrap().clone();
        CaseResult { result, log }
    }

    fn fire(
        self,
        script: &LoadedScript,
        path: &Path,
        log: &Log,
    ) -> Result<RecordedRun, ScriptRunError> {
        script.test.settings.set(self.settings.clone()).unwrap();
        let run = self.script_run(path);
        let prepared = script.prepare(&run)?;
        let options = RunOptions { interrupt: self.interrupt.as_ref(), ..RunOptions::default() };
        let recorded = match self.remote.map(|make| make(Arc::clone(log))) {
            Some(mut users) => {
                prepared.run_remote_users((users.as_mut(), None), options, &mut |_| None)
            }
            None => prepared.run_with(options, &mut |_| None),
        };
        Ok(recorded?)
    }

    /// How it runs.
    pub fn script_run(&self, path: &Path) -> ScriptRun {
        let source = RequestSource::Script(ScriptSpec {
            path: path.to_owned(),
            function: None,
            environment: Vec::new(),
        });
        let mut scenario = ScenarioSpec::new(source, self.load.clone());
        scenario.duration = self.duration;
        scenario.graceful_stop = self.graceful_stop;
        let limit = Some(Duration::from_secs(60));
        ScriptRun {
            http: HttpVersion::Auto,
            segment_users: None,
            tls: ScriptTls::default(),
            spec: RunSpec::new(scenario),
            executors: vec!["shared-iterations".to_owned()],
            keys: self.keys.clone(),
            least_iteration: Duration::ZERO,
            setup: limit,
            teardown: limit,
        }
    }
}

/// A lab with its defaults.
pub fn lab() -> Lab {
    Lab::start(LabConfig::default()).unwrap()
}
