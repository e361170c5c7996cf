//! Virtual servers: a FIFO queue for `slots` servers, simulated arrival by arrival without a socket
//! or a clock.
//!
//! The capacities of the variants are known from queueing theory or from runs of 3·10⁷ requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A non-negative instant in seconds, ordered by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Instant(u64);

impl Instant {
    fn new(seconds: f64) -> Self {
        Self(seconds.max(0.0).to_bits())
    }

    fn seconds(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// The distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Service {
    Exponential,
    Fixed,
    /// Lognormal with this coefficient of variation.
    Lognormal(f64),
}

/// A server that becomes slow when a request has waited `trigger` seconds, and recovers when fewer
/// than about `heal` requests a second have arrived for 5 s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metastable {
    pub trigger: f64,
    pub slower: f64,
    pub heal: f64,
}

/// The parameters of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub slots: usize,
    /// Maximum requests in the system, above which they are refused; 0 for no limit.
    pub places: usize,
    /// Mean service time, in seconds.
    pub service: f64,
    pub kind: Service,
    /// Contention and coherency of the universal scalability law.
    pub sigma: f64,
    pub kappa: f64,
    /// Length of a stall, about every 9.9 s; 0 for none.
    pub stall: f64,
    pub metastable: Option<Metastable>,
    /// Seconds of wall time in which services take this many times as long.
    pub cold: (f64, f64),
    /// Standard deviation of the logarithm of a random factor per trial.
    pub drift: f64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            slots: 8,
            places: 0,
            service: 0.02,
            kind: Service::Exponential,
            sigma: 0.0,
            kappa: 0.0,
            stall: 0.0,
            metastable: None,
            cold: (0.0, 1.0),
            drift: 0.0,
        }
    }
}

/// The outcome of one arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    pub arrival: f64,
    pub latency: f64,
    pub refused: bool,
}

/// The arrival process.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// A Poisson process of this rate.
    Open(f64),
    /// Users, each of which sends its next request when the last has ended.
    Closed(usize),
}

/// Seconds between stalls, and the shape of their gamma distribution.
const STALL_GAP: f64 = 9.9;
const STALL_SHAPE: u32 = 4;
/// Seconds that a refusal takes.
const REFUSAL: f64 = 0.001;
/// Quiet seconds after which a metastable server recovers.
const HEAL_AFTER: f64 = 5.0;

/// The state of a server.
#[derive(Debug, Clone)]
pub struct Server {
    model: Model,
    random: Xoshiro256PlusPlus,
    /// Wall time.
    pub now: f64,
    /// When each slot becomes free, in service time (which stops while the server stalls).
    free: BinaryHeap<Reverse<Instant>>,
    /// When the requests in the system leave, in service time.
    leaving: BinaryHeap<Reverse<Instant>>,
    last_departure: f64,
    stalls: Vec<f64>,
    stalled: usize,
    factor: f64,
    slow: bool,
    recent: f64,
    last_arrival: f64,
    quiet_since: Option<f64>,
}

