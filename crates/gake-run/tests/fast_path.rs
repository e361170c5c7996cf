//! The fast path of a closed loop has the results of the futures, and a request on it allocates
//! nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, Timeouts};
use gake_core::record::{Fault, LatencyMetric, Run, RunEnd};
use gake_engine::{Collector, WorkerBody, start};
use gake_testkit::Counting;
use gake_wire::{
    ClientSettings, HttpFactory, HttpRequest, PreparedRequests, RequestList, Resolver, TlsOptions,
    WeightedRequest,
};

#[global_allocator]
static COUNTING: Counting = Counting;

const REQUESTS: u64 = 400;

/// The request on a connection, from 0, at which a server deviates: long after the fast path began.
const ODD: usize = 100;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

/// Between two parts of a response, so that they are read one by one.
const PAUSE: Duration = Duration::from_millis(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
    /// Ends the sending side alone, and reads on.
    HalfClose,
    Reset,
    /// Sends nothing more, and keeps the connection open.
    Hold,
}

/// What a server sends for a request.
struct Reply {
    parts: Vec<Vec<u8>>,
    then: Then,
}

fn reply(text: impl AsRef<[u8]>, then: Then) -> Reply {
    Reply { parts: vec![text.as_ref().to_vec()], then }
}

/// A server whose reply depends on the number of the request on its connection.
fn serve(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let reply = Arc::new(reply);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || converse(stream.unwrap(), &*reply));
        }
    });
    url
}

fn converse(mut stream: TcpStream, reply: &dyn Fn(usize) -> Reply) {
    stream.set_nodelay(true).unwrap();
    let mut room = vec![0; 64 * 1024];
    for number in 0.. {
        let mut length = 0;
        while !room[..length].ends_with(b"\r\n\r\n") && !room[..length].ends_with(b"body") {
            match stream.read(&mut room[length..]) {
                Ok(count @ 1..) => length += count,
                _ => return,
            }
        }
        let Reply { parts, then } = reply(number);
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(PAUSE);
            }
            if stream.write_all(part).is_err() {
                return;
            }
        }
        match then {
            Then::Keep => {}
            Then::Close => return,
            Then::HalfClose => {
                let _ = stream.shutdown(Shutdown::Write);
                while matches!(stream.read(&mut room), Ok(1..)) {}
                return;
            }
            Then::Reset => {
                let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                return;
            }
            Then::Hold => {
                while matches!(stream.read(&mut room), Ok(1..)) {}
                return;
            }
        }
    }
}

/// A load of one user.
#[derive(Clone)]
struct Case {
    requests: Vec<HttpRequest>,
    settings: ClientSettings,
    plan: Plan,
}

impl Case {
    fn get(url: &str) -> Self {
        let load = Load::Closed { users: 1, think: Duration::ZERO };
        let plan = Plan {
            requests: Some(REQUESTS),
            drain: Duration::from_millis(100),
            ..Plan::new(url, load)
        };
        let settings = ClientSettings { pooled: false, ..ClientSettings::default() };
        Self { requests: vec![HttpRequest::new("GET", url)], settings, plan }
    }

    fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.requests[0].method);
        if method == "POST" {
            self.requests[0].body = Some(Arc::from(*b"a body"));
        }
        self
    }

    fn redirects(mut self, most: u32) -> Self {
        self.settings.max_redirects = most;
        self
    }

    fn timeouts(mut self, total: u64, first_byte: Option<u64>) -> Self {
        let (total, connect) = (Duration::from_millis(total), Duration::from_secs(5));
        let first_byte = first_byte.map(Duration::from_millis);
        self.settings.timeouts = Timeouts { connect, first_byte, total };
        self
    }

    fn lasting(mut self, time: Duration) -> Self {
        (self.plan.requests, self.plan.duration) = (None, Some(time));
        self
    }

    fn run(&self, fast: bool) -> Run {
        let fast_users = if fast { 1 } else { usize::MAX };
        let plan = Arc::new(Plan { fast_users, ..self.plan.clone() });
        let requests = self.requests.iter().map(|request| WeightedRequest {
            request: request.clone(),
            label: None,
            weight: 1,
        });
        let wire = PreparedRequests::prepare(
            &requests.collect::<RequestList>(),
            &Resolver::default(),
            &TlsOptions::default(),
            self.settings.clone(),
        );
        let wire = Arc::new(wire.unwrap());
        let running = start(
            &plan,
            1,
            None,
            WorkerBody::new(move |context| {
                HttpFactory::new(Arc::clone(&wire), context.slice, context.clock)
            }),
        )
        .unwrap();
        let mut collector = Collector::new(&plan, 1, 1);
        while !collector.is_over() {
            collector.take(running.messages.recv().unwrap(), |worker, tally| {
                let _ = running.spares[worker].send(tally);
            });
            while collector.next_second().is_some() {}
        }
        running.join();
        collector.finish(0, RunEnd::Done, 1)
    }

    /// Runs it with and without the fast path and compares the results; returns them.
    fn compare(&self, name: &str) -> Run {
        let [fast, plain] = [true, false].map(|fast| self.run(fast));
        let mut counts = [fast.tally.counts, plain.tally.counts];
        for counts in &mut counts {
            counts.connect_cpu = 0;
        }
        assert_eq!(counts[0], counts[1], "{name}");
        assert_eq!(fast.tally.statuses(), plain.tally.statuses(), "{name}");
        assert_eq!(fast.tally.faults(), plain.tally.faults(), "{name}");
        for metric in LatencyMetric::ALL {
            let [fast, plain] = [&fast, &plain].map(|run| run.tally.latency.of(metric).count());
            assert_eq!(fast, plain, "{name}: {}", metric.name());
        }
        let counts = fast.tally.counts;
        assert!(counts.add_up() && counts.started >= ODD as u64, "{name}: {counts:?}");
        fast
    }
}

