//! Every documented command line is a spec that gives the same run again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gake_core::spec::file::SpecFile;
use gake_core::spec::{
    BodySpec, ConnectionDraft, RequestDraft, RequestSource, RunDraft, RunSpec, ScenarioDraft,
    SpecField, TlsDraft,
};
use gake_run::Prepared;

use super::*;
use crate::cli::{definition, run_of};

/// Files that the examples name, in a folder of their own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("gake-spec-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let here = Self(folder);
        here.file(
            "targets.http",
            "GET http://localhost:8080/a\n\nPOST http://localhost:8080/b\n@body.json\n",
        );
        here.file("body.json", "{}");
        here.file("traffic.gakerec", &access_log());
        here.file("users.csv", "id\n1\n2\n");
        here.file("order.json", "{\"id\":7}");
        let order = "message Id { int64 id = 1; } service Shop { rpc Order(Id) returns (Id); }";
        here.file("shop.proto", &format!("syntax = \"proto3\"; package shop.v1; {order}"));
        here
    }

    fn file(&self, name: &str, text: &str) {
        let text = text.replace("@body.json", &format!("@{}", self.path("body.json")));
        fs::write(self.0.join(name), text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A recording in a format that is easily written.
fn access_log() -> String {
    let line = |second| {
        format!(
            "10.0.0.1 - - [21/Nov/2026:10:00:{second:02} +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"\n"
        )
    };
    (0..5).map(line).collect()
}

/// The examples of `gake run` in the help, the README and the documentation.
fn examples() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = vec![fs::read_to_string(root.join("README.md")).unwrap()];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|suffix| suffix == "md") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    let command = definition();
    let run = command.get_subcommands().find(|command| command.get_name() == "run").unwrap();
    texts.push(run.get_before_long_help().unwrap().to_string());
    let examples = texts.iter().flat_map(|text| text.lines()).filter_map(example);
    examples.collect()
}

/// The command line in a line of text, without its description.
fn example(line: &str) -> Option<String> {
    let line = line.trim().trim_start_matches("$ ");
    let is_run = line.starts_with("gake run ") || line.starts_with("gake http");
    let line = line.split("   ").next()?.trim();
    let line = line.split(" > ").next()?.split(" | ").next()?.trim();
    // Not of one word, of a shell, or of files that are no examples.
    let is_whole = !["...", "$(", ".js", "FILE", "--help", "`", "--spec", ".pem"]
        .iter()
        .any(|part| line.contains(part));
    (is_run && is_whole).then(|| line.to_owned())
}

