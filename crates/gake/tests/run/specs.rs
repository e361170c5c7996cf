//! Specs in files, from the command line to the server's own counts.

use std::fs;

use gake_core::Load;
use gake_core::spec::file::SpecFile;
use gake_report::read_run;

use crate::support::*;

/// A ramp of users, an open loop and iterations per user, which start at different times.
fn three(base: &str) -> String {
    format!(
        "threads = 2\n\
         [[scenario]]\nname = \"ramp\"\nurl = \"{base}/fast\"\nusers = \"1..6@600ms,6..0@600ms\"\n\
         think = \"5ms\"\nheaders = [\"X-Api-Key: hunter2hunter2\"]\n\
         [[scenario]]\nname = \"open\"\nurl = \"{base}/echo\"\nrate = 200\nduration = \"500ms\"\n\
         start = \"300ms\"\n\
         [[scenario]]\nname = \"each\"\nurl = \"{base}/bytes/10\"\nusers = 7\n\
         iterations_per_user = 13\nstart = \"450ms\"\n"
    )
}

#[test]
fn the_counts_of_three_scenarios_are_those_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, hlog) = (path("checkout.toml"), path("run.hlog"));
    // As the file of a flag, and as the target.
    for target in [&["--spec", &file][..], &[&file]] {
        let lab = lab();
        fs::write(&file, three(&url(&lab, ""))).unwrap();
        let json = run(&[target, &["--out", &hlog]].concat());
        let stats = lab.shutdown();
        let scenarios = json.at("scenarios").as_array().unwrap();
        let sent = |name: &str| {
            let one = scenarios.iter().find(|one| one["name"] == name).unwrap();
            let [sent, ok] = ["sent", "ok"].map(|count| one["requests"][count].as_u64().unwrap());
            assert_eq!(sent, ok, "{one}");
            sent
        };
        let [ramp, open, each] = ["ramp", "open", "each"].map(sent);
        assert_eq!((open, each), (100, 7 * 13));
        assert!(ramp > 20, "{ramp}");
        let routes = ["/fast", "/echo", "/bytes"].map(|route| stats.routes[route]);
        assert_eq!(routes, [ramp, open, each]);
        assert_eq!(json.count("requests.sent"), routes.iter().sum::<u64>());
    }
    // The run file has the spec, without the secret in it.
    let (kept, warnings) = read_run(hlog.as_ref()).unwrap();
    assert_eq!(warnings, []);
    let [text] = &kept.origin.specs[..] else { panic!("{:?}", kept.origin) };
    assert!(text.contains("X-Api-Key") && !text.contains("hunter2"), "{text}");
    let spec = SpecFile::read("kept.json", text.as_bytes()).unwrap().spec().unwrap();
    let names: Vec<_> = spec.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["ramp", "open", "each"]);
}

