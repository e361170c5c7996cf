//! wrk and wrk2, beside the real wrk.

use std::process::Stdio;

use crate::common::*;

fn as_wrk(line: &str, url: &str) -> Ran {
    ran(&[vec!["as"], words(line), vec![url]].concat())
}

/// What the real wrk prints.
fn real_wrk(line: &str, url: &str) -> String {
    let mut command = command("wrk");
    command.args(words(line)).arg(url).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A text with every figure and its unit as `#`, so that two runs say the same.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        masked.push_str(&rest[..start]);
        let figure = &rest[start..];
        let end = figure.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(figure.len());
        let unit = ["us", "ms", "s", "m", "h", "k", "K", "M", "G"]
            .into_iter()
            .find(|unit| figure[end..].starts_with(unit))
            .map_or(0, str::len);
        masked.push('#');
        rest = &figure[end + unit..];
    }
    masked + rest
}

/// The masked lines, with each run of blanks inside as one.
fn layout(text: &str) -> Vec<String> {
    let squeeze = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<_> = line.split_whitespace().collect();
        format!("{}{}", &line[..indent], words.join(" "))
    };
    masked(text).lines().map(squeeze).collect()
}

#[test]
fn the_lines_are_wrks() {
    let lab = lab();
    for (line, route) in [
        ("-t2 -c10 -d1s", "/fast"),
        ("-t1 -c2 -d1 --latency", "/status/404"),
        ("-t1 -c1 -d2 --timeout 1s", "/delay/1300ms"),
    ] {
        let url = url(&lab, route);
        let ours = as_wrk(&format!("wrk {line}"), &url);
        assert_eq!((ours.code, ours.stderr.as_str()), (Some(0), ""), "{ours:?}");
        let theirs = real_wrk(line, &url);
        assert_eq!(layout(&ours.stdout), layout(&theirs), "{}\n{theirs}", ours.stdout);
        // Columns are as wide, whatever the figures.
        let widths = |text: &str| -> Vec<usize> {
            text.lines().filter(|line| line.contains('%')).map(str::len).collect()
        };
        assert_eq!(widths(&ours.stdout), widths(&theirs), "{}\n{theirs}", ours.stdout);
    }
}

#[test]
fn requests_are_those_of_the_server() {
    let lab = lab();
    let ran = as_wrk("wrk -t2 -c8 -d1s -H X-A:b", &url(&lab, "/fast"));
    let stats = lab.shutdown();
    let requests = number_before(&ran.stdout, " requests in ");
    // What is in flight when the time is over is cut: at most one a connection.
    assert!((requests..=requests + 8).contains(&stats.requests), "{stats:?} {ran:?}");
    assert!(requests > 100, "{ran:?}");
}

#[test]
fn slow_responses_are_time_outs_and_not_latencies() {
    let lab = lab();
    let ran = as_wrk("wrk -t1 -c2 -d3s --timeout 1s", &url(&lab, "/delay/1200ms"));
    assert!(ran.stdout.contains("    Latency     0.00us"), "{ran:?}");
    // Two connections, two responses each; a third would come after the end.
    assert!(ran.stdout.contains("  4 requests in 3."), "{ran:?}");
    assert!(ran.stdout.contains("connect 0, read 0, write 0, timeout 4\n"), "{ran:?}");
    let ran = as_wrk("wrk -t1 -c2 -d2s --timeout 1s", &url(&lab, "/hang"));
    assert!(ran.stdout.contains("  0 requests in 2."), "{ran:?}");
    assert!(ran.stdout.contains("connect 0, read 0, write 0, timeout 2\n"), "{ran:?}");
}

