//! Decides whether a shadow gets a copy: kill switch, sampling, rate and breaker, all lock-free.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use gake_core::clock::nanos;
use http::Method;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::ledger::Category;
use crate::breaker::CircuitBreaker;
use crate::config::{RuleVerdict, Sampling, Shadow};
use crate::message::head::RequestHead;

const MILLION: f64 = 1_000_000.0;

#[derive(Debug)]
pub(crate) struct Gate {
    /// The sampled share in millionths.
    share: AtomicU32,
    killed: AtomicBool,
    epoch: Instant,
    rate: Option<RateCap>,
    breaker: CircuitBreaker,
    waiting: AtomicUsize,
    /// Bytes of bodies of queued and running copies.
    bytes: AtomicU64,
}

/// The generic cell rate algorithm.
#[derive(Debug)]
struct RateCap {
    gap_ns: f64,
    /// Allowed burst: a tenth of a second.
    burst_ns: f64,
    due_ns: AtomicU64,
}

impl Gate {
    pub(crate) fn new(shadow: &Shadow, epoch: Instant) -> Self {
        let gate = Self {
            share: AtomicU32::new(0),
            killed: AtomicBool::new(false),
            epoch,
            rate: shadow.rate.map(|rate| RateCap {
                gap_ns: 1e9 / rate,
                burst_ns: (1e9 / rate).max(1e8),
                due_ns: AtomicU64::new(0),
            }),
            breaker: CircuitBreaker::new(shadow.breaker, epoch),
            waiting: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
        };
        gate.set_percentage(if shadow.ramp.is_some() { 0.0 } else { shadow.percentage });
        gate
    }

    pub(crate) fn percentage(&self) -> f64 {
        f64::from(self.share.load(Relaxed)) * 100.0 / MILLION
    }

    pub(crate) fn set_percentage(&self, percentage: f64) {
        self.share.store((percentage.clamp(0.0, 100.0) * MILLION / 100.0).round() as u32, Relaxed);
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Relaxed)
    }

    pub(crate) fn set_killed(&self, killed: bool) {
        self.killed.store(killed, Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.breaker.is_open()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Whether a request is sampled, by the hash `key` or at random.
    fn samples(&self, key: Option<u64>, draw: &mut Xoshiro256PlusPlus) -> bool {
        let share = u64::from(self.share.load(Relaxed));
        if share == MILLION as u64 {
            return true;
        }
        // Scaling the high half avoids a division; the bias is negligible.
        let at = key.unwrap_or_else(|| draw.next_u64()) >> 32;
        (at * MILLION as u64) >> 32 < share
    }

    /// Reserves a place in the queue for a copy with a body of this size.
    pub(crate) fn admit(&self, shadow: &Shadow, bytes: u64) -> Result<(), Category> {
        if self.is_killed() {
            return Err(Category::Killed);
        }
        if self.waiting.fetch_add(1, Relaxed) >= shadow.queue {
            self.waiting.fetch_sub(1, Relaxed);
            return Err(Category::ShedQueue);
        }
        // Most copies have no body, and the counter is in the caches of all cores.
        if bytes > 0 && self.bytes.fetch_add(bytes, Relaxed) + bytes > shadow.queue_bytes {
            self.left_queue();
            self.ended(bytes);
            return Err(Category::ShedQueue);
        }
        let refused = if !self.rate_allows() {
            Category::ShedRate
        } else if !self.breaker.allows() {
            Category::ShedBreaker
        } else {
            return Ok(());
        };
        self.left_queue();
        self.ended(bytes);
        Err(refused)
    }

    pub(crate) fn left_queue(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// Releases the bytes of a finished copy.
    pub(crate) fn ended(&self, bytes: u64) {
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Relaxed);
        }
    }

    fn rate_allows(&self) -> bool {
        let Some(cap) = &self.rate else { return true };
        let now = nanos(self.epoch.elapsed());
        let next = |due: u64| {
            let due = due.max(now) as f64 + cap.gap_ns;
            (due <= now as f64 + cap.burst_ns).then_some(due as u64)
        };
        cap.due_ns.try_update(Relaxed, Relaxed, next).is_ok()
    }

    pub(crate) fn record_result(&self, is_success: bool) {
        self.breaker.record(is_success);
    }
}

/// The random numbers of one thread.
pub(crate) fn draws(seed: u64, thread: usize) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add((thread as u64) << 32))
}

/// Whether a request may be copied to a shadow, by policy and sampling.
pub(crate) fn may_copy(
    shadow: &Shadow,
    gate: &Gate,
    head: &RequestHead,
    draw: &mut Xoshiro256PlusPlus,
) -> Result<(), Category> {
    if gate.is_killed() {
        return Err(Category::Killed);
    }
    may_see(shadow, head.method(), head.path())?;
    let key = match &shadow.sample {
        Sampling::Random => None,
        Sampling::Path => Some(hash(head.path().as_bytes())),
        Sampling::Header(name) => head.values(name.as_str()).next().map(hash),
        Sampling::Cookie(name) => cookie(head, name).map(hash),
    };
    if gate.samples(key, draw) { Ok(()) } else { Err(Category::SampledOut) }
}

/// Whether the policy allows copying a request to a shadow.
pub(crate) fn may_see(shadow: &Shadow, method: &Method, path: &str) -> Result<(), Category> {
    let rule = shadow.rules.iter().find(|rule| rule.path.matches(path));
    if rule.is_some_and(|rule| rule.verdict == RuleVerdict::Deny) {
        return Err(Category::Denied);
    }
    if shadow.is_master && !method.is_safe() {
        return Err(Category::Unsafe);
    }
    let methods = rule.and_then(|rule| rule.methods.as_ref()).unwrap_or(&shadow.methods);
    if methods.contains(method) { Ok(()) } else { Err(Category::Unsafe) }
}