#[test]
fn an_objective_selects_scenarios_by_their_tags() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("teams.toml").to_str().unwrap().to_owned();
    let lab = lab();
    let teams = |duration: &str| {
        let one = |name: &str, team: &str, route: &str| {
            format!(
                "[[scenario]]\nname = \"{name}\"\nurl = \"{}\"\nrate = 50\n\
                 duration = \"{duration}\"\ntags = {{ team = \"{team}\" }}\n",
                url(&lab, route)
            )
        };
        let all = [
            one("browse", "web", "/fast"),
            one("search", "web", "/echo"),
            one("pay", "payments", "/status/500"),
        ];
        fs::write(&file, all.concat()).unwrap();
    };

    teams("400ms");
    let web = ["--slo", "errors{team:web}<1%", "--slo", "sent{team:web}<41"];
    let ran = ran(&[&["run", "--spec", &file, "-o", "json", "--abort"][..], &web].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let objectives = ran.json();
    let [_, sent] = &objectives.at("objectives").as_array().unwrap()[..] else { panic!("{ran:?}") };
    assert_eq!(sent["value"], 40.0, "{sent}");

    teams("90s");
    let run = ["run", "--spec", &file, "-o", "json", "--abort"];
    let pay = ["--slo", "errors{team:payments}<1%"];
    let ran = start(&mut gake(&[&run[..], &pay].concat())).wait_for(PATIENCE / 2);
    assert_eq!(ran.code, Some(99), "{ran:?}");
    assert_eq!(ran.json().text("ended.by"), "aborted");

    let unknown = [&run[..], &["--slo", "errors{team:ops}<1%"]].concat();
    let ran = start(&mut gake(&unknown)).wait_for(PATIENCE / 2);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let why = "no scenario has the tags {team:ops}; there are {scenario:browse,team:web}, ";
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[test]
fn a_target_that_is_no_spec_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let lab = lab();
    // Targets in JSON, as vegeta has them.
    let targets = path("targets.json");
    fs::write(&targets, format!("{{\"method\":\"GET\",\"url\":\"{}\"}}\n", url(&lab, "/fast")))
        .unwrap();
    assert_eq!(run(&[&targets, "-n", "5", "-c", "1"]).count("requests.ok"), 5);
    assert_eq!(lab.shutdown().requests, 5);
    let broken = path("broken.toml");
    fs::write(&broken, "[[scenario]]\nulr = \"http://127.0.0.1:1/\"\n").unwrap();
    ran(&["run", &broken]).refused(2, "ulr");
}

#[test]
fn users_of_a_ramp_come_one_by_one() {
    let lab = lab();
    let target = url(&lab, "/delay/10ms");
    let json = run(&[&target, "--users", "1..5@1s"]);
    let stats = lab.shutdown();
    assert_eq!(json.count("requests.ok"), stats.requests, "{}", json.0);
    assert_eq!(json.count("requests.sent"), json.count("requests.ok"));
    // One connection for each user, and no more than five users.
    let connections = (json.count("connections.opened"), stats.connections.opened);
    assert_eq!(connections.0, connections.1);
    assert!((2..=5).contains(&connections.0), "{connections:?}");
    assert!(stats.connections.peak <= 5);
    // 3 users in the mean, for a second, with 10 ms or more for each request.
    let sent = json.count("requests.sent");
    assert!((5..=305).contains(&sent), "{sent}");
}

#[test]
fn the_bound_on_series_is_a_flag() {
    let printed = ran(&["run", "http://h/", "--max-series", "7", "--print-spec"]).done();
    assert!(printed.stdout.contains("max_series = 7\n"), "{}", printed.stdout);
    ran(&["run", "http://h/", "--max-series", "2000000"]).refused(2, "--max-series");
    ran(&["run", "http://h/", "--threads", "1000000000"]).refused(2, "--threads: at most 1024");
}

#[test]
fn the_spec_that_a_scripts_options_become_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.js");
    fs::write(
        &script,
        "export const options = { scenarios: { \
         a: { executor: 'constant-arrival-rate', rate: 20, duration: '3s', preAllocatedVUs: 4 }, \
         b: { executor: 'per-vu-iterations', vus: 3, iterations: 5, startTime: '1s' } } };\n\
         export default function () { throw new Error('it runs'); }\n",
    )
    .unwrap();
    let script = script.to_str().unwrap();
    let flags = ["--print-spec=json", "--max-series", "9"];
    let printed = ran(&[&["run", script][..], &flags].concat()).done();
    assert_eq!(printed.stderr, "");
    let spec = SpecFile::read("s.json", printed.stdout.as_bytes()).unwrap().spec().unwrap();
    assert_eq!(spec.max_series, 9);
    let [a, b] = &spec.scenarios[..] else { panic!("{spec:?}") };
    assert_eq!((a.name.as_str(), b.name.as_str()), ("a", "b"));
    assert_eq!(b.load, Load::PerUser { users: 3, iterations: 5 });
    assert_eq!(b.start.as_secs(), 1);
    let toml = ran(&["run", script, "--print-spec"]).done().stdout;
    assert_eq!(
        SpecFile::read("s.toml", toml.as_bytes()).unwrap().spec().unwrap().scenarios.len(),
        2
    );
}
