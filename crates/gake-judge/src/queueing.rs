//! Exact results of queueing theory, to test searches and explain plateaus.
//!
//! Notation: λ arrivals a second, c servers, mean service time s, offered load a = λ·s (Erlangs).

/// The share of arrivals that find all `servers` busy and are lost (Erlang B):
/// B(0) = 1, B(k) = a·B(k−1)/(k + a·B(k−1)).
#[must_use]
pub fn erlang_b(servers: u32, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b))
}

/// The share of arrivals that must wait in an unbounded queue (Erlang C): C = c·B/(c − a·(1 − B));
/// 1 from saturation on.
#[must_use]
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    let c = f64::from(servers);
    if offered >= c {
        return 1.0;
    }
    let b = erlang_b(servers, offered);
    c * b / (c - offered * (1.0 - b))
}

/// P(response > `time`) of M/M/c, first come, first served. With μ = 1/s and η = cμ − λ it is
///
/// e^(−μt)·(1 − C) + C·(η·e^(−μt) − μ·e^(−ηt))/(η − μ)
#[must_use]
pub fn mmc_tail(servers: u32, service: f64, rate: f64, time: f64) -> f64 {
    let mu = 1.0 / service;
    let eta = f64::from(servers) * mu - rate;
    if eta <= 0.0 {
        return 1.0;
    }
    let wait = erlang_c(servers, rate * service);
    let service_tail = (-mu * time).exp();
    if (eta - mu).abs() < 1e-9 * mu {
        return service_tail * (1.0 + wait * mu * time);
    }
    (1.0 - wait) * service_tail
        + wait * (eta * service_tail - mu * (-eta * time).exp()) / (eta - mu)
}

/// P(waiting time > `time`) of M/D/1 with utilization ρ = λ·s < 1 (Erlang 1909):
///
/// P(W ≤ t) = (1 − ρ)·Σ_{k=0}^{⌊t/s⌋} e^(−λ(ks − t))·(λ(ks − t))^k / k!
///
/// The terms alternate and grow: valid for t up to some tens of service times.
#[must_use]
pub fn md1_wait_tail(service: f64, rate: f64, time: f64) -> f64 {
    let utilization = rate * service;
    if utilization >= 1.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    let mut factorial = 1.0;
    for k in 0..=(time / service).floor() as u32 {
        if k > 0 {
            factorial *= f64::from(k);
        }
        let x = rate * (f64::from(k) * service - time);
        sum += (-x).exp() * x.powi(k as i32) / factorial;
    }
    (1.0 - (1.0 - utilization) * sum).clamp(0.0, 1.0)
}

