//! Command lines that are refused, each with its message.

use gake_session::{Console, Exit};

use crate::{cli, cmd};

/// The message of a command line that is a usage error.
fn refusal(line: &str) -> String {
    let words = ["gake"].into_iter().chain(line.split_whitespace()).map(Into::into);
    match cli::parse(words).and_then(|cli| cmd::run(cli.command, &Console::new())) {
        Err(failure) if failure.exit() == Exit::Usage => failure.to_string(),
        other => panic!("{line}: {other:?}"),
    }
}

fn check(refused: &[(&str, &str)]) {
    for (line, part) in refused {
        let message = refusal(line);
        assert!(message.contains(part), "{line}: {part:?} is not in {message:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    check(&[
        ("run", "TARGET"),
        ("run ftp://127.0.0.1/", "speaks http, https, ws"),
        ("run http://", "http://"),
        ("run http://127.0.0.1:99999/", "99999"),
        ("run demo -r fast", "is not a rate"),
        ("run demo -r 0", "is not a rate"),
        ("run demo -r -5", "-5"),
        ("run demo -n 0", "at least 1"),
        ("run demo -c 0", "at least 1"),
        ("run demo -d 0s", "longer than 0"),
        ("run demo -d soon", "is not a duration"),
        ("run demo --stages 10@", "is not a stage"),
        ("run demo --stages 0@5s", "send nothing"),
        ("run demo --stages 10@1s -r 5", "cannot be used with"),
        ("run demo --stages 10@1s -d 5s", "cannot be used with"),
        ("run demo --think 1s -r 5", "--think"),
        ("run demo --overflow drop", "--overflow needs a --rate"),
        ("run demo --arrivals poisson", "--arrivals needs a --rate"),
        ("run demo --spin", "--spin needs a --rate"),
        ("run demo --max-in-flight 5", "--max-in-flight needs a --rate"),
        ("run demo --abort", "--slo"),
        ("run demo --once -r 5", "--once belongs to a closed loop"),
        ("run demo --once -n 5", "cannot be used with"),
        ("run demo --once --no-keepalive", "cannot be used with"),
        ("run demo --once --users 1..5@1s", "--once contradicts stages of users"),
        ("run demo --watch redis://h", "is not a valid source"),
        ("run demo --watch mysql:h", "mysql://USER:PASSWORD@HOST"),
        ("run demo --watch mysql://me:pw@h:0", "its port is not a number"),
        ("find demo --watch postgres://me:pw@h?sslmode=sometimes", "verify-full"),
        ("run demo --slo p99<soon", "p99<soon"),
        ("run demo --expect 2yy", "2yy"),
        ("run demo --header broken", "Name: value"),
        ("run demo -q -v", "cannot be used with"),
        ("run demo -4 -6", "cannot be used with"),
        ("run demo --interface nothing0", "nothing0"),
        ("run demo --resolve nonsense", "nonsense"),
        ("run demo --connect-to nonsense", "nonsense"),
        ("run demo --out x --log x", "two outputs cannot be one file"),
        ("run demo --log x.txt", ".csv or .json"),
        ("rnu demo", "rnu"),
        ("report", "FILE"),
        ("man nothing", "nothing"),
        ("schema nothing", "nothing"),
        ("run demo --speed 2x", "not a recording"),
    ]);
}

#[test]
fn what_would_be_ignored_is_refused() {
    check(&[
        ("run http://127.0.0.1:1/ --cert nofile --key nofile -n 1", "--cert needs an https URL"),
        ("run http://127.0.0.1:1/ --cacert nofile -n 1", "--cacert needs an https URL"),
        ("run http://127.0.0.1:1/ --ech grease -n 1", "--ech needs an https URL"),
        ("run demo --seed 5 -n 1", "add --arrivals poisson"),
        ("run demo --seed 5 -r 10 -d 1s", "add --arrivals poisson"),
    ]);
}

