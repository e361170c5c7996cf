//! Impossible requests are refused in one sentence, before anything is sent.

#![expect(unsafe_code, reason = "a limit on the size of files, set between fork and exec")]

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::support::*;

#[test]
fn no_targets_on_standard_input_are_bad_usage() {
    ran(&["run", "-"]).refused(2, "no target; write URLs");
}

#[test]
fn unusable_outputs_are_refused_before_the_run() {
    for (line, what) in [
        ("run http://no-such-host.invalid/", "could not be resolved"),
        ("run demo --data @/no/such/body", "/no/such/body"),
        ("run https://127.0.0.1:1/ --cacert /no/such/ca.pem", "/no/such/ca.pem"),
        ("run https://127.0.0.1:1/ --cacert /proc/version", "/proc/version"),
        ("run https://127.0.0.1:1/ --cert /no/such/c.pem --key /no/such/k.pem", "/no/such/"),
        ("report /no/such/run.hlog", "/no/such/run.hlog"),
        ("report /proc/version", "/proc/version"),
    ] {
        ran(&words(line)).refused(1, what);
    }
}

#[test]
fn files_that_cannot_be_written_cost_no_request() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for (flag, path) in [
        ("--out", "/no/such/run.hlog"),
        ("--out", "/"),
        ("--out", "/dev/full"),
        ("--log", "/no/such/log.csv"),
        ("--log", "/proc/log.json"),
    ] {
        ran(&["run", &url, "-n", "5", flag, path]).refused(1, path);
    }
    assert_eq!(lab.shutdown().requests, 0);
}

#[test]
fn no_output_is_written_over_another_or_over_what_is_read() {
    let lab = lab();
    let (url, base) = (url(&lab, "/fast"), format!("http://{}", lab.addr()));
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).into_os_string().into_string().unwrap();
    let (plain, json, again) = (at("one"), at("one.json"), at("./one.json"));
    std::fs::create_dir(at("in")).unwrap();
    std::fs::write(at("targets"), format!("GET {url}\n")).unwrap();
    let formatted = |format: &str, path: &str| format!("{format}={path}");
    let run = ["run", &url, "-n", "5"];
    for (args, flags) in [
        (&run[..], ["--html", &plain, "--out", &plain]),
        (&run, ["-o", &formatted("json", &again), "--log", &json]),
        (&run, ["-o", &formatted("csv", &json), "--log", &json]),
        (&run, ["-o", &formatted("junit", &plain), "-o", &formatted("json", &at("in/../one"))]),
        (&["find", &url], ["--html", &plain, "--out", &plain]),
        (&["find", &url], ["--html", &plain, "-o", &formatted("json", &plain)]),
        (
            &[
                "shadow",
                "--listen",
                "127.0.0.1:0",
                "--master",
                &formatted("a", &base),
                "--shadow",
                &formatted("b", &base),
            ],
            ["--record", &plain, "--diff-out", &plain],
        ),
    ] {
        ran(&[args, &flags].concat()).refused(2, "two outputs cannot be one file");
    }
    let kept = std::fs::read(at("targets")).unwrap();
    for args in [
        ["run", &at("targets"), "--out", &at("in/../targets")],
        ["compare", &at("targets"), &at("other"), &formatted("-ojson", &at("targets"))],
        ["shadow", "convert", &at("targets"), &at("./targets")],
        ["shadow", "report", &at("targets"), &formatted("-ojson", &at("targets"))],
    ] {
        ran(&args).refused(2, "is read and cannot be written");
    }
    for tool in [["oha", "-o"], ["ab", "-g"]] {
        let args = [&["as"], &tool[..], &[&plain, "-n", "5", "--gake-out", &plain, &url]];
        ran(&args.concat()).refused(2, "two outputs cannot be one file");
    }
    assert_eq!(std::fs::read(at("targets")).unwrap(), kept);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing was made");
    assert_eq!(lab.shutdown().requests, 0);
}

#[test]
fn a_broken_targets_file_names_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let lab = lab();
    let url = url(&lab, "/fast");
    for (text, what) in [
        (format!("GET {url}\n\nGET\n"), "line 3"),
        (format!("GET {url}\nbroken header\n"), "line 2"),
        (format!("GET {url}\n\nGET ftp://h/\n"), "line 3"),
        (format!("POST {url}\n@/no/such/body\n"), "line 1: body file /no/such/body"),
        (format!("{{\"method\":\"GET\",\"url\":\"{url}\"}}\n{{\"method\":\n"), "line 2"),
        (String::new(), "no target"),
        ("# nothing\n\n".to_owned(), "no target"),
    ] {
        let path = directory.path().join("targets");
        std::fs::write(&path, &text).unwrap();
        let ran = ran(&["run", path.to_str().unwrap(), "-n", "5"]);
        ran.refused(2, what);
        assert!(ran.stderr.contains("targets"), "{ran:?}");
    }
    assert_eq!(lab.shutdown().requests, 0);
}

#[test]
fn a_missing_targets_file_is_an_error() {
    let ran = ran(&["run", "/no/such/targets", "--targets"]);
    ran.refused(1, "/no/such/targets");
}

