//! An agent in a network of its own, whose only way to NATS is cut during the run.

use std::process::Command;
use std::time::Duration;

use super::fleet::{TOKEN, scattered, seeds};
use crate::support::*;

/// Two networks with a link between them: NATS, a coordinator and the agent `near` in one, the agent
/// `far` in the other, and a lab in each at the same address. `$4` seconds into the run the link is
/// down for `$3`. `$1` is gake, `$2` a folder.
const SCRIPT: &str = r#"
set -e
started=
trap 'kill $started 2> /dev/null || true' EXIT
gake=$1; folder=$2; url=http://127.0.0.1:8099
ip link set lo up
unshare --net sleep 100 & net=$!; started="$started $!"
until [ "$(readlink /proc/$net/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
ip link add v0 type veth peer name v1
ip link set v1 netns $net
ip addr add 10.9.0.1/24 dev v0
ip link set v0 up
there="nsenter --target $net --net"
$there ip link set lo up
$there ip addr add 10.9.0.2/24 dev v1
$there ip link set v1 up
nats-server -a 10.9.0.1 -p 4222 -js -sd "$folder/store" 2> /dev/null & nats=$!; started="$started $!"
$gake serve --listen 127.0.0.1:8099 > "$folder/near" 2> /dev/null & lab_near=$!; started="$started $!"
$there $gake serve --listen 127.0.0.1:8099 > "$folder/far" 2> /dev/null & lab_far=$!; started="$started $!"
until ss -ltn | grep -q :4222; do kill -0 $nats; sleep 0.05; done
until grep -q http "$folder/near" && grep -q http "$folder/far"; do kill -0 $lab_near $lab_far; sleep 0.05; done
export GAKE_NATS=nats://10.9.0.1:4222
flags="--quiet --allow 127.0.0.1 --cores 1"
$gake agent --name near $flags & near=$!; started="$started $!"
$there $gake agent --name far $flags & far=$!; started="$started $!"
$gake run $url/fast -r 100 -d 5s --agents 2 --agents-wait 60s -o json --drain 20s \
    > "$folder/run" 2> "$folder/said" & run=$!; started="$started $!"
until ss -tn state established "( dport = :8099 )" | grep -q 8099; do kill -0 $run; sleep 0.02; done
sleep $4
ip link set v0 down
( sleep $3; ip link set v0 up ) & link=$!; started="$started $!"
code=0
wait $run || code=$?
kill $near $far
kill $link 2> /dev/null || true
wait $near $far || true
kill $lab_near $lab_far
wait $lab_near $lab_far || true
kill $nats $net
exit $code
"#;

/// Requests of the run: 250 of each agent.
const REQUESTS: u64 = 500;

/// The exit code, the run, and what both labs counted. The link is cut `at` into the run.
fn cut_for(seconds: u32, at: Duration) -> (Option<i32>, Json, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-c", SCRIPT, "sh"]);
    command
        .arg(env!("CARGO_BIN_EXE_gake"))
        .arg(folder.path())
        .args([seconds.to_string(), at.as_secs_f64().to_string()]);
    let ran = start(command.env("GAKE_FLEET_TOKEN", TOKEN)).wait();
    assert!(
        !ran.stderr.contains("unshare: "),
        "this test needs to make a network namespace (unshare --map-root-user --net): {ran:?}"
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let json = serde_json::from_str(&read("run"));
    let json = json.unwrap_or_else(|error| panic!("{error}: {ran:?} {}", read("said")));
    let counted = |name| number_after(&read(name), "requests");
    (ran.code, Json(json), counted("near") + counted("far"))
}

/// It delivers its records once the link is back, before it is given up.
fn cut_and_joined(at: Duration) {
    let (code, json, seen) = cut_for(1, at);
    let what = format!("cut at {at:?}: {code:?} {} {}", json.0["requests"], json.0["events"]);
    assert_eq!(json.count("requests.due"), REQUESTS, "{what}");
    if json.at("events").to_string().contains("far was lost after") {
        assert!(json.written() <= seen, "{seen} {what}");
    } else {
        assert_eq!((json.written(), json.count("requests.dropped")), (seen, 0), "{what}");
    }
}

/// The agent is given up: its missing requests are reported, and what it reported counts.
fn cut_for_good(at: Duration) {
    let (code, json, seen) = cut_for(30, at);
    let what = format!("cut at {at:?}: {} {}", json.0["requests"], json.0["events"]);
    assert_eq!(code, Some(3), "{what}");
    assert_eq!(json.count("requests.due"), REQUESTS, "due = sent + dropped, {what}");
    assert!(json.at("events").to_string().contains("agent far was lost after"), "{what}");
    let sent = json.count("requests.sent");
    assert!((REQUESTS / 2..REQUESTS).contains(&sent), "near sent all of its own: {what}");
    assert!(json.count("requests.dropped") > 0, "{what}");
    // It continued without a coordinator: the labs may have seen more than was reported.
    assert!(json.written() <= seen, "{seen} {what}");
}

#[test]
fn an_agent_that_is_cut_off_at_any_instant_loses_no_count() {
    for seed in seeds() {
        // In the first three of five seconds: what it has not reported by then is missed.
        let at = |more: u64| Duration::from_millis(scattered(seed + more) % 3_000);
        std::thread::scope(|scope| {
            scope.spawn(|| cut_and_joined(at(0)));
            scope.spawn(|| cut_for_good(at(1)));
        });
    }
}