#[test]
fn flags_of_other_tools_get_a_tip() {
    for (line, tip) in [
        ("run demo --proxy-header a:b", "--proxy-header does not exist here"),
        ("run demo --output x.json", "--output is -o here"),
        ("run demo -o x.json", "-o json=x.json"),
        ("run demo --out x.json", "-o json=x.json"),
        ("run demo -duration=5s", "two dashes here: --duration=5s"),
        ("run demo -rate=50 -connections=5", "two dashes here: --rate=50"),
        ("run demo -d {\"a\":1}", "a body is --data '{\"a\":1}'"),
        ("run demo -m POST", "-m is -X here"),
        ("run demo -b x", "-b is --data here"),
        ("run demo -q 100", "(-q is --quiet); a rate is -r 100"),
        ("run demo --objectiv x", "unexpected argument '--objectiv'"),
        ("run demo --warmpu 5s", "there is --warmup"),
        ("find demo -d 10s", "-d is --budget here"),
        ("find demo -r 100", "-r is --max-rate here"),
        ("rn demo", "there is a command 'gake run'"),
        ("dcotor", "there is a command 'gake doctor'"),
        ("attack -rate 5", "that is 'gake as vegeta attack' here"),
        ("k6 run script.js", "gake behaves as k6 with 'gake as k6'"),
        ("wrk -t2 http://127.0.0.1:1/", "gake behaves as wrk with 'gake as wrk'"),
        ("run demo --script pipeline.lua", "a k6 script runs by its name (gake run FILE.js)"),
        ("run demo --user", "a value is required"),
    ] {
        let message = refusal(line);
        assert!(message.contains(tip), "{line}: {message}");
        for noise in ["similar", "Usage:", "to pass"] {
            assert!(!message.contains(noise), "{line}: {message}");
        }
    }
    assert!(!refusal("serve --rps 5").contains("-r here"), "the command has no such flag");
    assert!(!refusal("run demo --watch mysql://root:hunter2@").contains("hunter2"));
}

#[test]
fn websockets_refuse_what_they_do_not_have() {
    check(&[
        ("run http://127.0.0.1:1/ --ws-expect x", "ws://"),
        ("run http://127.0.0.1:1/ --ws-message x", "ws://"),
        ("run ws://127.0.0.1:1/ --http2", "a WebSocket needs HTTP/1.1"),
        ("run ws://127.0.0.1:1/ -X PUT", "a WebSocket has no methods"),
        ("run ws://127.0.0.1:1/ --ws-expect (", "regular expression"),
        ("run ws://127.0.0.1:1/ --data b", "--data"),
        ("run ws://127.0.0.1:1/ --ws-send-only", "needs a message"),
        ("run ws://127.0.0.1:1/ --no-keepalive", "--no-keepalive"),
        ("run ws://127.0.0.1:1/ -H Upgrade:h2c", "Upgrade"),
    ]);
}

#[test]
fn tls_limits_that_leave_nothing_are_refused() {
    check(&[
        ("run https://127.0.0.1:1/ --tls-min 1.3 --tls-max 1.2", "--tls-min"),
        ("run https://127.0.0.1:1/ --ciphers TLS_NOPE -n 1", "TLS_AES_256_GCM_SHA384"),
        ("run https://127.0.0.1:1/ --tls-max 1.1 -n 1", "1.2"),
        ("run https://127.0.0.1:1/ --tls-early-data --tls-max 1.2 -n 1", "TLS 1.3"),
        ("run https://127.0.0.1:1/ --tls-early-data --http2 -n 1", "HTTP/1.1 or HTTP/3"),
    ]);
}

#[test]
fn sinks_annotations_traces_and_proxies_are_checked_before_the_run() {
    check(&[
        ("run http://127.0.0.1:1/ -n 1 --sink grafana=http://127.0.0.1:1", "--annotate"),
        ("run http://127.0.0.1:1/ -n 1 --annotate json=a.json", "--sink"),
        (
            "run http://127.0.0.1:1/ -n 1 --annotate grafana=127.0.0.1:1",
            "is not a URL such as http://127.0.0.1:3000",
        ),
        ("run http://127.0.0.1:1/ -n 1 --trace-sample 1%", "--trace-sample needs a destination"),
        ("run http://127.0.0.1:1/ -n 1 --trace-sample 2", "expected a share above 0"),
        (
            "run http://127.0.0.1:1/ -n 1 --trace-sample 1% --sink otlp=http://127.0.0.1:1/custom",
            "takes no traces",
        ),
        (
            "run http://127.0.0.1:1/ -x socks4://127.0.0.1:1",
            "--proxy: a proxy is reached over http://",
        ),
        (
            "run http://127.0.0.1:1/ -x http://127.0.0.1:1/path",
            "--proxy: a proxy is written http://HOST:PORT",
        ),
    ]);
}

#[cfg(feature = "experiments")]
#[test]
fn experiments_refuse_what_they_cannot_do() {
    check(&[
        ("experiment no-such", "no experiment is called \"no-such\""),
        ("experiment users-db --target http://h/ --db sqlite::memory:", "cannot be used with"),
        ("experiment leak --target http://h/", "runs on the lab only"),
        ("experiment pool -q --only nothing", "no step of pool"),
        ("experiment shadow --local 2", "shadow cannot run on agents: it measures its proxy"),
        (
            "experiment slow-client --target http://h/ --agents 2",
            "slow-client cannot run on agents",
        ),
        ("experiment pool --agents 2", "give --target URL, or --local N"),
        ("experiment leak --agents 2", "use --local N"),
        ("experiment leak --agents 2 --target http://h/", "runs on the lab only"),
        ("experiment pool --nats nats://h", "how many agents?"),
        ("experiment --agents 2", "need the name of an experiment"),
    ]);
}
