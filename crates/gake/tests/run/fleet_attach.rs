//! Runs whose coordinator dies.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::fleet::*;
use crate::support::*;

/// Publishes on the subject of a run's journal, without the token.
fn intrude(nats: &Nats, run: &str) {
    let mut client = TcpStream::connect(nats.url.rsplit('/').next().unwrap()).unwrap();
    let message = format!("PUB gake.run.{run}.journal 4\r\njunk\r\n").repeat(30);
    write!(client, "CONNECT {{\"verbose\":false}}\r\n{message}PING\r\n").unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"PONG\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
}

#[test]
fn another_process_takes_over_a_run_whose_coordinator_died() {
    let (nats, lab) = (Nats::start(), lab());
    let two = agents(&nats, &["a", "b"], HERE);
    let fleet =
        |args: &str| start(&mut with(&nats, TOKEN, &words(&format!("fleet {args}")))).wait();
    let flags = "-r 100 -d 600s --slo p50<60s --agents 2 --attach-within 600s";
    let run = start(&mut run_of(&nats, &url(&lab, "/fast"), flags));
    eventually("the run continues", || lab.stats().requests > 20);
    let id = id_of_run(&nats);
    fleet(&format!("attach {id}")).refused(1, "has a coordinator");
    // In the middle of the journal, and at its end.
    intrude(&nats, &id);
    let seen = lab.stats().requests;
    eventually("the journal continues", || lab.stats().requests > seen + 200);
    run.signal(Signal::KILL);
    let printed = run.wait().stderr;
    intrude(&nats, &id);
    assert!(
        printed.contains(&format!("continue the run with `gake fleet attach {id}`")),
        "{printed}"
    );
    let seen = lab.stats().requests;
    eventually("agents go on alone", || lab.stats().requests > seen + 20);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run.hlog");
    let line = format!("fleet attach {id} -o json --out {}", out.display());
    let attached = start(&mut with(&nats, TOKEN, &words(&line)));
    eventually("it has the first second", || {
        let file = std::fs::read_to_string(&out).unwrap_or_default();
        file.lines().any(|line| line.starts_with("Tag="))
    });
    assert_eq!(fleet(&format!("stop {id}")).code, Some(0));
    let ran = attached.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.written(), lab.stats().requests, "nothing lost, nothing twice");
    assert_eq!(json.count("requests.dropped"), 0);
    assert_eq!(json.count("requests.due"), json.count("requests.sent"));
    assert!(json.at("objectives").to_string().contains("p50"), "{}", json.0);
    fleet(&format!("attach {id}")).refused(1, "there is no journal");
    end(two);
}

#[test]
fn a_stopped_orphan_ends_there() {
    let (nats, lab) = (Nats::start(), lab());
    let two = agents(&nats, &["a", "b"], HERE);
    let fleet =
        |args: &str| start(&mut with(&nats, TOKEN, &words(&format!("fleet {args}")))).wait();
    let begun = Instant::now();
    let flags = "-r 100 -d 600s --agents 2 --attach-within 600s";
    let run = start(&mut run_of(&nats, &url(&lab, "/fast"), flags));
    eventually("the journal has figures", || lab.stats().requests > 150);
    let id = id_of_run(&nats);
    run.signal(Signal::KILL);
    run.wait();
    let printed = fleet(&format!("stop {id}")).done().stderr;
    let stopped = begun.elapsed();
    assert!(printed.contains("its agents end it: a, b; `gake fleet attach"), "{printed}");
    end(two);
    let seen = lab.stats().requests;
    // Requests due since then were not sent.
    std::thread::sleep(Duration::from_secs(2));
    let ran = fleet(&format!("attach {id} -o json"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let json = ran.json();
    let due = json.count("requests.due");
    assert!(due as f64 <= 100.0 * stopped.as_secs_f64() + 1.0, "{due} in {stopped:?}");
    assert!((1..=seen).contains(&json.written()), "{seen} were seen: {}", json.0);
    let events = json.at("events").to_string();
    assert_eq!(events.matches("it was stopped by request").count(), 2, "{events}");
    assert!(!events.contains("silent"), "{events}");
    fleet(&format!("attach {id}")).refused(1, "there is no journal");
}

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    Agent,
    /// It is stopped, and killed after the run.
    StoppedAgent,
    Server,
    Coordinator,
}

/// Requests of a run: 90 a second.
const REQUESTS: u64 = 180;

/// How long a run may go on after something was killed: its schedule (2 s), an agent's silence (3 s), the
/// time for which NATS may be away (20 s, and 8 s until a run ends by that), and 12 s for a busy machine.
const END_MAX: Duration = Duration::from_secs(2 + 3 + 20 + 8 + 12);

/// Kills `victim` once some requests are there, whose number `seed` makes, as it does what happens when
/// an agent is lost.
fn kill(victim: Victim, seed: u64) {
    let (mut nats, lab) = (Nats::start(), lab());
    let three = agents(&nats, &["a", "b", "c"], HERE);
    let on_loss = ["redistribute", "continue", "abort"][(seed % 3) as usize];
    let flags = format!("-r 90 -d 2s --agents 3 --attach-within 600s --on-loss {on_loss}");
    let run = start(&mut run_of(&nats, &url(&lab, "/fast"), &flags));
    let some = scattered(seed + victim as u64) % 120;
    eventually("some requests are there", || lab.stats().requests > some);
    let killed = Instant::now();
    match victim {
        Victim::Agent => three[1].signal(Signal::KILL),
        Victim::StoppedAgent => three[1].signal(Signal::STOP),
        Victim::Server => nats.restart(),
        Victim::Coordinator => run.signal(Signal::KILL),
    }
    let mut ran = run.wait();
    if ran.code.is_none() {
        let (_, said) = ran.stderr.split_once("`gake fleet attach ").unwrap();
        let (id, _) = said.split_once('`').unwrap();
        let line = format!("fleet attach {id} -o json");
        ran = start(&mut with(&nats, TOKEN, &words(&line))).wait();
    }
    let json = ran.json();
    let what = format!("{victim:?} {seed}, {on_loss}: {ran:?}");
    assert!(killed.elapsed() < END_MAX, "{:?} {what}", killed.elapsed());
    let (written, seen) = (json.written(), lab.stats().requests);
    if json.at("events").to_string().contains("was lost after") {
        let is_agent = matches!(victim, Victim::Agent | Victim::StoppedAgent);
        assert!(is_agent && written <= seen, "{what}");
        if on_loss == "abort" {
            assert!(ran.code == Some(1) && json.count("requests.due") <= REQUESTS, "{what}");
        } else {
            assert_eq!((ran.code, json.count("requests.due")), (Some(3), REQUESTS), "{what}");
            assert!(json.count("requests.sent") >= REQUESTS / 3 * 2, "{what}");
        }
    } else {
        assert_eq!(json.count("requests.due"), REQUESTS, "{what}");
        assert_eq!((written, json.count("requests.dropped")), (seen, 0), "{what}");
    }
    for (index, agent) in three.into_iter().enumerate() {
        if index != 1 || !matches!(victim, Victim::Agent | Victim::StoppedAgent) {
            end(vec![agent]);
        } else {
            agent.signal(Signal::KILL);
            agent.wait();
        }
    }
}

#[test]
fn kills_at_any_instant_leave_figures_that_add_up() {
    for seed in seeds() {
        use Victim::{Agent, Coordinator, Server, StoppedAgent};
        std::thread::scope(|scope| {
            for victim in [Agent, StoppedAgent, Server, Coordinator] {
                scope.spawn(move || kill(victim, seed));
            }
        });
    }
}
