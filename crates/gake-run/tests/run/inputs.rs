//! Inputs that only a program can open.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use gake_core::exact;
use gake_run::spec::{
    BodySpec, GrpcSpec, HttpVersion, Load, RecordingSpec, RequestSource, RunSpec, ScenarioSpec,
    ScriptSpec,
};
use gake_run::{GivenRequests, Inputs, LoadedRequests, ResolvedRun, RunError};
use gake_wire::{HttpRequest, WeightedRequest};

use crate::support::*;

fn of(source: RequestSource) -> RunSpec {
    let load = Load::closed(1);
    RunSpec::new(ScenarioSpec { requests: Some(3), ..ScenarioSpec::new(source, load) })
}

fn problem(spec: &RunSpec) -> String {
    ResolvedRun::new(spec, Inputs::default()).unwrap_err().to_string()
}

#[test]
fn a_missing_input_is_named() {
    let recording = RecordingSpec {
        path: "a.gakerec".into(),
        to: "http://localhost:1".to_owned(),
        select: Vec::new(),
    };
    let script = ScriptSpec { path: "a.js".into(), function: None, environment: Vec::new() };
    for (source, expected) in [
        (RequestSource::Given("mine".to_owned()), "scenario[0].given: \"mine\""),
        (RequestSource::Recording(recording), "scenario[0].recording: this program cannot"),
        (RequestSource::Script(script), "a.js: The moduleSpecifier \"a.js\" couldn't be found"),
        (RequestSource::Targets(PathBuf::from("-")), "scenario[0].targets: standard input"),
        (RequestSource::Targets(PathBuf::from("/nowhere")), "targets file /nowhere: No such file"),
        (RequestSource::Url("ftp://h/".to_owned()), "scenario[0].url: "),
    ] {
        let problem = problem(&of(source));
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn fields_that_only_the_run_can_judge_are_named() {
    let lab = lab();
    let check = |change: &dyn Fn(&mut RunSpec), expected: &str| {
        let mut spec = counted(&lab, 1);
        change(&mut spec);
        let problem = problem(&spec);
        assert!(problem.starts_with(expected), "{problem}");
    };
    check(&|spec| spec.objectives = vec!["p99<5ms".into(), "x<".into()], "objectives[1]: x<: ");
    check(&|spec| spec.objectives = vec!["cpu<80%".into()], "objectives[0]: cpu<80% is about");
    check(&|spec| spec.watch = vec!["disk:1".into()], "watch[0]: it is not a valid source");
    check(&|spec| spec.connection.sources = vec!["not-there9".into()], "connection.sources: ");
    check(&|spec| spec.connection.resolve = vec!["x".into()], "connection.resolve[0]: ");
    check(&|spec| spec.connection.connect_to = vec!["x".into()], "connection.connect_to[0]: ");
}

#[test]
fn standard_input_may_be_a_body_or_the_targets_and_not_both() {
    let lab = lab();
    let mut spec = of(RequestSource::Url(format!("http://{}/echo", lab.addr())));
    spec.scenarios[0].request.body = Some(BodySpec::File("-".into()));
    let inputs = |text: &str| Inputs {
        stdin: Some(Box::new(Cursor::new(text.to_owned().into_bytes()))),
        ..Inputs::default()
    };
    let sent = |text: &str| {
        let run = ResolvedRun::new(&spec, inputs(text)).unwrap().run().unwrap();
        assert_eq!(run.tally.counts.ok, 3);
        run.tally.counts.bytes_out
    };
    assert_eq!(sent("hello") - sent("hell"), 3, "a byte more in each");
    let targets = format!("GET http://{}/fast\n", lab.addr());
    spec.scenarios[0].source = RequestSource::Targets("-".into());
    let error = ResolvedRun::new(&spec, inputs(&targets)).unwrap_err();
    assert!(matches!(error, RunError::Spec(_)), "{error}");
    spec.scenarios[0].request.body = None;
    let run = ResolvedRun::new(&spec, inputs(&targets)).unwrap().run().unwrap();
    assert_eq!((run.tally.counts.ok, run.plan.target.as_str()), (3, "standard input"));
}

#[test]
fn an_inlined_spec_sends_the_same_without_its_files() {
    let lab = lab();
    let folder = tempfile::tempdir().unwrap();
    let (body, targets) = (folder.path().join("body"), folder.path().join("targets"));
    std::fs::write(&body, [0, 159, 146, 150]).unwrap();
    let text = format!(
        "# gake: label=one\nGET http://{0}/fast\nX-A:  b\n\nPOST http://{0}/echo\n@{1}\n",
        lab.addr(),
        body.display()
    );
    std::fs::write(&targets, text).unwrap();
    let mut spec = of(RequestSource::Targets(targets));
    spec.scenarios[0].request.headers = vec![("X-Common".to_owned(), "1".to_owned())];
    spec.scenarios[0].request.user = Some("me:secret".to_owned());
    spec.scenarios[0].requests = Some(6);
    let loaded = LoadedRequests::read(&spec, Inputs::default()).unwrap();
    let bytes = exact::encode(&loaded.inlined(&spec)).unwrap();
    let before = loaded.prepare(&spec).unwrap().run().unwrap();
    drop(folder);
    let inlined: RunSpec = exact::decode(&bytes).unwrap();
    let after = ResolvedRun::new(&inlined, Inputs::default()).unwrap().run().unwrap();
    let figures = |run: &gake_run::Run| {
        let counts = run.tally.counts;
        (counts.ok, counts.bytes_out, run.plan.labels.clone())
    };
    assert_eq!((figures(&after), figures(&before).0), (figures(&before), 6));
}

#[test]
fn an_inlined_call_of_grpc_has_its_definitions() {
    let lab = lab();
    let folder = tempfile::tempdir().unwrap();
    let (proto, json) = (folder.path().join("echo.proto"), folder.path().join("messages"));
    let definitions = "syntax = \"proto3\"; package gake.lab.v1; message Text { string text = 1; }
        service Echo { rpc Chat(stream Text) returns (stream Text); }";
    std::fs::write(&proto, definitions).unwrap();
    std::fs::write(&json, r#"{"text":"a"} {"text":"ab"}"#).unwrap();
    let grpc = GrpcSpec {
        url: format!("grpc://{}/gake.lab.v1.Echo/Chat", lab.addr()),
        proto: vec![proto],
        ..GrpcSpec::default()
    };
    let mut spec = of(RequestSource::Grpc(grpc));
    spec.connection.http = HttpVersion::Http2;
    spec.scenarios[0].request.body = Some(BodySpec::File(json));
    let inlined = |check: Option<&str>| {
        let mut spec = spec.clone();
        spec.scenarios[0].expect_body = check.map(str::to_owned);
        let loaded = LoadedRequests::read(&spec, Inputs::default()).unwrap();
        exact::encode(&loaded.inlined(&spec)).unwrap()
    };
    let checks = [(None, 3), (Some("^.\"text\":\"a"), 3), (Some("json:text=a"), 0)];
    let specs = checks.map(|(check, _)| inlined(check));
    drop(folder);
    for (bytes, (check, ok)) in specs.iter().zip(checks) {
        let spec: RunSpec = exact::decode(bytes).unwrap();
        let run = ResolvedRun::new(&spec, Inputs::default()).unwrap().run().unwrap();
        assert_eq!((run.tally.counts.ok, run.tally.counts.sent), (ok, 3), "{check:?}");
        let all = run.tally.series.series().map(|(key, _)| key.metric.name.as_str());
        assert!(all.collect::<Vec<_>>().contains(&"stream_events"), "{check:?}");
    }
}

#[test]
fn a_program_gives_requests_beside_the_spec() {
    let lab = lab();
    let request = HttpRequest::new("GET", format!("http://{}/fast", lab.addr()));
    let given = GivenRequests {
        name: "of the program".to_owned(),
        requests: Arc::new([WeightedRequest::from(request)].into_iter().collect()),
        feed: None,
    };
    let inputs = Inputs { given: vec![("mine".to_owned(), given)], ..Inputs::default() };
    let spec = of(RequestSource::Given("mine".to_owned()));
    let run = ResolvedRun::new(&spec, inputs).unwrap().run().unwrap();
    assert_eq!((run.tally.counts.ok, run.plan.target.as_str()), (3, "of the program"));
}