/// At each [`ODD`] request on a connection another reply.
fn odd(odd: impl Fn() -> Reply + Send + Sync + 'static) -> String {
    serve(move |number| if number % ODD == ODD - 1 { odd() } else { reply(OK, Then::Keep) })
}

fn faults(run: &Run) -> Vec<(Fault, u64)> {
    run.tally.faults().to_vec()
}

#[test]
fn every_framing_of_a_response_has_the_same_results() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{OK}");
    let late = "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx";
    for (name, text) in [("chunked", chunked), ("interim", &interim), ("404", late)] {
        let text = text.to_owned();
        Case::get(&serve(move |_| reply(&text, Then::Keep))).compare(name);
    }
    let run = Case::get(&odd(|| reply("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", Then::Keep)))
        .compare("500");
    assert_eq!(run.tally.statuses(), [(200, 396), (500, 4)]);
    let dated = |number| format!("HTTP/1.1 200 OK\r\nX: {number}\r\nContent-Length: 1\r\n\r\nx");
    Case::get(&serve(move |number| reply(dated(number), Then::Keep))).compare("distinct heads");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    Case::get(&serve(move |_| reply(head, Then::Keep))).method("HEAD").compare("HEAD");
    Case::get(&serve(|_| reply(OK, Then::Keep))).method("POST").compare("POST");
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{}", "x".repeat(300_000));
    let run = Case::get(&serve(move |_| reply(&large, Then::Keep))).compare("large");
    assert_eq!(run.tally.counts.body_bytes, REQUESTS * 300_000);
    let parts = |at: usize| [&OK.as_bytes()[..at], &OK.as_bytes()[at..]].map(<[u8]>::to_vec);
    for at in [3, 20, OK.len() - 1] {
        let url = odd(move || Reply { parts: parts(at).to_vec(), then: Then::Keep });
        Case::get(&url).redirects(3).compare("split");
    }
}

#[test]
fn every_end_of_a_connection_has_the_same_results() {
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
    let run = Case::get(&odd(move || reply(close, Then::Close))).compare("close");
    assert_eq!((run.tally.counts.opened, run.tally.counts.ok), (4, REQUESTS));
    let run = Case::get(&odd(|| reply("HTTP/1.1 200 OK\r\n\r\nabc", Then::Close))).compare("until");
    assert_eq!(run.tally.counts.ok, REQUESTS);
    let run = Case::get(&odd(|| reply(format!("{OK}xyz"), Then::Hold))).compare("excess");
    assert_eq!(run.tally.counts.excess, 4);
    for then in [Then::Close, Then::HalfClose, Then::Reset] {
        let name = format!("no response, {then:?}");
        let run = Case::get(&odd(move || reply("", then))).compare(&name);
        assert_eq!(run.tally.counts.ok, REQUESTS, "{name}");
        assert!(run.tally.counts.stale_reconnects > 3, "{name}");
        let run = Case::get(&odd(move || reply("", then))).method("POST").compare(&name);
        assert_eq!(run.tally.counts.failed, 4, "{name}");
        let start = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        let name = format!("cut, {then:?}");
        let run = Case::get(&odd(move || reply(start, then))).compare(&name);
        assert_eq!(run.tally.counts.failed, 4, "{name}");
    }
    let run = Case::get(&odd(|| reply(OK, Then::HalfClose))).compare("stale");
    assert_eq!(run.tally.counts.ok, REQUESTS);
    for text in ["HTTP/1.1 2000 X\r\n\r\n", "nonsense\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n"] {
        let run = Case::get(&odd(move || reply(text, Then::Hold))).compare(text);
        assert_eq!(run.tally.counts.failed, 4, "{text}: {:?}", faults(&run));
    }
}

