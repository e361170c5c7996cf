//! A misbehaving shadow must not delay clients.
//!
//! Eight proxies in front of one master: two without a shadow, and one per kind of bad shadow. They
//! get requests alternately, in a changing order, so that disturbances of the machine affect all of
//! them equally. The samples of each case are compared with the two cases without a shadow.

use std::io::Write;
use std::time::{Duration, Instant};

use gake_shadow::{Category, RunningProxy};

use crate::backend::{Backend, ok, read_request};
use crate::client::{Client, post};
use crate::{bad, config, shadow_at, start, stop};

/// Enough for 1 % of late requests to be significant, see [`late`].
const TURNS: usize = 2_000;

/// The shadows' timeout, which a client that waits for one would see.
const TIMEOUT: Duration = Duration::from_millis(400);
/// Far below the timeout, and far above scheduling delays.
const LATE: Duration = Duration::from_millis(100);

/// The probability of a false alarm.
const ALPHA: f64 = 1e-6;
/// The same in standard deviations, one-sided.
const ALPHA_Z: f64 = 4.753;

/// The allowed cost of a copy, as a factor and an offset: shadow threads and bad shadows share the
/// cores here. Any real wait, such as a delayed acknowledgement (40 ms), exceeds it.
const COST: (f64, Duration) = (2.0, Duration::from_millis(5));

/// More than the kernel buffers for a shadow that never reads.
const BODY: usize = 256 << 10;

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
            // The shadow is always overloaded, and never skipped.
            let mut shadow = shadow_at(0, &shadow.url());
            (shadow.queue, shadow.connections, shadow.timeout) = (4, 2, TIMEOUT);
            shadow.breaker.failures = 0;
            config.shadows.push(shadow);
        }
        let proxy = start(config);
        let kept = Client::new(proxy.addr());
        Self { name, proxy, kept, waits: Vec::with_capacity(TURNS) }
    }

    /// Sends a request: most on the kept connection, some on a new one, some with a body.
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

    /// Checks that the ledger is complete and that the shadow was tried.
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
    // Records nothing.
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
    // A first check after 100 turns fails early.
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
    // Waits for running copies.
    let ends: Vec<_> = cases.into_iter().map(|case| std::thread::spawn(|| case.end())).collect();
    ends.into_iter().for_each(|end| end.join().unwrap());
}

/// A permutation of the eight cases. Over the turns, each case is first with every kind of request,
/// and follows every other case.
fn order(turn: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (turn + turn / 8, 2 * (turn / 64) + 1);
    (0..8).map(move |place| (first + place * step) % 8)
}

/// Compares a case with the two without a shadow.
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

/// Tests the number of late requests, which move the 99th percentile.
///
/// If only the machine delays requests, the case's share of late ones is binomial with 1/3. It is
/// granted 1/2, for it has another thread to wait for. Twenty of 2000 late requests in the case only
/// have probability 2^-20; delays of the whole machine affect all cases and do not matter.
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
    // ln of the binomial probability, updated term by term.
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

/// The Mann-Whitney statistic in standard deviations: positive if `b` tends to be longer.
fn rank_sum(a: &[Duration], b: &[Duration]) -> f64 {
    let mut a = a.to_vec();
    a.sort();
    // For each of `b` the number of smaller ones in `a`; ties count half.
    let below = |wait: &Duration| {
        (a.partition_point(|one| one < wait) + a.partition_point(|one| one <= wait)) as f64 / 2.0
    };
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u: f64 = b.iter().map(below).sum();
    (u - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt()
}

/// Simulated samples: `late` per mille wait for the shadow, `jam` for the machine.
fn waits(late: usize, jam: usize, extra_ms: u64) -> Vec<Duration> {
    let wait = |i: usize| match i * 1_000 / TURNS {
        permille if permille < late => TIMEOUT,
        permille if permille < late + jam => LATE * 2,
        _ => Duration::from_micros(200 + i as u64 % 97) + Duration::from_millis(extra_ms),
    };
    (0..TURNS).map(wait).collect()
}

#[test]
fn the_comparison_finds_delays() {
    let usual = waits(0, 0, 0);
    assert_eq!(compare(&usual, &usual, &usual), Ok(()));
    // 1 % wait for the shadow, or all of them a little.
    for delayed in [waits(10, 0, 0), waits(1_000, 0, 0), waits(0, 0, 6)] {
        assert!(compare(&usual, &usual, &delayed).is_err());
    }
    // The cost of a copy, and stalls of the machine, are no delays by the shadow.
    assert_eq!(compare(&usual, &usual, &waits(0, 0, 2)), Ok(()));
    assert_eq!(compare(&waits(0, 90, 0), &waits(0, 110, 0), &waits(0, 120, 0)), Ok(()));
    assert_eq!(compare(&waits(0, 1_000, 0), &waits(0, 900, 0), &waits(0, 1_000, 0)), Ok(()));
    // Delays are found on a bad machine, too.
    assert!(compare(&waits(0, 30, 0), &waits(0, 30, 0), &waits(80, 30, 0)).is_err());
}

#[test]
fn the_statistics_match_published_tables() {
    assert!((tail_of_half(10, 8) - 56.0 / 1024.0).abs() < 1e-12);
    assert!((tail_of_half(20, 20) - 0.5_f64.powi(20)).abs() < 1e-12);
    assert!((tail_of_half(5_000, 0) - 1.0).abs() < 1e-9);
    let of = |values: &[u64]| values.iter().map(|s| Duration::from_secs(*s)).collect::<Vec<_>>();
    // U = 8 of 9, mean 4.5, variance 21/4.
    let z = rank_sum(&of(&[1, 2, 4]), &of(&[3, 5, 6]));
    assert!((z - 3.5 / 5.25_f64.sqrt()).abs() < 1e-12, "{z}");
    assert_eq!(rank_sum(&of(&[1, 2]), &of(&[1, 2])), 0.0);
}
