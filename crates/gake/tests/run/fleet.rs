//! Agents as processes at a real NATS server: one run, whatever happens to them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use gake_fleet::{Agent, AgentEvent, AgentLimits, AgentWeight, FleetToken, NatsSettings};
use gake_lab::LabConfig;
use gake_text::redact::Redactor;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::*;

pub const TOKEN: &str = "a token of the tests";

/// The password of every user of a NATS server that has users.
const PASSWORD: &str = "pass-word";

/// The configuration of a NATS server, in its folder.
const CONFIG: &str = "nats.conf";

/// A NATS server, ended when dropped.
pub struct Nats {
    child: Child,
    folder: TempDir,
    pub url: String,
}

impl Nats {
    pub fn start() -> Self {
        Self::configured("")
    }

    /// One with a configuration, whose users have [`PASSWORD`].
    pub fn configured(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CONFIG), config).unwrap();
        let (child, url) = serve(folder.path(), "-1");
        Self { child, folder, url }
    }

    /// Its URL for a user.
    pub fn url_of(&self, user: &str) -> String {
        self.url.replacen("://", &format!("://{user}:{PASSWORD}@"), 1)
    }

    /// Ends it, and starts another one in its place.
    pub fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let port = self.url.rsplit(':').next().unwrap().to_owned();
        self.child = serve(self.folder.path(), &port).0;
    }
}

/// A server, and its URL.
fn serve(folder: &Path, port: &str) -> (Child, String) {
    let mut child = command("nats-server")
        .args(["-a", "127.0.0.1", "-p", port, "-js", "-sd"])
        .arg(folder.join("store"))
        .arg("-c")
        .arg(folder.join(CONFIG))
        .envs(["AGENT_PASSWORD", "RUN_PASSWORD", "OTHER_PASSWORD"].map(|name| (name, PASSWORD)))
        .arg("--ports_file_dir")
        .arg(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = folder.join(format!("nats-server_{}.ports", child.id()));
    let mut url = None;
    eventually("the NATS server tells its port", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        url = read_url(&file);
        url.is_some()
    });
    (child, url.unwrap())
}

