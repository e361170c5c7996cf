//! The state that all users of a test share, on all threads.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::metric::{Definition, Tags};
use gake_script::Exception;
use gake_script::typescript::StrippedModules;
use gake_script::user::Builtins;
use gake_text::redact::{Redacted, Redactor, SecretNames};

use crate::bodies::HeldBodies;
pub use crate::counters::TestCounters;
use crate::definitions::GrpcDefinitions;
use crate::extension::Extensions;
use crate::files::ScriptFiles;
pub use crate::init_lines::InitLines;
use crate::scenario::ScenarioFacts;
use crate::secrets::Secrets;
use crate::shared_arrays::SharedArrays;
use crate::source_maps::SourceMaps;
pub use crate::user_settings::{BrowserSettings, HttpDebug, UserSettings};

/// Bytes of the text of a log line, and of each field.
const LINE_MAX: usize = 1 << 20;

/// Bytes of a text that are read for them: redaction takes time.
pub(crate) const READ_MAX: usize = LINE_MAX + LINE_MAX / 16;

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `console.debug`.
    Debug,
    /// `console.log` and `console.info`.
    Info,
    /// `console.warn`, and warnings of gake.
    Warning,
    /// `console.error`, and exceptions.
    Error,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its severity.
    pub level: LogLevel,
    /// Its text; may have several lines.
    pub message: Redacted,
    /// Structured fields, in order.
    pub fields: Vec<(&'static str, Redacted)>,
}

/// The destination of log lines, from all threads.
pub type ScriptLog = Arc<dyn Fn(&LogLine) + Send + Sync>;

/// A single sample, for outputs that take every one.
#[derive(Debug, Clone)]
pub struct RawSample {
    /// The metric.
    pub metric: Arc<Definition>,
    /// All of its tags.
    pub tags: Tags,
    /// The script's metadata, and `vu` and `iter` if they are system tags.
    pub metadata: Tags,
    /// The value; a time in nanoseconds.
    pub value: f64,
    /// When it was recorded, in Unix nanoseconds.
    pub unix_ns: i128,
}

/// The number of users whose scenario runs at an instant; called from all threads.
pub type ActiveUsers = Arc<dyn Fn(Nanos) -> usize + Send + Sync>;

/// Takes single samples from all threads. Must not block: it counts the samples that it drops.
pub type SampleTap = Arc<dyn Fn(Vec<RawSample>) + Send + Sync>;

/// A script's request to end the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The script's reason.
    pub reason: String,
}