#[test]
fn redirects_and_targets_have_the_same_results() {
    let to = "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n";
    for (most, redirects) in [(0, 0), (5, 4)] {
        let run = Case::get(&odd(move || reply(to, Then::Keep))).redirects(most).compare("302");
        assert_eq!(run.tally.counts.redirects, redirects);
    }
    let [first, second] = [0, 1].map(|_| serve(|_| reply(OK, Then::Keep)));
    let mut case = Case::get(&first);
    case.requests.push(HttpRequest::new("GET", format!("{first}other")));
    case.compare("two targets");
    case.requests.push(HttpRequest::new("GET", second));
    assert_eq!(case.compare("two origins").tally.counts.opened, 2);
    let mut case = Case::get(&first);
    (case.plan.warmup, case.plan.duration) =
        (Duration::from_millis(50), Some(Duration::from_secs(9)));
    assert_eq!(case.compare("warm-up").tally.counts.ok, REQUESTS);
}

/// The start of a response.
const START: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";

#[test]
fn time_outs_have_the_same_results() {
    for (text, total, first_byte) in [("", 400, None), ("", 9_000, Some(400)), (START, 400, None)] {
        let url = odd(move || reply(text, Then::Hold));
        let mut case = Case::get(&url).timeouts(total, first_byte);
        case.plan.requests = Some(ODD as u64 + 10);
        let run = case.compare("time-out");
        assert!(
            matches!(faults(&run)[..], [(fault, 1)] if fault.is_timeout()),
            "{:?}",
            faults(&run)
        );
    }
}

#[test]
fn the_end_of_a_run_has_the_same_results() {
    for text in ["", START] {
        let case = Case::get(&odd(move || reply(text, Then::Hold)));
        let counts = case.lasting(Duration::from_millis(300)).compare("end").tally.counts;
        assert_eq!((counts.unfinished, counts.written, counts.ok), (1, 100, 99));
    }
}

/// Set in a process whose run is counted: the URL and the number of requests.
const COUNTED: &str = "GAKE_COUNTED_RUN";

/// The part of the next tests that runs in a process of its own.
#[test]
fn a_counted_run() {
    let Ok(counted) = std::env::var(COUNTED) else { return };
    let (url, requests) = counted.split_once(' ').unwrap();
    let mut case = Case::get(url);
    case.plan.load = Load::Closed { users: 50, think: Duration::ZERO }.into();
    case.plan.requests = Some(requests.parse().unwrap());
    let before = gake_testkit::allocations();
    assert_eq!(Some(case.run(true).tally.counts.ok), case.plan.requests);
    println!("{ALLOCATIONS}{}", gake_testkit::allocations() - before);
}

const ALLOCATIONS: &str = "allocations: ";

/// Runs [`a_counted_run`] by `program`, which is this one, or runs it.
fn counted(mut program: Command, url: &str, requests: u64) -> Output {
    program.args(["--exact", "--nocapture", "a_counted_run"]);
    let output = program.env(COUNTED, format!("{url} {requests}")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Instructions of the fast path in a run of this build, by callgrind. Start, reports and runtime
/// are not counted, since they depend on how long the run takes.
fn instructions(url: &str, requests: u64, out: &std::path::Path) -> u64 {
    let mut valgrind = gake_testkit::command("valgrind");
    valgrind
        .args(["--tool=callgrind", "--toggle-collect=*FastLoop*turn*"])
        .arg(format!("--callgrind-out-file={}", out.join("callgrind").display()))
        .arg(std::env::current_exe().unwrap());
    let run = counted(valgrind, url, requests);
    let text = String::from_utf8_lossy(&run.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected : "));
    line.unwrap_or_else(|| panic!("{text}")).1.trim().parse().unwrap()
}

#[test]
fn a_request_allocates_nothing() {
    // In a process of its own: other tests allocate, too.
    let url = serve(|_| reply(OK, Then::Keep));
    let allocations = |requests: u64| -> u64 {
        let run = counted(Command::new(std::env::current_exe().unwrap()), &url, requests);
        let text = String::from_utf8_lossy(&run.stdout);
        let count = text.lines().find_map(|line| line.split_once(ALLOCATIONS));
        count.unwrap_or_else(|| panic!("{text}")).1.trim().parse().unwrap()
    };
    // Reports allocate a little, the more the longer the run takes.
    let more = (0..3).map(|_| {
        let once = allocations(2_000);
        allocations(10_000).saturating_sub(once)
    });
    let more = more.min().unwrap();
    assert!(more < 800, "{more} more allocations");
}

/// A third above what was counted in the build of the tests (2,722). It does not optimize this crate,
/// in which the loop is compiled, and has debug assertions.
const INSTRUCTIONS_MOST: u64 = 3_600;

#[test]
fn instructions_of_a_request_are_bounded() {
    if gake_testkit::find("valgrind").is_none() {
        eprintln!("not counted: valgrind is not installed (Debian: valgrind)");
        return;
    }
    const REQUESTS: u64 = 4_000;
    let (url, out) = (serve(|_| reply(OK, Then::Keep)), tempfile::tempdir().unwrap());
    let each = instructions(&url, REQUESTS, out.path()) / REQUESTS;
    println!("{each} instructions a request on the fast path");
    // Less than a hundred would mean that requests take another way.
    assert!((100..INSTRUCTIONS_MOST).contains(&each), "{each}");
}
