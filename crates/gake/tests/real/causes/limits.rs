//! Limits that a service does not export: what is said of them with nothing watched, and with the
//! process watched, under both loops.

use std::process::Command;

use super::{Asked, NOTHING, causes, first, port_of};
use crate::support::*;

/// A service of `tests/peers/limits` with its limit, its loads, and what may be said of it.
struct Limit {
    cause: &'static str,
    /// The kind, and how many it serves at once.
    service: &'static str,
    users: u32,
    /// Above its capacity, unless it is healthy.
    rate: u32,
    /// First findings that name it; none where nothing limits.
    right: &'static [&'static str],
    /// How many are served at once, if that is the limit.
    places: Option<u32>,
}

const POOL: &[&str] = &["pool_queueing"];
const SERIAL: &[&str] = &["one_at_a_time"];
/// One thread of work, whether seen as its thread, its lock or its queue.
const ONE_THREAD: &[&str] = &["one_at_a_time", "target_thread", "target_cpu", "shared_cores"];
/// A target that computes beside the generator.
const CPU: &[&str] = &["target_cpu", "shared_cores", "run_delay"];

const LIMITS: &[Limit] = &[
    Limit::of("a lock", "lock", (20, 300), SERIAL),
    Limit::of("a lock, heavy requests under it", "lock-heavy", (20, 500), SERIAL),
    Limit::of("a lock around work", "lock-cpu", (16, 2000), ONE_THREAD),
    Limit::of("work outside a lock", "lock-outside", (20, 200), SERIAL),
    Limit::of("two locks", "locks", (20, 350), POOL).serving(2),
    Limit::of("a pool of 3", "pool 3", (10, 150), POOL).serving(3),
    Limit::of("a pool of 3, slow requests", "pool-slow 3", (12, 70), POOL).serving(3),
    Limit::of("a pool of 5, 10 users", "pool 5", (10, 250), POOL).serving(5),
    Limit::of("a pool of 20", "pool 20", (50, 900), POOL).serving(20),
    Limit::of("a pool of 3, times that vary", "pool-vary 3", (20, 200), POOL),
    Limit::of("a pool of 4, newest first", "pool-newest 4", (20, 300), POOL).serving(4),
    Limit::of("a pool of 4, in no order", "pool-random 4", (20, 300), POOL).serving(4),
    Limit::of("a pool that times out", "pool-timeout 3", (20, 150), &["wait_limit"]),
    Limit::of("a pool with a bounded queue", "pool-full 4", (40, 300), &["load_shed"]),
    Limit::of("a rate limiter", "limiter", (10, 300), &["rate_limit"]),
    Limit::of("a rate limiter, status 503", "limiter-503", (10, 300), &["rate_limit", "load_shed"]),
    Limit::of("a limiter that delays", "shaper", (10, 150), &["rate_limit"]),
    Limit::of("connections", "connections 10", (20, 600), &["connection_limit"]),
    Limit::of("pauses", "stall", (10, 200), &["stalls"]),
    Limit::of("a change", "step", (10, 150), &["step"]),
    Limit::of("a warm-up", "warm-up", (10, 100), &["warm_up"]),
    Limit::of("a drift", "drift", (10, 200), &["drift"]),
    Limit::of("a hang", "hang", (10, 100), &["target_hang"]),
    Limit::of("errors", "errors", (10, 100), &["server_errors"]),
    Limit::of("one core (GOMAXPROCS)", "one-core", (16, 2000), ONE_THREAD),
    Limit::of("cores", "cpu", (16, 2000), CPU),
    Limit::of("none", "sleep", (10, 100), &[]),
    Limit::of("none, times that vary", "vary", (10, 200), &[]),
    Limit::of("none, a pool of 20 at 60 %", "pool 20", (12, 400), &[]),
    Limit::of("none, one request in 50 is slow", "spikes", (10, 100), &[]),
    Limit::of("none, two kinds of requests", "two", (10, 100), &[]),
];

impl Limit {
    const fn of(
        cause: &'static str,
        service: &'static str,
        (users, rate): (u32, u32),
        right: &'static [&'static str],
    ) -> Self {
        Self { cause, service, users, rate, right, places: None }
    }

    const fn serving(self, places: u32) -> Self {
        Self { places: Some(places), ..self }
    }

    /// A run under each loop, with the process watched or without.
    fn measure(&self, is_watched: bool) -> impl Iterator<Item = Json> {
        let loads = [format!("-c {}", self.users), format!("-r {}", self.rate)];
        loads.into_iter().map(move |load| {
            let program = go_program("limits");
            let peer = Peer::start(Command::new(program).args(self.service.split(' ')));
            let watch = match is_watched {
                true => format!("--watch {}", port_of(&peer.url)),
                false => String::new(),
            };
            let flags = format!("run {} {load} -d 6s {watch} -o json", peer.url);
            ran(&words(&flags)).json()
        })
    }

    /// Whether the first finding names the limit, and its number.
    fn is_right(&self, json: &Json) -> bool {
        let said = first(json);
        let Some(places) = self.places else {
            return self.right.contains(&&*said) || self.right.is_empty() && said == NOTHING;
        };
        let evidence = json.at("verdict.findings")[0]["evidence"].as_str().unwrap_or_default();
        let text = evidence.split(" are served at once").next().unwrap_or_default();
        let number = text.split(' ').next_back();
        self.right.contains(&&*said) && number == Some(&*places.to_string())
    }

    /// What a healthy service is blamed for.
    fn blamed<'a>(&self, json: &'a Json) -> Vec<&'a str> {
        match self.right {
            [] => causes(json),
            _ => Vec::new(),
        }
    }
}

/// As the matrix of the servers of others, with and without the process watched.
#[test]
#[ignore = "minutes: cargo xtask causes runs it"]
fn matrix() {
    let mut asked = Asked::read();
    for limit in LIMITS {
        for (how, is_watched) in [("nothing watched", false), ("its process watched", true)] {
            let cause = format!("{}, {how}", limit.cause);
            let runs = if cause.contains(&asked.only) { asked.runs } else { 0 };
            for json in (0..runs).flat_map(|_| limit.measure(is_watched)) {
                asked.write(&cause, &json, limit.is_right(&json), &limit.blamed(&json));
            }
        }
    }
}

/// Each number in these is a count of responses and their times, far from its bounds on any machine
/// that gives the service a core now and then.
#[test]
fn limits_are_named_with_nothing_watched() {
    for cause in ["a pool of 4, in no order", "a pool that times out"] {
        let limit = LIMITS.iter().find(|limit| limit.cause == cause).unwrap();
        for json in limit.measure(false) {
            let findings = json.at("verdict.findings").as_array().unwrap();
            let is_named =
                findings.iter().any(|one| limit.right.contains(&one["id"].as_str().unwrap()));
            assert!(is_named, "{cause}: {}", json.0["verdict"]);
        }
    }
}
