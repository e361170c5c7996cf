//! Scripts with users in other processes: failures to make them, and time limits for loading.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::schedule::Slice;
use gake_engine::Stop;
use gake_k6::files::ScriptFiles;
use gake_k6::secrets::Secrets;
use gake_k6::test::{LogLevel, LogLine, UserSettings};
use gake_run::script::{LoadedScript, LostSlices, RemoteUsers, ScriptSlice, SetupResult, within};
use gake_run::spec::Load;
use gake_run::{Interrupt, RemoteWorkers, RunError};
use gake_text::redact::Redactor;
use gake_wire::ConnectionPermit;

use crate::support::{Log, ScriptCase};

/// Users that cannot be made.
struct RefusingUsers(Log);

impl RefusingUsers {
    fn log(&self, message: &str) {
        let line = LogLine {
            level: LogLevel::Info,
            message: Redactor::off().text(message),
            fields: Vec::new(),
        };
        self.0.lock().unwrap().push(line);
    }
}

impl RemoteUsers for RefusingUsers {
    fn assemble(&mut self, _set_up: &[SetupResult]) -> Result<&mut dyn RemoteWorkers, RunError> {
        self.log("assemble");
        Err(RunError::cannot("an agent does not start"))
    }

    fn needs_teardown(&self) -> bool {
        true
    }

    fn give_up(&mut self) {
        self.log("give up");
    }

    fn lost(&self) -> LostSlices {
        Arc::new(Vec::new)
    }
}

fn case(teardown: &str) -> ScriptCase {
    let mut case = ScriptCase::of(&format!(
        "export function setup() {{ console.log('setup') }}
         export default function () {{ console.log('iteration') }}
         export function teardown() {{ console.log('teardown'); {teardown} }}"
    ));
    case.remote = Some(Box::new(|log| Box::new(RefusingUsers(log))));
    case
}

#[test]
fn users_are_released_before_the_teardown_of_a_run_that_failed() {
    let ran = case("").run(None);
    assert_eq!(ran.messages(LogLevel::Info), ["setup", "assemble", "give up", "teardown"]);
    assert!(ran.result.unwrap_err().to_string().contains("does not start"));
}

#[test]
fn an_exception_of_teardown_is_logged_besides_the_error_of_the_run() {
    let ran = case("throw new Error('not torn down')").run(None);
    let errors = ran.messages(LogLevel::Error);
    assert!(errors.len() == 1 && errors[0].contains("not torn down"), "{errors:?}");
    assert!(ran.result.unwrap_err().to_string().contains("does not start"));
}

#[test]
fn an_interrupt_before_the_run_prevents_setup() {
    let mut case = case("");
    case.load = Load::closed(1);
    let interrupt = Interrupt::default();
    interrupt.stop(Stop::Drain);
    case.interrupt = Some(interrupt);
    let ran = case.run(None);
    assert_eq!(ran.messages(LogLevel::Info), [""; 0]);
    assert_eq!(ran.run().tally.counts.started, 0);
}

fn load(text: &str) -> Result<LoadedScript, String> {
    let path = Path::new("/script.js");
    let files = ScriptFiles::on_disk(None).with(path, text.as_bytes().to_vec());
    let log = Arc::new(|_: &LogLine| ());
    let early = UserSettings { redactor: Redactor::off(), ..UserSettings::default() };
    let loaded = LoadedScript::load(path, files, early, Secrets::none(), log);
    loaded.map_err(|error| error.to_string())
}

#[test]
fn endless_init_code_is_interrupted() {
    let late = |script: Result<LoadedScript, String>| {
        assert_eq!(script.map(drop), Err("its init code took too long".to_owned()));
    };
    let soon = || Instant::now() + Duration::from_millis(200);
    for endless in [
        "while (true) {}",
        "try { for (;;); } finally { for (;;); }",
        "async function turn() { for (;;) await 0 }; await turn();",
        "const turn = () => Promise.resolve().then(turn); await turn();",
    ] {
        late(within(soon(), || load(&format!("{endless} export default function () {{}}"))));
        // The first load ends; loading users does not.
        let there = format!("if (__VU > 0) {{ {endless} }} export default function () {{}}");
        let script = load(&there).unwrap();
        script.test.settings.set(Default::default()).unwrap();
        let mut case = ScriptCase::of(&there);
        case.load = Load::PerUser { users: 3, iterations: 1 };
        let run = case.script_run(Path::new("/script.js"));
        let prepared = script.prepare(&run).unwrap();
        let slice = ScriptSlice {
            slice: Slice::new(0, 2),
            data: Vec::new(),
            permit: ConnectionPermit::new(|_, _| true, None),
            load_until: soon(),
            log: None,
        };
        let refused = prepared.ready_scripts(slice).map(drop).unwrap_err().to_string();
        assert!(refused.contains("could not be loaded: its init code took too long"), "{refused}");
    }
    // Without a deadline it may take any time.
    load("for (let i = 0; i < 1e5; i++); export default function () {}").unwrap();
}
