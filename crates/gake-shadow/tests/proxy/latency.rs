//! How long clients wait beside a shadow that misbehaves: no longer than without one.
//!
//! Eight proxies before one master: two without a shadow, and one for each way to be bad. They are
//! asked in turn, request by request, in an order that changes, so that whatever else the machine
//! does meets all of them alike. What is compared are the samples of a way with those of the two
//! that have no shadow.

use std::io::Write;
use std::time::{Duration, Instant};

use gake_shadow::{Category, RunningProxy};

use crate::backend::{Backend, ok, read_request};
use crate::client::{Client, post};
use crate::{bad, config, shadow_at, start, stop};

/// So that a hundredth of the turns is enough to be significant, see [`late`].
const TURNS: usize = 2_000;

/// A client that waits for a shadow waits for its time-out,
const TIMEOUT: Duration = Duration::from_millis(400);
/// which cannot be taken for a turn of the scheduler, and is far more than this.
const LATE: Duration = Duration::from_millis(100);

/// How likely a false alarm may be: a test in a million of those that are run.
const ALPHA: f64 = 1e-6;
/// The same in standard deviations, of one side.
const ALPHA_Z: f64 = 4.753;

/// What a copy may cost the client, for it does cost some: it is made on the way, and the threads
/// for shadows, the bad shadows and the clients share the cores here. A client that waits for
/// anything at all, a delayed acknowledgement (40 ms) say, is over it.
const COST: (f64, Duration) = (2.0, Duration::from_millis(5));

/// More than the kernel takes for a shadow that never reads.
const BODY: usize = 256 << 10;

/// One way to the master.
struct ProxyCase {
    name: &'static str,
    proxy: RunningProxy,
    kept: Client,
    waits: Vec<Duration>,
}

impl ProxyCase {
    fn new(name: &'static str, master: &Backend, shadow: Option<&Backend>) -> Self {
        let mut config = config(master, &[]);
        config.threads = 1;
        if let Some(shadow) = shadow {
            // The shadow is tried all the time, and more comes than it takes.
            let mut shadow = shadow_at(0, &shadow.url());
            (shadow.queue, shadow.connections, shadow.timeout) = (4, 2, TIMEOUT);
            shadow.breaker.failures = 0;
            config.shadows.push(shadow);
        }
        let proxy = start(config);
        let kept = Client::new(proxy.addr());
        Self { name, proxy, kept, waits: Vec::with_capacity(TURNS) }
    }

    /// One request: most on the connection that is kept, some on a new one, some with a body.
    fn ask(&mut self, turn: usize, body: &str) {
        let begun = Instant::now();
        let response = match turn % 8 {
            3 | 6 => Client::new(self.proxy.addr()).get("/"),
            7 => post(self.proxy.addr(), "/", body),
            _ => self.kept.get("/"),
        };
        self.waits.push(begun.elapsed());
        assert_eq!(response.body, "hello", "{}", self.name);
    }

    /// Every request is in the ledger, and the shadow was tried to the end.
    fn end(self) {
        let summary = stop(self.proxy);
        assert_eq!(summary.stats.requests, TURNS as u64);
        for ledger in &summary.ledgers {
            let failures = [Category::Timeout, Category::ConnErr, Category::Cut];
            let tried: u64 = failures.iter().map(|category| ledger.count(*category)).sum();
            assert!(ledger.received == TURNS as u64 && tried >= 4, "{}: {ledger}", self.name);
            assert_eq!(ledger.count(Category::Ok), 0, "{}: {ledger}", self.name);
        }
    }

    fn p99(&self) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort();
        waits[waits.len() * 99 / 100]
    }
}

#[test]
fn a_bad_shadow_does_not_move_the_masters_percentiles() {
    // It keeps nothing of what it reads.
    let master = Backend::raw(|mut stream, _| {
        let mut buffer = Vec::new();
        while read_request(&mut stream, &mut buffer).is_some() {
            let _ = stream.write_all(&ok("hello"));
        }
    });
    let shadows = [
        ("hangs", bad::hangs()),
        ("refuses", Backend::refusing()),
        ("resets", bad::resets()),
        ("drips", bad::drips()),
        ("floods", bad::floods().0),
        ("never reads", bad::never_reads()),
    ];
    let mut cases =
        vec![ProxyCase::new("none", &master, None), ProxyCase::new("none again", &master, None)];
    cases.extend(shadows.iter().map(|(name, shadow)| ProxyCase::new(name, &master, Some(shadow))));
    let body = "x".repeat(BODY);
    // Where clients do wait, that is known early.
    for turns in [0..100, 100..TURNS] {
        for turn in turns {
            order(turn).for_each(|at| cases[at].ask(turn, &body));
        }
        let p99s: Vec<_> = cases.iter().map(|case| (case.name, case.p99())).collect();
        for case in &cases[2..] {
            let compared = compare(&cases[0].waits, &cases[1].waits, &case.waits);
            assert_eq!(compared, Ok(()), "{}; 99th percentiles: {p99s:?}", case.name);
        }
    }
    // Copies that are under way are waited for.
    let ends: Vec<_> = cases.into_iter().map(|case| std::thread::spawn(|| case.end())).collect();
    ends.into_iter().for_each(|end| end.join().unwrap());
}