/// FNV-1a with MurmurHash3's finaliser: FNV alone hardly mixes the high bits of short keys.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

fn cookie<'a>(head: &'a RequestHead, name: &str) -> Option<&'a [u8]> {
    head.values("cookie").find_map(|line| {
        line.split(|b| *b == b';').find_map(|pair| {
            let value = pair.trim_ascii().strip_prefix(name.as_bytes())?;
            value.strip_prefix(b"=")
        })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Backend, PathGlob, PathRule};
    use crate::message::head::HeadWriter;

    fn shadow() -> Shadow {
        Shadow::new(Backend::new("s", "http://localhost:1").unwrap())
    }

    fn gate(shadow: &Shadow) -> Gate {
        Gate::new(shadow, Instant::now())
    }

    #[test]
    fn sampling_keeps_the_percentage_and_is_stable_by_key() {
        let mut shadow = shadow();
        shadow.percentage = 20.0;
        let gate = gate(&shadow);
        let mut draw = draws(1, 0);
        let n = 100_000;
        let taken = (0..n).filter(|_| gate.samples(None, &mut draw)).count() as f64;
        // Six standard deviations of a binomial draw.
        let margin = 6.0 * (f64::from(n) * 0.2 * 0.8).sqrt();
        assert!((taken - f64::from(n) * 0.2).abs() < margin, "{taken}");
        let keys = |gate: &Gate, draw: &mut _| {
            let of = |i: u32| hash(format!("user-{i}").as_bytes());
            (0..n as u32).filter(|i| gate.samples(Some(of(*i)), draw)).collect::<Vec<_>>()
        };
        let at_20 = keys(&gate, &mut draw);
        assert!((at_20.len() as f64 - f64::from(n) * 0.2).abs() < margin);
        assert_eq!(at_20, keys(&gate, &mut draw));
        gate.set_percentage(50.0);
        let at_50 = keys(&gate, &mut draw);
        assert!(
            at_20.iter().all(|key| at_50.binary_search(key).is_ok()),
            "raising the percentage keeps the sampled keys"
        );
        gate.set_percentage(0.0);
        assert!(keys(&gate, &mut draw).is_empty());
        gate.set_percentage(100.0);
        assert_eq!(keys(&gate, &mut draw).len(), n as usize);
    }

    #[test]
    fn the_policy_is_by_method_and_path() {
        let mut shadow = shadow();
        let rule =
            |path: &str, verdict, methods| PathRule { path: PathGlob::new(path), verdict, methods };
        shadow.rules = vec![
            rule("/search", RuleVerdict::Allow, Some(vec![Method::POST])),
            rule("/admin", RuleVerdict::Deny, None),
        ];
        for (method, path, expected) in [
            (Method::GET, "/", Ok(())),
            (Method::HEAD, "/a", Ok(())),
            (Method::POST, "/", Err(Category::Unsafe)),
            (Method::POST, "/search", Ok(())),
            (Method::GET, "/search", Err(Category::Unsafe)),
            (Method::GET, "/admin/x", Err(Category::Denied)),
        ] {
            assert_eq!(may_see(&shadow, &method, path), expected, "{method} {path}");
        }
        shadow.is_master = true;
        assert_eq!(may_see(&shadow, &Method::POST, "/search"), Err(Category::Unsafe));
        assert_eq!(may_see(&shadow, &Method::GET, "/"), Ok(()));
    }

    #[test]
    fn the_queue_is_bounded_by_count_and_bytes() {
        let mut shadow = shadow();
        (shadow.queue, shadow.queue_bytes) = (2, 100);
        let gate = gate(&shadow);
        assert_eq!(gate.admit(&shadow, 60), Ok(()));
        assert_eq!(gate.admit(&shadow, 60), Err(Category::ShedQueue));
        assert_eq!(gate.admit(&shadow, 40), Ok(()));
        assert_eq!(gate.admit(&shadow, 0), Err(Category::ShedQueue));
        gate.left_queue();
        assert_eq!(gate.admit(&shadow, 0), Ok(()));
        gate.set_killed(true);
        assert_eq!(gate.admit(&shadow, 0), Err(Category::Killed));
        assert_eq!((gate.waiting(), gate.bytes()), (2, 100));
    }

    #[test]
    fn the_rate_cap_holds() {
        let mut shadow = shadow();
        shadow.rate = Some(100.0);
        let mut gate = gate(&shadow);
        let mut passed = 0;
        // Ten simulated seconds: the epoch moves back a millisecond per try.
        for _ in 0..10_000 {
            gate.epoch -= Duration::from_millis(1);
            passed += u32::from(gate.rate_allows());
        }
        // Plus the burst, and a few for the run time of the test.
        assert!((1000..1100).contains(&passed), "{passed}");
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut head = HeadWriter::new(&Method::GET, "/", 0);
        head.line(b"x-cookie", b"sid=0");
        head.line(b"Cookie", b"xsid=1; sid=abc; z=2");
        let head = head.finish();
        assert_eq!(cookie(&head, "sid"), Some(&b"abc"[..]));
        assert_eq!(cookie(&head, "z"), Some(&b"2"[..]));
        assert_eq!(cookie(&head, "s"), None);
    }
}