#[test]
fn wrk2_keeps_its_rate_and_counts_from_when_a_request_was_due() {
    let lab = lab();
    // One connection and 1.5 s per response: requests, due every 50 ms, wait.
    let ran = as_wrk("wrk2 -t1 -c1 -d3s -R 20 -L -U", &url(&lab, "/delay/1500ms"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let corrected = ran.stdout.split("Uncorrected Latency").next().unwrap();
    assert!(corrected.contains("(HdrHistogram - Recorded Latency)"), "{ran:?}");
    // Half the requests were due more than half the time before the end.
    assert!(median(corrected) > 1.45, "{ran:?}");
    let uncorrected = ran.stdout.split("Uncorrected Latency").nth(1).unwrap();
    assert!((1.49..2.5).contains(&median(uncorrected)), "{ran:?}");
    // The wait before sending does not count towards the time-out of 2 s.
    assert!(!ran.stdout.contains("Socket errors"), "{ran:?}");

    let ran = as_wrk("wrk2 -t2 -c10 -d2s -R 300 --latency", &url(&lab, "/fast"));
    let requests = number_before(&ran.stdout, " requests in ");
    assert!((590..=600).contains(&requests), "{ran:?}");
    for line in [
        "  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n",
        "\n#[Mean    = ",
        "\n#[Buckets =           27, SubBuckets     =         2048]\n------",
    ] {
        assert!(ran.stdout.contains(line), "{line:?} {ran:?}");
    }
}

/// The value at 50 %, in seconds.
fn median(text: &str) -> f64 {
    let value = text.split(" 50.000%").nth(1).unwrap().split_whitespace().next().unwrap();
    let digits = value.trim_end_matches(char::is_alphabetic);
    let scale = match &value[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        unit => panic!("{unit}"),
    };
    digits.parse::<f64>().unwrap() * scale
}

fn number_before(text: &str, what: &str) -> u64 {
    let before = text.split(what).next().unwrap();
    before.rsplit([' ', '\n']).next().unwrap().parse().unwrap()
}

/// A script with every hook: what it sends and counts is what the server got.
#[test]
fn a_script_shapes_requests_and_sees_responses() {
    const SCRIPT: &str = "\
        local threads = {}\n\
        function setup(thread) threads[#threads + 1] = thread; thread:set('id', #threads) end\n\
        function init(args) path = args[1]; sent, got, bad, lines = 0, 0, 0, '' end\n\
        function request()\n\
          sent = sent + 1\n\
          return wrk.format('POST', path, {['X-Id'] = id}, 'a' .. sent) .. wrk.format(nil, path)\n\
        end\n\
        function response(status, headers, body)\n\
          got = got + 1\n\
          if status ~= 200 or not headers['content-length'] then bad = bad + 1 end\n\
          if got == 20 and id == 1 then wrk.thread:stop() end\n\
        end\n\
        function done(summary, latency, requests)\n\
          for _, t in ipairs(threads) do\n\
            print('thread', t:get('id'), t:get('got'), t:get('bad'))\n\
          end\n\
          print('summary', summary.requests, summary.errors.read, latency.max >= latency.min)\n\
        end\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.lua");
    std::fs::write(&path, SCRIPT).unwrap();
    let lab = lab();
    let to = url(&lab, "/fast");
    let line = format!("wrk -t2 -c2 -d1s -s {}", path.display());
    let ran = ran(&[vec!["as"], words(&line), vec![&to, "--", "/fast"]].concat());
    let stats = lab.shutdown();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let figures = |what: &str| -> Vec<String> {
        let lines = ran.stdout.lines().filter(|line| line.starts_with(what));
        lines.map(|line| line[what.len() + 1..].to_owned()).collect()
    };
    let threads = figures("thread");
    assert_eq!(threads[0], "1\t20\t0", "it stops itself: {ran:?}");
    assert!(threads[1].starts_with("2\t") && threads[1].ends_with("\t0"), "{ran:?}");
    let requests = number_before(&ran.stdout, " requests in ");
    assert_eq!(figures("summary"), [format!("{requests}\t0\ttrue")], "{ran:?}");
    // Two responses at most were on their way at the end.
    assert!((requests..=requests + 2).contains(&stats.requests), "{stats:?} {ran:?}");
}

#[test]
fn a_script_that_fails_ends_the_run_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.lua");
    let lab = lab();
    for (text, said) in [
        ("x = = 1", "bad.lua:1: unexpected symbol near '='"),
        ("function response()\n  nothing()\nend", "bad.lua:2: attempt to call global 'nothing'"),
    ] {
        std::fs::write(&path, text).unwrap();
        let line = format!("wrk -t1 -c1 -d2s -s {}", path.display());
        let ran = as_wrk(&line, &url(&lab, "/fast"));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(said) && !ran.stderr.contains("traceback"), "{ran:?}");
    }
    as_wrk("wrk -t1 -c1 -s /none.lua", &url(&lab, "/fast")).refused(1, "cannot open /none.lua");
}

#[test]
fn what_cannot_be_honoured_is_named() {
    as_wrk("wrk -t1 -c1 -d1s", "http://127.0.0.1:1/").refused(1, "unable to connect");
    as_wrk("wrk", "http://127.0.0.1:1/").refused(1, "unable to connect to 127.0.0.1:1 Connection");
    for (line, said) in [
        ("wrk -c1 -t2", "number of connections must be >= threads"),
        ("wrk --pipeline 3", "--pipeline"),
        ("wrk -R 10", "gake as wrk2"),
        ("wrk2 -c 10", "Throughput MUST be specified"),
    ] {
        let ran = as_wrk(line, "http://127.0.0.1:1/");
        assert_eq!(ran.code, Some(1), "{line}: {ran:?}");
        assert!(ran.stderr.contains(said), "{line}: {ran:?}");
        assert!(ran.stdout.starts_with("Usage: wrk"), "{line}: {ran:?}");
    }
}

#[test]
fn the_native_result_stands_beside() {
    let lab = lab();
    let out = tempfile::NamedTempFile::new().unwrap();
    let path = out.path().to_str().unwrap();
    let line = format!("wrk -t1 -c2 -d1s --gake-format json --gake-out {path}");
    let ran = as_wrk(&line, &url(&lab, "/fast"));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let requests = number_before(&ran.stdout, " requests in ");
    assert_eq!(json["requests"]["ok"].as_u64(), Some(requests), "{ran:?}");
}