/// Each of the eight once. Over the turns everybody is first with every kind of request (they come
/// in eights too), and follows another.
fn order(turn: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (turn + turn / 8, 2 * (turn / 64) + 1);
    (0..8).map(move |place| (first + place * step) % 8)
}

/// Whether clients of a way waited longer than those of two identical ones.
fn compare(a: &[Duration], again: &[Duration], case: &[Duration]) -> Result<(), String> {
    let without = [a, again].concat();
    late(&without, case)?;
    let allowed: Vec<_> = without.iter().map(|wait| wait.mul_f64(COST.0) + COST.1).collect();
    let z = rank_sum(&allowed, case);
    if z > ALPHA_Z {
        return Err(format!("all of it is slower, by {z:.1} standard deviations"));
    }
    Ok(())
}

/// The 99th percentile: holds those that were late against chance.
///
/// If the machine makes somebody late, this is one of three, so the way's share of all that are
/// late is binomial. It is granted a half instead of a third, for it has a thread more to wait
/// for. Twenty of 2000 (a hundredth, what moves a 99th percentile) that are late alone are 1 in
/// 2^20; and any number that are late because the machine stands still mean nothing.
fn late(without: &[Duration], case: &[Duration]) -> Result<(), String> {
    let count = |waits: &[Duration]| waits.iter().filter(|wait| **wait > LATE).count();
    let (others, own) = (count(without), count(case));
    let chance = tail_of_half(others + own, own);
    if chance < ALPHA {
        return Err(format!("{own} were over {LATE:?}, and {others} of twice as many without"));
    }
    Ok(())
}

/// P(X >= k) of heads among n fair coins.
fn tail_of_half(n: usize, k: usize) -> f64 {
    // log of n choose i, from term to term.
    let mut log = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for i in 0..=n {
        if i >= k {
            sum += log.exp();
        }
        log += ((n - i) as f64 / (i + 1) as f64).ln();
    }
    sum
}

/// The Mann-Whitney statistic in standard deviations: above 0 when `b` tends to be longer.
fn rank_sum(a: &[Duration], b: &[Duration]) -> f64 {
    let mut a = a.to_vec();
    a.sort();
    // For each of `b` those of `a` below it; a tie is half.
    let below = |wait: &Duration| {
        (a.partition_point(|one| one < wait) + a.partition_point(|one| one <= wait)) as f64 / 2.0
    };
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u: f64 = b.iter().map(below).sum();
    (u - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt()
}

/// The samples of a way that is late in some of a thousand, on a machine that is in others.
fn waits(late: usize, jam: usize, extra_ms: u64) -> Vec<Duration> {
    let wait = |i: usize| match i * 1_000 / TURNS {
        part if part < late => TIMEOUT,
        part if part < late + jam => LATE * 2,
        _ => Duration::from_micros(200 + i as u64 % 97) + Duration::from_millis(extra_ms),
    };
    (0..TURNS).map(wait).collect()
}

#[test]
fn a_shadow_that_delays_would_be_found() {
    let usual = waits(0, 0, 0);
    assert_eq!(compare(&usual, &usual, &usual), Ok(()));
    // One in a hundred waits for the shadow, or all of them a little.
    for delayed in [waits(10, 0, 0), waits(1_000, 0, 0), waits(0, 0, 6)] {
        assert!(compare(&usual, &usual, &delayed).is_err());
    }
    // A copy's cost, and a machine that stands still, are no delay by the shadow.
    assert_eq!(compare(&usual, &usual, &waits(0, 0, 2)), Ok(()));
    assert_eq!(compare(&waits(0, 90, 0), &waits(0, 110, 0), &waits(0, 120, 0)), Ok(()));
    assert_eq!(compare(&waits(0, 1_000, 0), &waits(0, 900, 0), &waits(0, 1_000, 0)), Ok(()));
    // On a bad machine it is found as well.
    assert!(compare(&waits(0, 30, 0), &waits(0, 30, 0), &waits(80, 30, 0)).is_err());
}

#[test]
fn the_statistics_are_those_of_the_tables() {
    assert!((tail_of_half(10, 8) - 56.0 / 1024.0).abs() < 1e-12);
    assert!((tail_of_half(20, 20) - 0.5_f64.powi(20)).abs() < 1e-12);
    assert!((tail_of_half(5_000, 0) - 1.0).abs() < 1e-9);
    let of = |values: &[u64]| values.iter().map(|s| Duration::from_secs(*s)).collect::<Vec<_>>();
    // U = 8 of 9, mean 4.5, variance 21/4.
    let z = rank_sum(&of(&[1, 2, 4]), &of(&[3, 5, 6]));
    assert!((z - 3.5 / 5.25_f64.sqrt()).abs() < 1e-12, "{z}");
    assert_eq!(rank_sum(&of(&[1, 2]), &of(&[1, 2])), 0.0);
}
