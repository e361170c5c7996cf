//! The exit code follows the verdict.

use gake_lab::{Lab, LabConfig};

use crate::support::*;

#[test]
fn objectives_decide_between_0_and_99() {
    let lab = lab();
    let fast = url(&lab, "/fast");
    let targets = tempfile::NamedTempFile::new().unwrap();
    let text = format!("GET {fast}\n\nGET {}\n", url(&lab, "/status/503"));
    std::fs::write(targets.path(), text).unwrap();
    let failing = targets.path().to_str().unwrap().to_owned();
    for (url, slo, code) in [
        (&fast, "p99<30s", 0),
        (&fast, "errors<0.1%", 0),
        (&fast, "errors<=0", 0),
        (&fast, "sent>=100", 0),
        (&fast, "p50<1ns", 99),
        (&fast, "rate>=1000000/s", 99),
        (&failing, "errors<50%", 99),
        (&failing, "goodput>1000000/s", 99),
    ] {
        // A closed loop with a thought between requests is valid on any machine.
        let ran = ran(&[
            "run", url, "-n", "100", "-c", "10", "--think", "1ms", "-o", "json", "--slo", slo,
        ]);
        assert_eq!(ran.code, Some(code), "{slo}: {ran:?}");
        let json = ran.json();
        let objective = &json.at("objectives")[0];
        assert_eq!(objective["text"], slo);
        assert_eq!(objective["met"], code == 0, "{objective}");
    }
}

#[test]
fn objectives_select_a_label_by_its_tag_and_unknown_ones_are_refused_before_the_run() {
    let lab = lab();
    let targets = tempfile::NamedTempFile::new().unwrap();
    let (fast, failing) = (url(&lab, "/fast"), url(&lab, "/status/503"));
    let text = format!("# gake: label=a\nGET {fast}\n\n# gake: label=\"b, c\"\nGET {failing}\n");
    std::fs::write(targets.path(), text).unwrap();
    let path = targets.path().to_str().unwrap();
    for (slo, code) in [
        ("response{name:a}:p(99)<30s", 0),
        ("http_req_duration{name:a}:p95<30s", 0),
        ("errors{name:a}<1%", 0),
        ("errors{name:\"b, c\"}<1%", 99),
        ("a:med<1ns", 99),
        ("d:p99<1s", 2),
        ("checks>99%", 2),
        ("response{name:d}:p99<1s", 2),
    ] {
        let ran = ran(&["run", path, "-n", "20", "-c", "2", "--think", "1ms", "-q", "--slo", slo]);
        assert_eq!(ran.code, Some(code), "{slo}: {ran:?}");
        if code == 2 {
            assert!(ran.stdout.is_empty() && ran.stderr.contains("there is no "), "{ran:?}");
        }
    }
}

#[test]
fn a_run_in_which_nothing_succeeded_says_so_first_and_exits_1() {
    let lab = lab();
    let (_held, address) = refusing();
    let refused = format!("http://{address}/");
    let tls = format!("https://{}/fast", lab.addr());
    for (url, flags, cause, advice) in [
        (url(&lab, "/status/500"), "", "status 500", "server's log"),
        (url(&lab, "/status/404"), "--slo p99<30s", "status 404", "check the path"),
        (url(&lab, "/status/503"), "--slo errors<1%", "status 503", "overloaded or not ready"),
        (refused.clone(), "", "connection refused", "is the server running"),
        (url(&lab, "/hang"), "--timeout 200ms", "no response in time", "no response in time"),
        (tls, "-k", "TLS: the peer does not speak TLS", "use http://"),
        (url(&lab, "/fast"), "-x {refused}", "proxy: it refused", "--proxy"),
    ] {
        let flags = flags.replace("{refused}", &refused);
        let line = format!("run {url} -n 5 -c 5 --think 1ms {flags}");
        let text = ran(&words(&line));
        assert_eq!(text.code, Some(1), "{text:?}");
        let first = text.stdout.lines().next().unwrap();
        assert!(first.starts_with(&format!("✘ nothing succeeded: {cause}")), "{text:?}");
        let page = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(advice), "{text:?}");
        assert!(!text.stdout.contains("measurement valid"), "{text:?}");
        for noise in ["unexplained", "run_delay", "generator_cpu"] {
            assert!(!text.stdout.contains(noise), "{noise}: {text:?}");
        }
        assert!(text.stderr.contains(&format!("error: nothing succeeded: {cause}")), "{text:?}");
    }
}