/// The run of a command line, with the files of the folder.
fn command_spec(line: &str, folder: &Folder) -> CommandSpec {
    let mut line = line.replace(" URL", " http://localhost:8080/");
    let files = ["targets.http", "traffic.gakerec", "body.json", "users.csv", "order.json"];
    for name in files.into_iter().chain(["shop.proto"]) {
        line = line.replace(name, &folder.path(name));
    }
    let mut args = run_of(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    args.spec.print_spec = None;
    of_run(&args, &Console::new()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The plan's line before the run, with every name at this machine.
fn plan_line(spec: &RunSpec) -> String {
    let mut spec = spec.clone();
    for host in
        ["h:80", "localhost:8080", "localhost:50051", "demo:80", "staging:80", "staging:8080"]
    {
        spec.connection.resolve.push(format!("{host}:127.0.0.1"));
    }
    let prepared =
        Prepared::new(&spec, inputs()).unwrap_or_else(|error| panic!("{spec:?}: {error}"));
    prepared.plan.to_string()
}

#[test]
fn every_documented_example_comes_back_as_the_same_run() {
    let folder = Folder::new();
    let examples = examples();
    assert!(examples.len() >= 20, "they are found: {examples:#?}");
    for example in &examples {
        let command = command_spec(example, &folder);
        let line = plan_line(&command.spec);
        for (format, name) in [(SpecFormat::Toml, "a.toml"), (SpecFormat::Json, "a.json")] {
            let printed = command.print(format).unwrap();
            let again = SpecFile::read(name, printed.as_bytes()).unwrap().spec();
            let again = again.unwrap_or_else(|error| panic!("{example}: {error}\n{printed}"));
            assert_eq!(again, command.spec, "{example}\n{printed}");
            assert_eq!(plan_line(&again), line, "{example}");
        }
    }
}

#[test]
fn the_specs_of_the_documentation_are_specs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = page.split("```toml\n").skip(1).collect();
    // The number of scenarios of each.
    let scenarios = [3, 2];
    assert_eq!(blocks.len(), scenarios.len(), "each block is read");
    for (block, scenarios) in blocks.into_iter().zip(scenarios) {
        let text = block.split("```").next().unwrap();
        let spec = SpecFile::read("spec.md", text.as_bytes()).unwrap().spec();
        let spec = spec.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(spec.scenarios.len(), scenarios);
    }
}

/// The tables of docs/spec.md, made of the fields. `GAKE_BLESS=1` writes them.
#[test]
fn the_reference_is_that_of_the_fields() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec.md");
    let kept = fs::read_to_string(&path).unwrap();
    let mut page = String::new();
    let mut rest = kept.as_str();
    for (name, fields) in TABLES {
        let marker = format!("<!-- fields: {name} -->\n");
        let (before, after) = rest.split_once(&marker).expect(&marker);
        page.push_str(&format!("{before}{marker}{}", SpecField::reference(fields)));
        rest = &after[after.find("<!-- end -->").expect("an end")..];
    }
    page.push_str(rest);
    if std::env::var_os("GAKE_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    } else {
        assert!(kept == page, "write docs/spec.md with GAKE_BLESS=1\n{page}");
    }
    let text = page.replace("<!--", "");
    for field in TABLES.iter().flat_map(|(_, fields)| *fields).chain(RequestDraft::FIELDS) {
        let key = if field.key == "scenarios" { "scenario" } else { field.key };
        let forms = [format!("`{key}`"), format!("[{key}]"), format!(".{key}]")];
        assert!(forms.iter().any(|form| text.contains(form)), "{key}");
    }
}

const TABLES: [(&str, &[SpecField]); 4] = [
    ("run", RunDraft::FIELDS),
    ("scenario", ScenarioDraft::FIELDS),
    ("connection", ConnectionDraft::FIELDS),
    ("tls", TlsDraft::FIELDS),
];

#[test]
fn the_flags_of_fields_are_those_of_a_run() {
    let command = definition();
    let run = command.get_subcommands().find(|command| command.get_name() == "run").unwrap();
    let flags: Vec<String> = run
        .get_arguments()
        .flat_map(|arg| {
            let long = arg.get_long().map(|long| format!("--{long}"));
            long.into_iter().chain(arg.get_short().map(|short| format!("-{short}")))
        })
        .collect();
    for field in TABLES.iter().flat_map(|(_, fields)| *fields) {
        for flag in field.flag.split(", ").filter(|flag| !flag.is_empty()) {
            assert!(flags.iter().any(|known| known == flag), "{}: {flag}", field.key);
        }
    }
}

#[test]
fn the_schema_has_every_field() {
    let schema: serde_json::Value = serde_json::from_str(&gake_core::spec::json_schema()).unwrap();
    for (name, fields) in [
        ("", RunDraft::FIELDS),
        ("/$defs/ScenarioDraft", ScenarioDraft::FIELDS),
        ("/$defs/ConnectionDraft", ConnectionDraft::FIELDS),
        ("/$defs/TlsDraft", TlsDraft::FIELDS),
        ("/$defs/RequestDraft", RequestDraft::FIELDS),
    ] {
        let table = schema.pointer(name).unwrap();
        assert_eq!(table["additionalProperties"], false, "{name}");
        for field in fields {
            let key = if field.key == "scenarios" { "scenario" } else { field.key };
            assert!(table["properties"].get(key).is_some(), "{name}: {key}");
        }
    }
}

fn spec_beside(file: &str, flags: &str) -> Result<RunSpec, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    fs::write(&path, file).unwrap();
    let args = run_of(&format!("run --spec {} {flags}", path.display())).map_err(|e| e.to_string());
    let spec =
        args.and_then(|args| of_run(&args, &Console::new()).map_err(|error| error.to_string()));
    spec.map(|command| command.spec)
}