#[test]
fn a_refused_port_has_a_summary() {
    let (_held, address) = refusing();
    let target = address.to_string();
    for flags in ["-n 20 -c 4", "-r 50 -d 300ms"] {
        let ran = ran(&[&["run", "-o", "json", &target], &*words(flags)].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("nothing succeeded: connection refused"), "{ran:?}");
        assert!(ran.stderr.contains("http is assumed"), "{ran:?}");
        let json = ran.json();
        assert_eq!(json.count("faults.connect_refused"), json.count("requests.sent"));
        assert!(json.findings().contains(&"unreachable"), "{:?}", json.findings());
        assert_eq!(json.count("latency_ns.response.count"), 0, "refusals improve no percentile");
    }
}

#[test]
fn an_address_that_does_not_respond_is_a_time_out() {
    // A listener with a full backlog drops SYNs; nothing leaves this machine.
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
    rustix::net::bind(&socket, &any).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let listener = std::net::TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let _full: Vec<_> = (0..2)
        .map(|_| {
            let wait = std::time::Duration::from_millis(200);
            std::net::TcpStream::connect_timeout(&address, wait)
        })
        .collect();
    let url = format!("http://{address}/");
    let ran = ran(&words(&format!("run {url} -n 3 -c 3 -o json --connect-timeout 500ms")));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.count("faults.connect_timeout"), 3, "{}", json.0);
    assert!(json.count("latency_ns.response.min") >= 500_000_000, "a time-out counts as a wait");
}

#[test]
fn a_log_on_a_full_disk_is_lost_and_the_run_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.csv");
    let lab = lab();
    let url = url(&lab, "/fast");
    let log = path.to_str().unwrap();
    let args = ["run", &url, "-n", "200", "-c", "5", "-o", "json", "--log", log];
    let ran = start(&mut gake_with_disk_of(2_000, &args)).wait();
    let json = ran.json();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("log.csv"), "{ran:?}");
    assert!(
        json.at("events").to_string().contains("the log is incomplete"),
        "{}",
        json.at("events")
    );
    assert_eq!(json.count("requests.ok"), 200);
    assert_eq!(lab.shutdown().requests, 200);
}

/// gake with a bound on the bytes that it can write to any file, as on a disk that fills.
fn gake_with_disk_of(bytes: u64, args: &[&str]) -> Command {
    let mut command = gake(args);
    let limit = move || {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        setrlimit(Resource::Fsize, limit)?;
        // SAFETY: sets a disposition that every program may set; without it the first write over
        // the limit would end the process.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(limit) };
    command
}

#[test]
fn a_disk_that_fills_during_the_run_costs_the_run_file_and_not_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.hlog");
    let lab = lab();
    let url = url(&lab, "/slow?min=1ms&max=20ms");
    let args = ["run", &url, "-c", "10", "-d", "2500ms", "--no-probe", "-o", "json", "--out"];
    let args = [&args, &[path.to_str().unwrap()][..]].concat();
    let ran = start(&mut gake_with_disk_of(8_000, &args)).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let json = ran.json();
    assert!(ran.stderr.contains("run.hlog"), "the loss is said: {ran:?}");
    assert_eq!(json.count("requests.ok"), lab.shutdown().requests);
    let events = json.at("events").to_string();
    assert!(events.contains("run.hlog"), "{events}");
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length <= 8_000, "{length}");
}

/// Endless inputs are read up to a limit, which the error names.
#[test]
fn files_without_end_are_refused() {
    let url = "http://127.0.0.1:9/";
    for (line, what) in [
        ("run URL -n 1 --data @/dev/zero", "larger than 256 MiB, the most that is read of a body"),
        ("run https://127.0.0.1:9/ -n 1 --cert /dev/zero", "larger than 16 MiB"),
        ("run https://127.0.0.1:9/ -n 1 --cacert /dev/zero", "larger than 16 MiB"),
        ("run /dev/zero --targets", "longer than"),
        ("report /dev/zero", "not a run file"),
        ("shadow report /dev/zero", "larger than 256 MiB"),
        ("shadow --listen 0 --config /dev/zero", "larger than 16 MiB"),
        ("shadow --listen 0 --master URL --tls-cert /dev/zero", "larger than 16 MiB"),
        ("shadow --listen 0 --master URL --shadow URL --diff --rules /dev/zero", "16 MiB"),
        ("shadow --listen 0 --master URL --script /dev/zero", "/dev/zero"),
        ("shadow convert /dev/zero /tmp/never.gor", "not a recording"),
        ("as hey -D /dev/zero URL", "larger than"),
        ("as ab -p /dev/zero URL", "larger than"),
        ("as oha -D /dev/zero URL", "larger than"),
        ("as oha -F f=@/dev/zero URL", "larger than"),
    ] {
        let line = line.replace("URL", url);
        let args: Vec<&str> = line.split(' ').collect();
        let refused = ran(&args);
        assert!(matches!(refused.code, Some(1 | 2)), "{line}: {refused:?}");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains(what), "{line}: {refused:?}");
    }
}