fn read_url(file: &Path) -> Option<String> {
    let ports: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `gake` with the token and the server of the tests.
pub fn with(nats: &Nats, token: &str, args: &[&str]) -> Command {
    let mut command = gake(args);
    command.env("GAKE_FLEET_TOKEN", token).env("GAKE_NATS", &nats.url);
    command
}

/// Agents `names`, which may load this machine; ended for sure with the test.
pub fn agents(nats: &Nats, names: &[&str], flags: &[&str]) -> Vec<Started> {
    let parent = std::process::id().to_string();
    let agent = |name: &&str| {
        let own = ["agent", "--name", name, "--parent", &parent];
        start(&mut with(nats, TOKEN, &[&own, flags].concat()))
    };
    names.iter().map(agent).collect()
}

pub const HERE: &[&str] = &["--allow", "127.0.0.0/8", "--cores", "1", "--tags", "zone=a,disk=ssd"];

/// A run of the agents.
pub fn run_of(nats: &Nats, url: &str, flags: &str) -> Command {
    let common = "--agents-wait 60s -o json --drain 20s";
    let line = format!("run {url} {common} {flags}");
    with(nats, TOKEN, &words(&line))
}

/// The id of the run that the first agent of the list has.
pub fn id_of_run(nats: &Nats) -> String {
    let mut id = String::new();
    eventually("the list shows the run", || {
        let listed = start(&mut with(nats, TOKEN, &["fleet", "ls"])).wait().stdout;
        id = words(&listed).get(1).map_or(String::new(), |id| (*id).to_owned());
        !id.is_empty() && id != "free"
    });
    id
}

/// Seeds of instants, other ones in each run of the tests. More of them:
/// `GAKE_KILL_SEEDS=10 cargo test --workspace --test run at_any_instant`.
pub fn seeds() -> std::ops::Range<u64> {
    let seeds = std::env::var("GAKE_KILL_SEEDS").ok().and_then(|text| text.parse().ok());
    let own = u64::from(std::process::id());
    own..own + seeds.unwrap_or(1)
}

/// A scattered number: it does not reveal its neighbours'.
pub fn scattered(seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

pub fn end(agents: Vec<Started>) {
    for agent in agents {
        agent.signal(Signal::TERM);
        assert_eq!(agent.wait().code, Some(0));
    }
}

#[test]
fn four_agents_are_one_run() {
    let (mut nats, lab) = (Nats::start(), lab());
    let four = agents(&nats, &["a", "b", "c", "d"], HERE);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.hlog");
    let url = url(&lab, "/fast");
    let out = file.to_str().unwrap();
    let flags =
        format!("-r 300 -d 1s --warmup 500ms --arrivals poisson -c 41 --agents 4 --out {out}");
    let ran = start(&mut run_of(&nats, &url, &flags)).wait().done();
    let json = ran.json();
    for name in ["a", "b", "c", "d"] {
        assert!(ran.stderr.contains(&format!("agent {name}: ")), "{ran:?}");
    }
    assert_eq!(ran.stderr.matches("(the highest)").count(), 1, "{ran:?}");
    // The same arrivals as in one process with the seed.
    let alone = run(&words(&format!("{url} -r 300 -d 1s --warmup 500ms --arrivals poisson -c 41")));
    for path in ["requests.due", "requests.ok", "warmup.ok"] {
        assert_eq!(json.count(path), alone.count(path), "{path}");
    }
    assert_eq!(json.written() + alone.written(), lab.stats().requests);
    assert_eq!(json.count("generator.threads"), 4);
    // The file is that of one run, with all that the agents recorded.
    let report = start(&mut gake(&["report", out, "-o", "json"])).wait().json();
    for path in ["requests", "latency", "events", "generator"] {
        assert_eq!(report.at(path), json.at(path), "{path}");
    }
    // A closed loop divides its users and its count; the agents take a second run.
    let before = lab.stats().requests;
    let flags = "-n 203 -c 9 --think 1ms --agents 3 --where zone=a,disk=ssd --slo errors<1%";
    let secret = format!("{url}?api_key=0b5cur3&token=w1thh3ld&page=2");
    let closed = start(&mut run_of(&nats, &secret, flags)).wait().done().json();
    assert_eq!((closed.count("requests.ok"), lab.stats().requests - before), (203, 203));
    // Without NATS for a while, agents continue and deliver their records later.
    let before = lab.stats().requests;
    let away = start(&mut run_of(&nats, &url, "-r 100 -d 1s --agents 4"));
    eventually("the run continues", || lab.stats().requests > before + 20);
    nats.restart();
    let away = away.wait().done().json();
    assert_eq!((away.count("requests.ok"), lab.stats().requests - before), (100, 100));
    assert!(!away.at("events").to_string().contains("lost"), "{}", away.0);
    // Neither the agents' logs nor what they print have secrets of URLs.
    let logs = start(&mut with(&nats, TOKEN, &["fleet", "logs"])).wait().done().stdout;
    let printed = four.into_iter().map(|agent| {
        agent.signal(Signal::TERM);
        agent.wait().done().stderr
    });
    let said = printed.chain([logs]).collect::<Vec<_>>();
    for text in &said {
        assert!(!text.contains("0b5cur3") && !text.contains("w1thh3ld"), "{text}");
    }
    assert_eq!(said.iter().filter(|text| text.contains("page=2")).count(), 4, "{said:?}");
}

#[test]
fn a_local_fleet_needs_one_command() {
    let lab = lab();
    // Targets and bodies travel with the spec, however long it is.
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body.bin");
    std::fs::write(&body, vec![7; 1_500_000]).unwrap();
    let targets = folder.path().join("targets.http");
    let (get, post) = (url(&lab, "/fast"), url(&lab, "/bytes/5"));
    let text = format!("GET {get}\n\nPOST {post}\n@{}\n", body.display());
    std::fs::write(&targets, text).unwrap();
    let flags = "-n 50 -c 4 --think 1ms --local 2 --agents-wait 60s -o json";
    let line = format!("run {} {flags}", targets.display());
    let ran = ran(&words(&line)).done();
    assert_eq!((ran.json().count("requests.ok"), lab.stats().requests), (50, 50));
    let stats = lab.stats();
    assert_eq!((stats.routes["/fast"], stats.routes["/bytes"]), (25, 25));
    let said = ran.stderr.contains("2 agents with") && ran.stderr.contains("local-1, local-2");
    assert!(said, "{ran:?}");
    // So do the definitions of gRPC, by which replies are checked.
    let say = format!("grpc://{}/gake.lab.v1.Echo/Say", lab.addr());
    for (text, ok) in [("hello", 6), ("bye", 0)] {
        let check = format!("json:text={text}");
        let line = ["run", &say, "--data", r#"{"text":"hello"}"#, "--expect-body", &check];
        let ran = crate::support::ran(&[&line[..], &words("-n 6 -c 2 --local 2 -o json")].concat());
        let counts = ["requests.ok", "requests.failed"].map(|name| ran.json().count(name));
        assert_eq!(counts, [ok, 6 - ok], "{ran:?}");
    }
    // So do recordings, certificates and keys, which agents have in memory.
    let secure = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let own = rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
    let line = "::1 - - [22/Nov/2026:01:02:03 +0000] \"GET /fast HTTP/1.1\" 200 1\n";
    for (name, text) in [
        ("ca.pem", secure.certificate().unwrap().pem.clone()),
        ("own.pem", own.cert.pem()),
        ("own.key", own.signing_key.serialize_pem()),
        ("access.log", line.repeat(60)),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let here = folder.path().display();
    let line = format!(
        "run {here}/access.log --target https://{} --cacert {here}/ca.pem --cert {here}/own.pem \
         --key {here}/own.key --local 2 --agents-wait 60s -o json",
        secure.addr()
    );
    let replayed = crate::support::ran(&words(&line)).done().json();
    assert_eq!((replayed.count("requests.ok"), secure.stats().requests), (60, 60));
}

#[test]
fn a_killed_agent_is_lost_and_its_missing_arrivals_are_counted() {
    let (nats, lab) = (Nats::start(), lab());
    let mut two = agents(&nats, &["dies", "lives"], HERE);
    let url = url(&lab, "/fast");
    let run = start(&mut run_of(&nats, &url, "-r 200 -d 2s --agents 2 --on-loss continue"));
    // Some instant of the run: whichever it is, the sum is the same.
    let after = u64::from(std::process::id()) % 100;
    eventually("some requests are there", || lab.stats().requests > after);
    let dead = two.remove(0);
    dead.signal(Signal::KILL);
    let ran = run.wait();
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.count("requests.due"), 400, "due = sent + dropped");
    assert!(json.count("requests.dropped") > 0, "{}", json.0);
    assert!(json.count("requests.sent") >= 200, "the other sent all of its own");
    assert!(lab.stats().requests >= json.written(), "it may have sent more than it reported");
    let events = json.at("events").to_string();
    assert!(events.contains("agent dies was lost after"), "{events}");
    assert!(json.at("verdict").to_string().contains("lost agents"), "{}", json.0);
    let findings = json.at("verdict.findings").to_string();
    assert!(!findings.contains("were dropped"), "no connection was busy: {findings}");
    // Not before: the run would have taken it in place of one of the two.
    let third = agents(&nats, &["quits"], HERE);
    // Other agents take over a leaving agent's requests from the next second on.
    let seen = lab.stats().requests;
    let run = start(&mut run_of(&nats, &url, "-r 150 -d 5s --agents 2"));
    eventually("some requests are there", || lab.stats().requests > seen + after);
    end(third);
    let ran = run.wait();
    let json = ran.json();
    assert_eq!(json.count("requests.due"), 750, "due = sent + dropped");
    assert!(json.count("requests.dropped") > 0, "{}", json.0);
    let events = json.at("events").to_string();
    assert!(events.contains("others send the arrivals of agent quits"), "{events}");
    let agents = json.at("agents").as_array().unwrap();
    assert_eq!(agents.len(), 2, "{}", json.0);
    let (lives, quits) = (&agents[0], &agents[1]);
    assert!(lives["sent"].as_u64().unwrap() > 375, "it sent more than its own half: {lives}");
    assert!(lives["lost_s"].is_null() && quits["lost_s"].as_f64().unwrap() < 5.0, "{quits}");
    // The loss is reported when it happens, before the report at the end.
    let [lost, shown] = ["warning: agent quits was lost after", "agent quits: lost after"]
        .map(|said| ran.stderr.find(said).unwrap_or_else(|| panic!("{said}: {ran:?}")));
    assert!(lost < shown, "{ran:?}");
    assert!(lab.stats().requests - seen >= json.written(), "what it reported, and maybe more");
    // Another user may end a run by its id, which the list shows.
    let seen = lab.stats().requests;
    let run = start(&mut run_of(&nats, &url, "-r 100 -d 600s --agents 1"));
    eventually("the run continues", || lab.stats().requests > seen);
    let fleet =
        |args: &str| start(&mut with(&nats, TOKEN, &words(&format!("fleet {args}")))).wait();
    let id = id_of_run(&nats);
    assert_eq!(fleet(&format!("stop {id}")).code, Some(0));
    let stopped = run.wait();
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    let json = stopped.json();
    assert_eq!(json.written(), lab.stats().requests - seen, "it drained");
    fleet("stop 0123abc").refused(1, "there is no run");
    eventually("the log tells of it", || {
        let logs = fleet("logs lives").stdout;
        logs.contains("taken over from a lost agent") && logs.contains("lives  done")
    });
    // An agent that gets a signal reports it, and the run ends with it if `--on-loss` says so.
    let seen = lab.stats().requests;
    let run = start(&mut run_of(&nats, &url, "-r 100 -d 60s --agents 1 --on-loss abort"));
    eventually("the run continues", || lab.stats().requests > seen);
    end(two);
    let ran = run.wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let json = ran.json();
    assert!(json.number("elapsed_s") < 60.0, "{}", json.0);
    assert!(json.at("events").to_string().contains("the agent was stopped"), "{}", json.0);
    dead.wait();
}

#[test]
fn what_must_not_be_is_refused_in_a_sentence() {
    let (nats, lab) = (Nats::start(), lab());
    let url = url(&lab, "/fast");
    let flags = ["--allow", "127.0.0.1", "--max-rate", "50", "--tags", "zone=a"];
    let bounded = agents(&nats, &["bounded"], &flags);
    let elsewhere = agents(&nats, &["elsewhere"], &["--allow", "10.0.0.0/8", "--tags", "zone=b"]);
    let (stop, until) = channel();
    let (events, shown) = channel();
    let old = Agent {
        name: "old".to_owned(),
        host: String::new(),
        tags: [("zone".to_owned(), "c".to_owned())].into(),
        cores: None,
        weight: AgentWeight::Fixed(1),
        sources: Vec::new(),
        recordings: None,
        scripts: false,
        limits: AgentLimits::default(),
        log: None,
        redactor: Redactor::off(),
        nats: NatsSettings::new(&nats.url),
        token: FleetToken::new(TOKEN).unwrap(),
        version: "0.0.1".to_owned(),
    };
    let old = std::thread::spawn(move || old.serve(&until, |event| drop(events.send(event))));
    assert!(matches!(shown.recv().unwrap(), AgentEvent::Waiting(_)));
    // Both agents are there once a run finds them.
    let open = format!("run {url} -r 40 -d 100ms --agents 2 --agents-wait 60s");
    let found = start(&mut with(&nats, TOKEN, &words(&open))).wait();
    found.refused(1, "agent elsewhere refuses the run: it may not load 127.0.0.1");
    for (token, flags, code, why) in [
        ("another token, as long", "-r 40 --agents 1", 1, "agent old has another token"),
        (TOKEN, "-r 40 --agents 3", 1, "agent old is gake 0.0.1, and this is gake"),
        (TOKEN, "-r 40 --agents 2 --where zone=b", 1, "agent bounded does not have zone=b"),
        (TOKEN, "-r 40 --agents 1 --where zone=b", 1, "start it with --allow 127.0.0.1"),
        (
            TOKEN,
            "-r 60 --agents 1 --where zone=a",
            1,
            "60 requests a second exceed its limit of 50",
        ),
        (TOKEN, "-c 3 -n 9 --agents 1 --where zone=a", 1, "a closed loop has no rate"),
        (TOKEN, "-r 9 --agents 1 --max-redirs 1", 2, "a redirect may lead to a target"),
        (TOKEN, "-r 9 --agents 1 -x http://127.0.0.1:1", 2, "the targets behind a proxy"),
        ("short", "-r 9 --agents 1", 2, "is shorter than 16 bytes"),
        (TOKEN, "-r 9 --nats nats://127.0.0.1:1 --agents 1", 1, "NATS at nats://127.0.0.1:1"),
        (TOKEN, "-r 9 --nats nats://127.0.0.1:1", 2, "--agents N"),
    ] {
        let line = format!("run {url} -d 1s {flags}");
        let line = line.replace(" -d 1s -c", " -c");
        let mut args = words(&line);
        if flags.contains("--agents") {
            args.extend(["--agents-wait", "1500ms"]);
        }
        start(&mut with(&nats, token, &args)).wait().refused(code, why);
    }
    assert_eq!(lab.stats().requests, 0, "nothing was sent");
    eventually("all three answer in one round", || {
        let listed = start(&mut with(&nats, TOKEN, &["fleet", "ls"])).wait();
        assert_eq!(listed.code, Some(0), "{listed:?}");
        let lines: Vec<_> = listed.stdout.lines().map(|line| words(line)[..2].to_vec()).collect();
        lines == [["bounded", "free"], ["elsewhere", "free"], ["old", "free"]]
    });
    drop(stop);
    old.join().unwrap().unwrap();
    end(bounded);
    end(elsewhere);
}