#[test]
fn flags_override_a_file() {
    let file = "objectives = [\"p99<1s\"]\nseed = 7\n[connection]\ntimeout = 5\nkeepalive = false\n\
                [[scenario]]\nurl = \"http://h/\"\nusers = 50\nduration = 60\n\
                headers = [\"A: 1\", \"B: 2\"]\n";
    let spec = |flags: &str| spec_beside(file, flags).unwrap();
    let plain = spec("");
    assert_eq!(spec("-d 5s").scenarios[0].duration, Some(std::time::Duration::from_secs(5)));
    assert_eq!(spec("-c 7").scenarios[0].load, Load::closed(7));
    assert_eq!(spec("--users 8").scenarios[0].load, Load::closed(8));
    assert_eq!(spec("--slo errors<1%").objectives, ["errors<1%"]);
    assert_eq!(spec("-t 3").threads, Some(3));
    let connected = spec("--connect-timeout 1s").connection;
    assert_eq!(connected.connect_timeout, std::time::Duration::from_secs(1));
    assert_eq!(connected.timeout, plain.connection.timeout, "the rest stays");
    assert!(!connected.keepalive);
    let headers = spec("-H a:9").scenarios[0].request.headers.clone();
    assert_eq!(headers, [("B".to_owned(), "2".to_owned()), ("a".to_owned(), "9".to_owned())]);
    let other = spec("http://other/").scenarios[0].source.clone();
    assert_eq!(other, RequestSource::Url("http://other/".to_owned()));
    let body = spec("--data x").scenarios[0].request.body.clone();
    assert_eq!(body, Some(BodySpec::text("x")));
    let open = "[[scenario]]\nurl = \"http://h/\"\nstages = \"5@5s\"\nconnections = 9\n";
    let rate = spec_beside(open, "-r 100 -d 2s -c 4").unwrap();
    let expected = Load::rate(100.0, std::time::Duration::from_secs(2));
    assert_eq!((&rate.scenarios[0].load, rate.scenarios[0].connections), (&expected, 4));
}

#[test]
fn a_target_replaces_the_source_of_a_file() {
    let file = "[[scenario]]\nurl = \"ws://h/\"\nws_message = \"hi\"\n";
    let spec = spec_beside(file, "http://other/ -n 3 --max-redirs 2 -k").unwrap();
    assert_eq!(spec.scenarios[0].source, RequestSource::Url("http://other/".to_owned()));
    assert_eq!((spec.connection.max_redirects, spec.tls.insecure), (2, true));
}

#[test]
fn ambiguous_flags_with_a_file_are_refused() {
    let one = "[[scenario]]\nurl = \"http://h/\"\nusers = 50\n";
    let two = "[[scenario]]\nname = \"a\"\nurl = \"u\"\n[[scenario]]\nname = \"b\"\nurl = \"u\"\n";
    for (file, flags, problem) in [
        (one, "-r 100", "a.toml:3:1: scenario[0].users: it belongs to a closed loop"),
        (two, "-r 100", "--rate could be for any of the 2 scenarios of"),
        (two, "http://other/", "the target http://other/ could be for any"),
        (two, "-H a:1", "--header could be for any"),
        (one, "--think 1s --users 1..2@5s -d 5s", "scenario[0].duration: it contradicts"),
    ] {
        let error = spec_beside(file, flags).unwrap_err();
        assert!(error.contains(problem), "{flags}: {error}");
    }
    assert_eq!(spec_beside(two, "-t 2 --slo p99<1s").unwrap().threads, Some(2));
    let spec = spec_beside(two, "--body-errors").unwrap();
    assert!(spec.scenarios.iter().all(|scenario| scenario.body_errors), "{spec:?}");
}

#[test]
fn users_may_ramp_from_the_command_line() {
    let args = run_of("run http://h/ --users 50..200@30s,200@1m --think 1s").unwrap();
    let spec = of_run(&args, &Console::new()).unwrap().spec;
    let Load::Ramping { stages, .. } = &spec.scenarios[0].load else { panic!("{spec:?}") };
    assert_eq!((stages.len(), stages[0].from, stages[1].to), (2, 50, 200));
}