impl Server {
    pub fn new(model: Model, seed: u64) -> Self {
        let mut server = Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0.0,
            free: (0..model.slots).map(|_| Reverse(Instant(0))).collect(),
            leaving: BinaryHeap::new(),
            last_departure: 0.0,
            stalls: Vec::new(),
            stalled: 0,
            factor: 1.0,
            slow: false,
            recent: 0.0,
            last_arrival: 0.0,
            quiet_since: None,
            model,
        };
        if server.model.stall > 0.0 {
            let first = server.unit() * STALL_GAP;
            server.stalls.push(first);
        }
        server
    }

    /// Draws a new factor for a new trial.
    pub fn disturb(&mut self) {
        if self.model.drift > 0.0 {
            self.factor = (self.model.drift * self.normal()).exp();
        }
    }

    /// Runs arrivals until `end`.
    pub fn load(&mut self, arrivals: &Arrivals, end: f64, done: &mut Vec<Done>) {
        let mut users: BinaryHeap<Reverse<Instant>> = match arrivals {
            Arrivals::Open(_) => BinaryHeap::new(),
            Arrivals::Closed(users) => {
                (0..*users).map(|_| Reverse(Instant::new(self.now))).collect()
            }
        };
        loop {
            let at = match (arrivals, users.pop()) {
                (Arrivals::Open(rate), _) => self.now + self.exponential() / rate,
                (Arrivals::Closed(_), Some(Reverse(user))) => user.seconds().max(self.now),
                (Arrivals::Closed(_), None) => end,
            };
            if at >= end {
                break;
            }
            self.now = at;
            let outcome = self.arrive();
            if let Arrivals::Closed(_) = arrivals {
                users.push(Reverse(Instant::new(at + outcome.latency)));
            }
            done.push(outcome);
        }
        self.now = end;
    }

    /// Wall time at which the server is empty without further arrivals.
    pub fn drained(&self) -> f64 {
        self.last_departure.max(self.now)
    }

    fn arrive(&mut self) -> Done {
        let clock = self.service_clock();
        while self.leaving.peek().is_some_and(|leaving| leaving.0.seconds() <= clock) {
            self.leaving.pop();
        }
        self.watch_load();
        let inside = self.leaving.len();
        if self.model.places > 0 && inside >= self.model.places {
            return Done { arrival: self.now, latency: REFUSAL, refused: true };
        }
        let free = self.free.pop().map_or(0.0, |slot| slot.0.seconds());
        let start = if inside < self.model.slots { clock } else { free.max(clock) };
        let busy = if inside < self.model.slots { inside + 1 } else { self.model.slots } as f64;
        let mut service = self.draw_service();
        service *= 1.0 + self.model.sigma * (busy - 1.0) + self.model.kappa * busy * (busy - 1.0);
        if let Some(metastable) = self.model.metastable {
            self.slow |= start - clock > metastable.trigger;
            if self.slow {
                service *= metastable.slower;
            }
        }
        let leaves = start + service;
        self.free.push(Reverse(Instant::new(leaves)));
        self.leaving.push(Reverse(Instant::new(leaves)));
        let wall = self.wall(leaves);
        self.last_departure = self.last_departure.max(wall);
        Done { arrival: self.now, latency: wall - self.now, refused: false }
    }

    /// Service time now: wall time without past stalls; it stops during one.
    fn service_clock(&mut self) -> f64 {
        if self.model.stall == 0.0 {
            return self.now;
        }
        let length = self.model.stall;
        while self.now >= self.stall(self.stalled) + (self.stalled + 1) as f64 * length {
            self.stalled += 1;
        }
        (self.now - self.stalled as f64 * length).min(self.stall(self.stalled))
    }

    /// Wall time of an instant in service time.
    fn wall(&mut self, clock: f64) -> f64 {
        if self.model.stall == 0.0 {
            return clock;
        }
        let mut stalls = self.stalled;
        while self.stall(stalls) < clock {
            stalls += 1;
        }
        clock + stalls as f64 * self.model.stall
    }

    fn stall(&mut self, number: usize) -> f64 {
        while self.stalls.len() <= number {
            let gap: f64 = (0..STALL_SHAPE).map(|_| self.exponential()).sum();
            let last = self.stalls.last().copied().unwrap_or(0.0);
            self.stalls.push(last + gap * STALL_GAP / f64::from(STALL_SHAPE));
        }
        self.stalls[number]
    }

    fn watch_load(&mut self) {
        let Some(metastable) = self.model.metastable else { return };
        self.recent *= (self.last_arrival - self.now).exp();
        if self.recent < metastable.heal {
            let since = *self.quiet_since.get_or_insert(self.last_arrival);
            if self.now - since >= HEAL_AFTER {
                self.slow = false;
            }
        } else {
            self.quiet_since = None;
        }
        self.recent += 1.0;
        self.last_arrival = self.now;
        if self.recent >= metastable.heal {
            self.quiet_since = None;
        }
    }

    fn draw_service(&mut self) -> f64 {
        let (until, times) = self.model.cold;
        let cold = if self.now < until { times } else { 1.0 };
        let mean = self.model.service * self.factor * cold;
        match self.model.kind {
            Service::Exponential => mean * self.exponential(),
            Service::Fixed => mean,
            Service::Lognormal(variation) => {
                let variance = (variation * variation).ln_1p();
                mean * (variance.sqrt() * self.normal() - variance / 2.0).exp()
            }
        }
    }

    fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
