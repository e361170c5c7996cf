//! The exit code says what the verdict says.

use crate::support::*;

#[test]
fn objectives_decide_between_0_and_99() {
    let lab = lab();
    let fast = url(&lab, "/fast");
    let failing = url(&lab, "/status/503");
    for (url, slo, code) in [
        (&fast, "p99<30s", 0),
        (&fast, "errors<0.1%", 0),
        (&fast, "errors<=0", 0),
        (&fast, "sent>=100", 0),
        (&fast, "p50<1ns", 99),
        (&fast, "rate>=1000000/s", 99),
        (&failing, "errors<50%", 99),
        (&failing, "goodput>1/s", 99),
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
fn failures_alone_are_a_result_and_not_an_error() {
    let lab = lab();
    let url = url(&lab, "/status/500");
    let ran = ran(&["run", &url, "-n", "50", "-c", "5", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.count("requests.failed"), 50);
    assert!(json.findings().contains(&"server_errors"), "{:?}", json.findings());
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
    ran(&["man", "nothing"]).refused(2, "nothing");
}
