//! Destinations that fail in their own ways: the run's figures are whole, what could be delivered
//! later is delivered, and what could not is counted.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::*;

/// A database's response to its Nth write, and its delay.
type Answers = fn(usize) -> (u16, Duration);

/// A database of InfluxDB's protocol that takes lines, or does not.
struct Database {
    port: u16,
    /// The lines of writes that got a 2xx.
    lines: Arc<Mutex<Vec<String>>>,
    /// Every write that it saw.
    writes: Arc<Mutex<usize>>,
}

impl Database {
    fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (lines, writes) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<usize>>::default());
        let (taken, seen) = (Arc::clone(&lines), Arc::clone(&writes));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, seen) = (Arc::clone(&taken), Arc::clone(&seen));
                thread::spawn(move || serve(stream, answers, &taken, &seen));
            }
        });
        Self { port, lines, writes }
    }

    fn sink(&self, options: &str) -> String {
        format!("influxdb=http://127.0.0.1:{}/gake{options}", self.port)
    }

    /// The sum of a field over the seconds, and how many seconds there are.
    fn sum(&self, field: &str) -> (u64, usize) {
        let lines = self.lines.lock().unwrap();
        let seconds = lines.iter().filter(|line| line.starts_with("gake_requests "));
        let values: Vec<u64> =
            seconds.map(|line| number_after(line, &format!("{field}="))).collect();
        (values.iter().sum(), values.len())
    }
}

/// Responds to the requests of a connection: to writes as scripted, to all others with 200.
fn serve(stream: TcpStream, answers: Answers, taken: &Mutex<Vec<String>>, writes: &Mutex<usize>) {
    serve_requests(stream, |head, body| {
        let mut status = 200;
        if head.contains("/write?") || head.contains("/write_lp?") {
            let number = {
                let mut writes = writes.lock().unwrap();
                *writes += 1;
                *writes - 1
            };
            let (code, pause) = answers(number);
            thread::sleep(pause);
            status = code;
            if (200..300).contains(&status) {
                let text = String::from_utf8(body).unwrap();
                taken.lock().unwrap().extend(text.lines().map(str::to_owned));
            }
        }
        format!("HTTP/1.1 {status} Scripted\r\nContent-Length: 0\r\n\r\n")
    });
}

#[test]
fn destinations_that_fail_cost_their_own_figures_and_nothing_else() {
    let ill = Database::start(|number| (if number < 4 { 500 } else { 204 }, Duration::ZERO));
    let slow = Database::start(|_| (204, Duration::from_millis(250)));
    let strict = Database::start(|_| (401, Duration::ZERO));
    let lab = lab();
    let url = url(&lab, "/fast");
    let sinks = [
        ill.sink(""),
        slow.sink(""),
        strict.sink("?version=2&token=s3cret"),
        "json=/dev/full".to_owned(),
        "parquet=/dev/full".to_owned(),
    ];
    let sinks: Vec<&str> = sinks.iter().flat_map(|sink| ["--sink", sink]).collect();
    let args = [&["run", &url, "-r", "100", "-d", "4s", "-o", "json"], &sinks[..]].concat();
    let ran = ran(&args).done();
    let json = ran.json();
    assert_eq!((json.count("requests.ok"), lab.stats().requests), (400, 400), "{ran:?}");
    // Rows delivered late arrive exactly once.
    for (name, database) in [("ill", &ill), ("slow", &slow)] {
        let (sent, seconds) = database.sum("sent");
        assert_eq!(sent, 400, "{name}: {:?}", database.lines.lock().unwrap());
        // A row a second, also during the drain.
        assert!((4..=10).contains(&seconds), "{name}: {seconds}");
        let lines = database.lines.lock().unwrap();
        assert!(lines.iter().any(|line| line.contains("gake_run_verdict")), "{name}: {lines:?}");
    }
    assert!(*ill.writes.lock().unwrap() > 4);
    // Lost rows are counted by destination, with the reason.
    assert!(strict.lines.lock().unwrap().is_empty());
    let lost: Vec<&str> =
        ran.stderr.lines().filter(|line| line.contains("not delivered")).collect();
    assert_eq!(lost.len(), 3, "{ran:?}");
    let port = strict.port.to_string();
    for (destination, why) in
        [(&*port, "401"), ("json=/dev/full", "space"), ("parquet=/dev/full", "cannot be read")]
    {
        let said = lost.iter().find(|line| line.contains(destination));
        let said = said.unwrap_or_else(|| panic!("{destination}: {ran:?}"));
        assert!(figures(said) > 20 && said.contains(why), "{said}");
    }
    assert!(!ran.stderr.contains("s3cret"), "{ran:?}");
    lab.shutdown();
}

#[test]
fn a_destination_over_tls_is_believed_by_its_authority_only() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem").display().to_string();
    let collector = Peer::lab(&["--tls", "self", "--tls-out", &authority]);
    let lab = lab();
    let there = collector.url.replace("127.0.0.1", "localhost");
    let sink = format!("prometheus-rw={there}/echo?retry=1s");
    let url = url(&lab, "/fast");
    let line =
        [&["run", &url, "-o", "json", "--sink", &sink], &*words("-r 50 -d 2s -c 2")].concat();
    let with = |authority: &str, flags: &[&str]| {
        let mut gake = gake(&[&line, flags].concat());
        start(gake.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR")).wait()
    };
    let taken = with(&authority, &["--sink-required"]).done();
    assert_eq!(taken.json().count("requests.ok"), 100, "{taken:?}");
    assert!(!taken.stderr.contains("not delivered"), "{taken:?}");

    let mut stranger = rcgen::CertificateParams::new(Vec::new()).unwrap();
    stranger.distinguished_name.push(rcgen::DnType::CommonName, "another");
    let stranger = stranger.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
    let other = folder.path().join("other.pem").display().to_string();
    std::fs::write(&other, stranger.pem()).unwrap();
    let why = "tls: the certificate's issuer is not trusted";
    let lost = with(&other, &[]).done();
    assert_eq!(lost.json().count("requests.ok"), 100, "{lost:?}");
    let said =
        lost.stderr.lines().find(|line| line.contains("figures were not delivered")).unwrap();
    assert!(figures(said) > 20 && said.contains(why), "{lost:?}");
    with(&other, &["--sink-required"]).refused(1, why);
    // A request a second, and none that was not encrypted.
    let counted = collector.end();
    assert!((2..=8).contains(&number_after(&counted, "/echo ")), "{counted}");
    lab.shutdown();
}

/// The number in `N figures were not delivered`.
fn figures(sentence: &str) -> u64 {
    let before = sentence.split_once(" figures were not delivered").unwrap().0;
    before.rsplit(' ').next().unwrap().parse().unwrap()
}