#[test]
fn a_wrong_port_ends_the_run_early() {
    let (_held, address) = refusing();
    let ran = ran(&words(&format!("run http://{address}/ -r 50 -d 30m --slo p99<1s")));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("stopped at") && ran.stdout.contains("so far"), "{ran:?}");
    assert!(ran.stdout.contains("✘ p99<1s   no request succeeded"), "{ran:?}");
}

#[test]
fn every_format_and_a_report_of_the_file_say_that_nothing_succeeded() {
    let lab = lab();
    let url = url(&lab, "/status/500");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.hlog");
    let path = path.to_str().unwrap();
    let first = ran(&["run", &url, "-n", "50", "-c", "5", "-o", "json", "--out", path]);
    assert_eq!(first.code, Some(1), "{first:?}");
    let json = first.json();
    assert_eq!(json.count("requests.failed"), 50);
    assert_eq!(json.text("verdict.nothing_ok.cause"), "status 500");
    assert!(json.findings().contains(&"server_errors"), "{:?}", json.findings());
    for (format, part) in [
        ("text", "✘ nothing succeeded: status 500"),
        ("markdown", "### ❌ nothing succeeded: status 500"),
        ("junit", "<error type=\"nothing_ok\" message=\"nothing succeeded: status 500\">"),
    ] {
        let again = ran(&["report", path, "-o", format]);
        assert_eq!(again.code, Some(1), "{again:?}");
        assert!(again.stdout.contains(part), "{again:?}");
    }
}

#[test]
fn a_run_that_dropped_most_is_invalid() {
    let lab = lab();
    let url = url(&lab, "/delay/100ms");
    let line = format!("run {url} -r 500 -d 600ms -c 1 --overflow drop -o json --slo p99<1ns");
    let ran = ran(&words(&line));
    assert_eq!(ran.code, Some(3), "an invalid run wins over its objectives: {ran:?}");
    let json = ran.json();
    assert_eq!(json.text("verdict.validity"), "invalid");
    assert!(json.count("requests.dropped") > 200);
}

#[test]
fn an_overloaded_target_is_a_result() {
    let service = Some("const:10ms".parse().unwrap());
    let lab = Lab::start(LabConfig { threads: Some(1), service, ..LabConfig::default() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.hlog").to_str().unwrap().to_owned();
    let line = format!("run {} -r 300 -d 4s --drain 1s --slo p99<50ms", url(&lab, "/fast"));
    let text = ran(&words(&format!("{line} --out {file}")));
    // 3 when the machine was too busy for the figures to be believed.
    assert!(matches!(text.code, Some(3 | 99)), "{text:?}");
    assert!(text.stdout.contains("target overloaded"), "{text:?}");
    assert!(text.stdout.contains("the queue grew by"), "{text:?}");
    let json = ran(&["report", &file, "-o", "json"]).json();
    let completed = json.at("verdict.overload.completed_per_s").as_f64().unwrap();
    assert!((50.0..=105.0).contains(&completed), "one at a time of 10 ms each: {completed}");
    let reasons = json.at("verdict.reasons").to_string();
    assert!(
        !reasons.contains("steady state") && !reasons.contains("asked for were sent"),
        "{reasons}"
    );
}

#[test]
fn help_and_version_are_results() {
    for line in ["--help", "run --help", "serve --help", "report --help", "--version", "help run"] {
        let ran = ran(&words(line));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("gake") && ran.stderr.is_empty(), "{ran:?}");
    }
}

#[test]
fn completions_and_manual_pages_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = ran(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("gake") && ran.stdout.contains("connect-timeout"), "{shell}");
    }
    for line in ["man", "man run", "man serve"] {
        let ran = ran(&words(line));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(".TH"), "{ran:?}");
    }
}

#[test]
fn the_schema_of_specs_is_printed() {
    assert!(ran(&["schema"]).stdout.starts_with("spec "));
    let schema = ran(&["schema", "spec"]);
    assert_eq!(schema.code, Some(0), "{schema:?}");
    assert!(schema.stdout.contains("\"max_in_flight\""), "{schema:?}");
}