/// A test: its script, and the state that its users share.
pub struct Test {
    /// The script's URL, as `file:///home/me/script.js`.
    pub main: String,
    /// The settings of users before the script's options are known.
    pub early: UserSettings,
    /// The settings of users, once the script's options are known.
    pub settings: OnceLock<UserSettings>,
    /// The consolidated options as JSON, for `exec.test.options`.
    pub options: OnceLock<String>,
    /// Takes every single sample. Set before any user runs.
    pub tap: OnceLock<SampleTap>,
    /// The system tags of single samples.
    pub system_tags: OnceLock<Vec<String>>,
    /// The number of the first user that could not be loaded, and what its init code threw.
    pub unloaded: OnceLock<(u64, Option<Exception>)>,
    /// The secrets that scripts may read. Set before any user runs.
    pub secrets: OnceLock<Secrets>,
    /// Modules beside k6's own. Set before any user is loaded.
    pub extensions: Extensions,
    /// The files and modules that it has read.
    pub files: ScriptFiles,
    pub(crate) bodies: Arc<HeldBodies>,
    pub(crate) stripped: StrippedModules,
    pub(crate) source_maps: SourceMaps,
    /// The gRPC definitions that it has loaded.
    pub definitions: GrpcDefinitions,
    /// JavaScript built-ins that modules use, by module name.
    builtins: Mutex<HashMap<String, Builtins>>,
    /// The modules that the first load imports.
    imports: Mutex<Vec<String>>,
    /// Lines of init code.
    pub init_lines: InitLines,
    /// When the test began.
    pub began: Instant,
    /// Its users and iterations.
    pub counters: TestCounters,
    /// Nanoseconds that `setup` and `teardown` have taken.
    stages: AtomicU64,
    /// Users to be initialised before the first iteration.
    planned: AtomicU64,
    /// When the run began, before `setup`.
    started: OnceLock<Instant>,
    /// When its load began, after `setup`.
    pub(crate) load_began: OnceLock<Instant>,
    /// Its scenarios and their start times, for progress lines.
    pub(crate) scenarios: OnceLock<Vec<(ScenarioFacts, Nanos)>>,
    /// The number of active users. Set before any user runs an iteration.
    pub active_users: OnceLock<ActiveUsers>,
    /// The deadline for loading all users. Set before any is loaded.
    pub load_until: OnceLock<Instant>,
    /// This process's share of the users of all processes; 1 if unset. Set before any user runs.
    pub share: OnceLock<f64>,
    /// Nanoseconds from `began` to the next request that `rps` allows.
    next_request: AtomicU64,
    log: ScriptLog,
    warned: Mutex<HashSet<&'static str>>,
    /// Arrays that all users share.
    pub arrays: SharedArrays,
    abort: Mutex<Option<Abort>>,
    failed: AtomicBool,
    on_abort: Mutex<Option<Box<dyn Fn() + Send>>>,
    on_fail: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Test {
    /// The test of the script at `main`, an absolute path among these files.
    #[must_use]
    pub fn new(main: &Path, files: ScriptFiles, early: UserSettings, log: ScriptLog) -> Self {
        Self {
            main: format!("file://{}", main.display()),
            files,
            bodies: Arc::default(),
            stripped: StrippedModules::default(),
            source_maps: SourceMaps::default(),
            definitions: GrpcDefinitions::default(),
            builtins: Mutex::default(),
            early,
            settings: OnceLock::new(),
            options: OnceLock::new(),
            tap: OnceLock::new(),
            system_tags: OnceLock::new(),
            unloaded: OnceLock::new(),
            secrets: OnceLock::new(),
            extensions: Extensions::default(),
            imports: Mutex::default(),
            init_lines: InitLines::default(),
            began: Instant::now(),
            counters: TestCounters::default(),
            stages: AtomicU64::new(0),
            planned: AtomicU64::new(0),
            started: OnceLock::new(),
            load_began: OnceLock::new(),
            scenarios: OnceLock::new(),
            active_users: OnceLock::new(),
            load_until: OnceLock::new(),
            share: OnceLock::new(),
            next_request: AtomicU64::new(0),
            log,
            warned: Mutex::default(),
            arrays: SharedArrays::default(),
            abort: Mutex::default(),
            failed: AtomicBool::new(false),
            on_abort: Mutex::default(),
            on_fail: Mutex::default(),
        }
    }

    /// The users to be initialised before the first iteration.
    pub fn planned(&self) -> u64 {
        self.planned.load(Relaxed)
    }

    /// Marks the beginning of its run with this number of users.
    pub fn start(&self, users: u64) {
        self.planned.store(users, Relaxed);
        let _ = self.started.set(Instant::now());
    }

    /// Derives the beginning of the load from an iteration of a scenario that starts `start` after
    /// it.
    pub(crate) fn set_load_began(&self, start: Nanos) {
        self.load_began.get_or_init(|| {
            let now = Instant::now();
            now.checked_sub(Duration::from_nanos(start)).unwrap_or(now)
        });
    }

    /// Sets its scenarios and their start times, for progress lines.
    pub fn show_scenarios(&self, scenarios: Vec<(ScenarioFacts, Nanos)>) {
        let _ = self.scenarios.set(scenarios);
    }

    /// The time since the run began.
    pub fn running_for(&self) -> Duration {
        self.started.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// The number of initialised users. k6 initialises all before `setup`, gake after it.
    pub fn initialized(&self) -> u64 {
        match self.counters.ready() {
            0 => self.planned.load(Relaxed),
            ready => ready,
        }
    }

    /// Counts the time that `setup` or `teardown` took.
    pub fn count_stage(&self, took: Duration) {
        self.stages.fetch_add(nanos(took), Relaxed);
    }

    /// The duration of a test whose users ran for `load`: k6 adds `setup` and `teardown`.
    pub fn duration(&self, load: Duration) -> Duration {
        load + Duration::from_nanos(self.stages.load(Relaxed))
    }

    /// Users that are active at an instant of the run.
    pub fn active(&self, at: Nanos) -> usize {
        let iterating = usize::try_from(self.counters.iterating()).unwrap_or(usize::MAX);
        self.active_users.get().map_or(0, |active| active(at)).max(iterating)
    }

    /// Reserves a request under this process's share of `rps`; returns the wait before sending it.
    pub fn pace(&self) -> Option<Duration> {
        let share = self.share.get().copied().unwrap_or(1.0);
        let gap = ((SECOND / self.settings().rps?) as f64 / share) as Nanos;
        let now = nanos(self.began.elapsed());
        let reserve = |next: u64| Some(next.max(now).saturating_add(gap));
        let due = self.next_request.fetch_update(Relaxed, Relaxed, reserve).unwrap_or(now);
        Some(Duration::from_nanos(due.saturating_sub(now)))
    }

    /// Milliseconds since 1970.
    pub fn unix_ms(&self) -> f64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0.0, |since| since.as_millis() as f64)
    }

    /// Whether samples have this system tag.
    pub fn has_system_tag(&self, tag: &str) -> bool {
        self.system_tags.get().is_none_or(|tags| tags.iter().any(|known| known == tag))
    }