/// The distribution of the number in the system of M/M/c/K, `places` being K: π_0 ... π_K.
#[must_use]
pub fn mmck(servers: u32, places: u32, offered: f64) -> Vec<f64> {
    let mut weights = vec![1.0];
    for n in 1..=places {
        let last = weights[n as usize - 1];
        weights.push(last * offered / f64::from(n.min(servers)));
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// The share of arrivals to M/M/c/K (c ≥ 2) that are refused or take longer than `time`.
///
/// An arrival that finds n < c busy takes an exponential time; with n ≥ c it first waits an
/// Erlang(n − c + 1, cμ) time.
#[must_use]
pub fn mmck_tail(servers: u32, places: u32, service: f64, rate: f64, time: f64) -> f64 {
    let states = mmck(servers, places, rate * service);
    let mu = 1.0 / service;
    let drain = f64::from(servers) * mu;
    let service_tail = (-mu * time).exp();
    let mut tail = states[places as usize];
    for n in 0..places {
        let late = if n < servers {
            service_tail
        } else {
            let stages = n - servers + 1;
            // P(W > t) + ∫ f_W(x)·e^(−μ(t − x)) dx over x < t
            let waits = erlang_tail(stages, drain * time);
            let slower = (drain / (drain - mu)).powi(stages as i32);
            waits + slower * service_tail * (1.0 - erlang_tail(stages, (drain - mu) * time))
        };
        tail += states[n as usize] * late;
    }
    tail
}

/// P(X > x) of an Erlang distribution of `stages` stages of rate 1: Σ_{j<stages} e^(−x)·x^j/j!.
fn erlang_tail(stages: u32, x: f64) -> f64 {
    let mut term = (-x).exp();
    let mut sum = 0.0;
    for j in 0..stages {
        sum += term;
        term *= x / f64::from(j + 1);
    }
    sum
}

/// Throughput and response time of `users` in a closed loop without think time on `servers` with
/// a fixed service time: X = min(N, c)/s, R = s·max(1, N/c).
#[must_use]
pub fn closed_fixed(servers: u32, service: f64, users: u32) -> (f64, f64) {
    let busy = f64::from(users.min(servers));
    (busy / service, service * (f64::from(users) / f64::from(servers)).max(1.0))
}

/// The rate at which a rising `tail` reaches `share`, between `low` and `high`, by bisection.
#[must_use]
pub fn capacity(tail: impl Fn(f64) -> f64, share: f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if tail(middle) > share {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{value} is not {expected}");
    }

    #[test]
    fn erlangs_formulas() {
        // Tables of Erlang B and C: 10 servers, 7 Erlangs.
        close(erlang_b(10, 7.0), 0.0787, 1e-4);
        close(erlang_c(10, 7.0), 0.2217, 1e-4);
        // One server: B = a/(1 + a), C = a.
        close(erlang_b(1, 0.5), 1.0 / 3.0, 1e-12);
        close(erlang_c(1, 0.5), 0.5, 1e-12);
        assert_eq!(erlang_c(4, 4.0), 1.0);
    }

    #[test]
    fn the_acceptance_values_of_the_lab() {
        for (servers, service, time, rate) in [
            (8, 0.02, 0.15, 363.185),
            (16, 0.01, 0.06, 1_488.4),
            (2, 0.03, 0.4, 54.8),
            (1, 0.002, 0.02, 269.741),
        ] {
            let saturated = f64::from(servers) / service;
            let found = capacity(|r| mmc_tail(servers, service, r, time), 0.01, 0.0, saturated);
            close(found, rate, rate * 1e-3);
        }
        // One server: P(R > t) = e^(−(μ − λ)t).
        close(mmc_tail(1, 0.002, 300.0, 0.01), (-2.0f64).exp(), 1e-9);
        assert_eq!(mmc_tail(1, 0.002, 500.0, 0.01), 1.0);
    }

    #[test]
    fn a_bounded_queue_and_a_pool_without_one() {
        let late = |r| mmck_tail(8, 40, 0.02, r, 0.15);
        let refused = |r: f64| mmck(8, 40, r * 0.02)[40];
        let found = capacity(late, 0.01, 1.0, 800.0).min(capacity(refused, 0.001, 1.0, 800.0));
        close(found, 348.678, 0.01);
        // Insensitivity: the loss depends only on the mean service time.
        close(capacity(|r| erlang_b(20, r * 0.02), 0.001, 1.0, 1_000.0), 470.573, 0.01);
        // With many places it is the queue without a bound.
        close(mmck_tail(8, 400, 0.02, 300.0, 0.1), mmc_tail(8, 0.02, 300.0, 0.1), 1e-6);
    }

    #[test]
    fn fixed_service() {
        // P(W > 0) = ρ, and the mean wait is ρs/(2(1 − ρ)), from the area under the tail.
        close(md1_wait_tail(1.0, 0.6, 0.0), 0.6, 1e-12);
        let area: f64 = (0..40_000).map(|i| md1_wait_tail(1.0, 0.6, f64::from(i) * 5e-4)).sum();
        close(area * 5e-4, 0.75, 2e-3);
        assert_eq!(closed_fixed(200, 5.0, 300), (40.0, 7.5));
        assert_eq!(closed_fixed(200, 5.0, 100), (20.0, 5.0));
    }
}
