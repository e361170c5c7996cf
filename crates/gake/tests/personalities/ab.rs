//! ab, beside the real ab.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::*;
use crate::layout::layout;

fn ours(line: &str, url: &str) -> Ran {
    ran(&[vec!["as", "ab"], words(line), vec![url]].concat())
}

fn theirs(line: &str, url: &str) -> Ran {
    start(command("ab").args(words(line)).arg(url)).wait()
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ab-{}-{name}", std::process::id()))
}

/// The layout without the banner's words, and without warnings, which depend on the values.
fn lines(text: &str) -> Vec<String> {
    let doubts = ["WARNING: ", "ERROR: ", "        These results", "       deviation apart"];
    let mut lines = layout(text);
    lines.retain(|line| !doubts.iter().any(|doubt| line.starts_with(doubt)));
    let banner = if lines[0] == "<p>" { 1..4 } else { 0..3 };
    lines[banner].iter_mut().for_each(String::clear);
    lines
}

#[test]
fn the_lines_are_abs() {
    let lab = lab();
    let body = file("body");
    std::fs::write(&body, "hello").unwrap();
    let post = format!("-n 30 -c 3 -T text/x -p {}", body.display());
    let put_html = format!("-w -n 200 -c 3 -k -u {}", body.display());
    for (line, route) in [
        ("-n 1000 -c 100", "/fast"),
        ("-q -k -n 300 -c 10 -H X-A:b -C a=b -A u:p", "/status/404"),
        ("-n 1", "/fast"),
        ("-i -n 20 -c 2", "/fast"),
        ("-S -d -l -n 20 -c 2", "/fast"),
        ("-n 100 -c 1", "/error?rate=0.5"),
        (&post, "/echo"),
        (&put_html, "/fast"),
        ("-w -x border=1 -n 20 -c 2", "/fast"),
    ] {
        let url = url(&lab, route);
        let (ours, theirs) = (ours(line, &url), theirs(line, &url));
        assert_eq!((ours.code, theirs.code), (Some(0), Some(0)), "{line}: {ours:?}");
        assert_eq!(lines(&ours.stdout), lines(&theirs.stdout), "{line}\n{}", ours.stdout);
        assert_eq!(layout(&ours.stderr), layout(&theirs.stderr), "{line}");
    }
    std::fs::remove_file(&body).unwrap();
}

#[test]
fn the_values_that_are_known_are_abs() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for line in ["-n 40 -c 4", "-k -n 40 -c 4"] {
        let (ours, theirs) = (ours(line, &url).stdout, theirs(line, &url).stdout);
        for name in [
            "Server Port:",
            "Document Length:",
            "Concurrency Level:",
            "Complete requests:",
            "Failed requests:",
            "Total transferred:",
            "HTML transferred:",
        ] {
            assert_eq!(number_after(&ours, name), number_after(&theirs, name), "{line} {name}");
        }
        if line.contains("-k") {
            let kept = |text: &str| number_after(text, "Keep-Alive requests:");
            assert_eq!((kept(&ours), kept(&theirs)), (40, 40));
        }
    }
}

/// The requests of ab or gake, and the line that names the target, without the port. `~` is a blank
/// within an argument.
fn sent(is_ours: bool, line: &str) -> (Vec<String>, String) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in server.incoming() {
            serve_requests(stream.unwrap(), |head, body| {
                let head = head.replace(&address.to_string(), "SERVER");
                let mut seen = seen.lock().unwrap();
                seen.push(head + &String::from_utf8(body).unwrap());
                "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
                    .to_owned()
            });
        }
    });
    let line = line.replace("SERVER", &address.to_string());
    let url = format!("http://{address}/a?b=c");
    let arguments: Vec<String> = words(&line).iter().map(|word| word.replace('~', " ")).collect();
    let mut command = if is_ours { gake(&["as", "ab"]) } else { command("ab") };
    let ran = start(command.args(arguments).arg(url)).wait();
    assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
    let target = ran.stdout.lines().find(|line| line.starts_with("Benchmarking")).unwrap();
    let target = target.replace(&address.to_string(), "SERVER");
    let requests = requests.lock().unwrap().clone();
    (requests, target)
}

#[test]
fn the_requests_are_abs() {
    let body = file("sent");
    std::fs::write(&body, "hello").unwrap();
    let path = body.display();
    for line in [
        "-k -n 2",
        "-k -n 2 -H Connection:~x",
        "-k -n 2 -C a=1 -C b=2 -A u:p -P x:y",
        "-k -n 2 -H Host:~h.test -H accept:~z",
        &format!("-k -n 2 -p {path} -T a/b"),
        &format!("-k -n 2 -p {path} -H Content-Type:~a/b"),
        &format!("-k -n 2 -u {path} -m PATCH"),
        "-k -n 2 -X SERVER",
    ] {
        assert_eq!(sent(true, line), sent(false, line), "{line}");
    }
    std::fs::remove_file(&body).unwrap();
}