    /// Nanoseconds since 1970.
    pub fn unix_ns(&self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as i128)
    }

    /// The tags of a sample that belongs to no user: the run's tags, and the scenario.
    pub(crate) fn own_tags<'a>(
        &'a self,
        scenario: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let of_run = self.settings().tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        scenario.map(|name| ("scenario", name)).into_iter().chain(of_run)
    }

    /// Writes a sample that belongs to no user `times` to the tap, if there is one.
    pub fn write_samples(
        &self,
        metric: &Arc<Definition>,
        scenario: Option<&str>,
        value: f64,
        times: u64,
    ) {
        let Some(tap) = self.tap.get() else { return };
        let (metric, tags) = (Arc::clone(metric), Tags::new(self.own_tags(scenario)));
        let (metadata, unix_ns) = (Tags::default(), self.unix_ns());
        let sample = RawSample { metric, tags, metadata, value, unix_ns };
        tap(vec![sample; usize::try_from(times).unwrap_or(usize::MAX)]);
    }

    /// The settings of users.
    pub fn settings(&self) -> &UserSettings {
        self.settings.get().unwrap_or(&self.early)
    }

    /// Logs a warning once for all users.
    pub(crate) fn warn_once(&self, message: &'static str) {
        if lock(&self.warned).insert(message) {
            self.log(LogLevel::Warning, message, &[]);
        }
    }

    /// Writes a line of the log.
    pub fn log(&self, level: LogLevel, message: &str, fields: &[(&'static str, &str)]) {
        let redactor = &self.settings().redactor;
        let is_ours = !fields.contains(&("source", "console"));
        let shown = |whole: &str| {
            let text = &whole[..whole.floor_char_boundary(READ_MAX)];
            let text = self.secrets().redacted(text).map_or(Cow::Borrowed(text), Cow::Owned);
            let mut text = match redactor.is_off() && is_ours {
                // Messages of ours quote what they are about.
                true => Redactor::masking(SecretNames::default()).urls(&text),
                false => redactor.text(&text),
            };
            // After the redaction, which does not recognise half a secret.
            // Nor where it was cut before.
            let unsure = if whole.len() > READ_MAX { LINE_MAX / 16 } else { 0 };
            text.cut(text.len().saturating_sub(unsure).min(LINE_MAX), "");
            text
        };
        let fields = fields.iter().map(|(key, value)| (*key, shown(value))).collect();
        (self.log)(&LogLine { level, message: shown(message), fields });
    }

    /// The secrets that scripts may read.
    pub fn secrets(&self) -> &Secrets {
        static NONE: Secrets = Secrets::none();
        self.secrets.get().unwrap_or(&NONE)
    }

    /// The bytes of a file, read once for all users.
    ///
    /// # Errors
    /// When it cannot be read, or is larger than 1 GiB.
    pub fn file(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.files.read(path)
    }

    /// The text of the module behind an `https://` URL, fetched once for all users. Blocks.
    ///
    /// # Errors
    /// When it cannot be fetched.
    pub fn remote(&self, url: &str) -> Result<Arc<[u8]>, String> {
        let (text, note) = self.files.fetch(url)?;
        if let Some(note) = note {
            self.log(LogLevel::Info, &note, &[]);
        }
        Ok(text)
    }

    /// Notes an import, until users are loaded.
    pub(crate) fn note_import(&self, name: &str) {
        if self.settings.get().is_none() {
            lock(&self.imports).push(name.to_owned());
        }
    }

    /// The modules that the script has imported by its options' being known.
    pub fn imports(&self) -> Vec<String> {
        lock(&self.imports).clone()
    }

    /// The JavaScript built-ins that a module may use; scanned once for all users.
    pub(crate) fn builtins(&self, module: &str, text: &str) -> Builtins {
        let mut known = lock(&self.builtins);
        if let Some(known) = known.get(module) {
            return *known;
        }
        *known.entry(module.to_owned()).or_insert(Builtins::named_in(text))
    }

    /// Ends the test; the first reason is kept.
    pub fn abort(&self, reason: String) {
        lock(&self.abort).get_or_insert(Abort { reason });
        if let Some(callback) = &*lock(&self.on_abort) {
            callback();
        }
    }

    /// Why the script ended the test, if it did.
    pub fn aborted(&self) -> Option<Abort> {
        lock(&self.abort).clone()
    }

    /// Sets the callback for when the script ends the test.
    pub fn on_abort(&self, callback: impl Fn() + Send + 'static) {
        *lock(&self.on_abort) = Some(Box::new(callback));
    }

    /// Marks the test as failed; it continues.
    pub fn fail(&self) {
        self.failed.store(true, Relaxed);
        if let Some(callback) = &*lock(&self.on_fail) {
            callback();
        }
    }

    /// Sets the callback for when the script marks the test as failed.
    pub fn on_fail(&self, callback: impl Fn() + Send + 'static) {
        *lock(&self.on_fail) = Some(Box::new(callback));
    }

    /// Whether the script marked it as failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test").field("main", &self.main).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