#[test]
fn the_files_are_abs() {
    let lab = lab();
    let url = url(&lab, "/delay/5ms");
    for (name, run) in [("ours", ours as fn(&str, &str) -> Ran), ("theirs", theirs)] {
        let (samples, percentages) = (file(&format!("{name}.tsv")), file(&format!("{name}.csv")));
        let line = format!("-n 30 -c 3 -g {} -e {}", samples.display(), percentages.display());
        assert_eq!(run(&line, &url).code, Some(0));

        let text = std::fs::read_to_string(&samples).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows[0], ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]);
        assert_eq!(rows.len(), 31, "{text}");
        let mut before = 0;
        for row in &rows[1..] {
            // Such as Sun Nov 22 01:25:19 2026.
            assert_eq!(row[0].len(), 24, "{text}");
            let [seconds, connect, rest, total, wait] =
                [1, 2, 3, 4, 5].map(|cell| row[cell].parse::<u64>().unwrap());
            // `wait` begins when the clock is read behind the write, which may be late.
            assert!(seconds > 1_700_000_000 && total >= 5 && wait <= total + 1, "{text}");
            // Each is rounded.
            assert!((connect + rest).abs_diff(total) <= 1 && total >= before, "{text}");
            before = total;
        }

        let text = std::fs::read_to_string(&percentages).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("Percentage served,Time in ms"));
        for (percent, line) in lines.clone().enumerate() {
            let (first, ms) = line.split_once(',').unwrap();
            assert_eq!(first.parse(), Ok(percent));
            // The real ab may write a percentile that no response took.
            assert!(ms.parse::<f64>().unwrap() >= 5.0 || name == "theirs", "{text}");
            assert_eq!(ms.split_once('.').unwrap().1.len(), 3, "{text}");
        }
        assert_eq!(lines.count(), 101);
        [samples, percentages].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}

#[test]
fn a_socket_error_ends_it_as_it_ends_ab() {
    let lab = lab();
    for (line, address, said, code) in [
        (
            "-n 3",
            "http://127.0.0.1:1/".to_owned(),
            "apr_socket_recv: Connection refused (111)",
            111,
        ),
        ("-n 4 -c 2", url(&lab, "/reset"), "apr_socket_recv: Connection reset by peer (104)", 104),
        (
            "-n 2 -s 1",
            url(&lab, "/hang"),
            "apr_pollset_poll: The timeout specified has expired (70007)",
            119,
        ),
    ] {
        for ran in [ours(line, &address), theirs(line, &address)] {
            assert_eq!(ran.code, Some(code), "{ran:?}");
            assert!(ran.stderr.contains(said), "{ran:?}");
            assert!(!ran.stdout.contains("Complete requests"), "{ran:?}");
        }
    }
    let ran = ours("-r -n 3", "http://127.0.0.1:1/");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(number_after(&ran.stdout, "Complete requests:"), 3);
    assert!(ran.stdout.contains("(Connect: 3, Receive: 0, Length: 0, Exceptions: 0)"), "{ran:?}");
}

#[test]
fn whichever_comes_first_ends_it() {
    let lab = lab();
    let body = file("cut");
    std::fs::write(&body, "hello").unwrap();
    let path = body.display();
    let url = url(&lab, "/delay/10ms");
    // ab -c 200 -n 1000000 -t 600 -p body URL, scaled: cut by the time, then by the count.
    let ran = ours(&format!("-q -c 20 -n 1000000 -t 1 -p {path}"), &url);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let complete = number_after(&ran.stdout, "Complete requests:");
    // 20 at once, 10 ms each, for a second.
    assert!((20..=2_000).contains(&complete), "{ran:?}");
    assert_eq!(number_after(&ran.stdout, "Failed requests:"), 0, "{ran:?}");
    let ran = ours(&format!("-q -c 20 -n 100 -t 600 -p {path}"), &url);
    assert_eq!(number_after(&ran.stdout, "Complete requests:"), 100, "{ran:?}");
    std::fs::remove_file(&body).unwrap();
}

#[test]
fn bad_command_lines_end_as_in_ab() {
    for (line, code, said) in [
        ("-n 1 -c 20 http://h/", 22, "Cannot use concurrency level greater than total number"),
        ("http://127.0.0.1", 22, "ab: invalid URL"),
        ("", 22, "ab: wrong number of arguments"),
        ("http://h/ -n 5", 22, "ab: wrong number of arguments"),
        ("-n 0 http://h/", 1, "Invalid number of requests"),
        ("-p /dev/null/none http://h/", 1, "ab: Could not open POST data file (/dev/null/none)"),
        ("-i -p /dev/null http://h/", 1, "Cannot mix POST with other methods\n\n"),
        ("-m PATCH -i http://h/", 1, "Cannot mix HEAD with other methods"),
        ("-n x http://h/", 1, "Invalid number of requests\n\n"),
        ("-c -1 http://h/", 22, "Invalid Concurrency"),
        (
            "http://no-such-host.invalid/",
            50,
            "apr_sockaddr_info_get() for no-such-host.invalid: Name or service not known (670002)",
        ),
    ] {
        let ours = ran(&[vec!["as", "ab"], words(line)].concat());
        let theirs = start(command("ab").args(words(line))).wait();
        for ran in [&ours, &theirs] {
            assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
            assert!(ran.stderr.contains(said), "{line}: {ran:?}");
        }
    }
    for (line, said) in [
        ("-b 1000 http://h/", "-b cannot be honoured"),
        ("-Z x http://h/", "-Z cannot be honoured"),
        ("-v 4 http://h/", "-v over 1"),
        ("-Q http://h/", "-Q"),
    ] {
        let ran = ran(&[vec!["as", "ab"], words(line)].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{line}: {ran:?}");
    }
}
