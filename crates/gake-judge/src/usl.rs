//! How throughput grows with concurrency: the universal scalability law, and what a plateau says.
//!
//! Gunther's law gives the throughput of N users (or requests in flight) as
//!
//! ```text
//! X(N) = γN / (1 + σ(N − 1) + κN(N − 1))
//! ```
//!
//! with γ the throughput of one, σ the contention (what must wait for its turn) and κ the
//! coherency (what must agree with all others). It peaks at N* = √((1 − σ)/κ).
//!
//! It is linear in disguise: N/X = a + b(N − 1) + cN(N − 1) with γ = 1/a, σ = b/a, κ = c/a. So the
//! fit in relative error, with σ and κ not negative, is a weighted least-squares problem of three
//! unknowns, solved exactly: no start values, no iteration, no local minimum.
//!
//! The law describes but proves nothing: a pool of a fixed size fits some σ and κ too. So the
//! size that would explain a plateau is computed too ([`pool`]).

use gake_core::random::SplitMix64;

use crate::random::{normal, quantile};

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslPoint {
    /// Users, or the mean number in flight.
    pub users: f64,
    /// Ok responses a second.
    pub throughput: f64,
    /// Their number, which bounds how well the throughput is known.
    pub count: u64,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranged {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end; infinite when it has none.
    pub high: f64,
}

/// A fitted law.
#[derive(Debug, Clone, PartialEq)]
pub struct Usl {
    /// γ: throughput of one user, a second.
    pub gamma: Ranged,
    /// σ: contention.
    pub sigma: Ranged,
    /// κ: coherency.
    pub kappa: Ranged,
    /// N*: where throughput peaks, when κ is not 0.
    pub peak_users: Option<Ranged>,
    /// The throughput there.
    pub peak_throughput: Option<Ranged>,
    /// Whether the points determine the peak: they reach far enough, and agree.
    pub peak_determined: bool,
}

/// Fewer points say nothing of three unknowns.
const POINTS_MIN: usize = 4;
/// Resamples behind an interval.
const RESAMPLES: usize = 400;
/// The peak is determined when its upper end is within this multiple of the highest point's users.
const REACH: f64 = 1.5;
/// A point is never known better than this, as a part of it.
const NOISE_MIN: f64 = 0.01;

impl Usl {
    /// The throughput of `users`.
    #[must_use]
    pub fn throughput(&self, users: f64) -> f64 {
        Line { a: 1.0, b: self.sigma.value, c: self.kappa.value }.throughput(users)
            * self.gamma.value
    }
}

/// N/X = a + b(N − 1) + cN(N − 1).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    a: f64,
    b: f64,
    c: f64,
}

impl Line {
    fn throughput(self, users: f64) -> f64 {
        users / (self.a + self.b * (users - 1.0) + self.c * users * (users - 1.0))
    }

    fn peak(self) -> f64 {
        let share = (self.a - self.b) / self.c;
        if share.is_nan() || self.c <= 0.0 { f64::INFINITY } else { share.max(1.0).sqrt() }
    }
}

/// Fits the law; `None` when the points are too few or hold no throughput.
#[must_use]
pub fn fit(points: &[UslPoint]) -> Option<Usl> {
    let points: Vec<UslPoint> =
        points.iter().copied().filter(|p| p.throughput > 0.0 && p.users > 0.0).collect();
    if points.len() < POINTS_MIN {
        return None;
    }
    let best = line(&points)?;
    let noise = noise(&points, best);
    let mut random = SplitMix64::new(points.len() as u64);
    let mut lines = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let again = points.iter().map(|point| {
            let expected = best.throughput(point.users);
            UslPoint { throughput: expected * (noise * normal(&mut random)).exp(), ..*point }
        });
        lines.extend(line(&again.collect::<Vec<_>>()));
    }
    let ranged = |of: &dyn Fn(Line) -> f64| {
        let mut values: Vec<f64> = lines.iter().map(|line| of(*line)).collect();
        values.sort_by(f64::total_cmp);
        Ranged { value: of(best), low: quantile(&values, 0.025), high: quantile(&values, 0.975) }
    };
    let peak = ranged(&Line::peak);
    let farthest = points.iter().map(|p| p.users).fold(0.0, f64::max);
    let has_peak = peak.value.is_finite();
    Some(Usl {
        gamma: ranged(&|line| 1.0 / line.a),
        sigma: ranged(&|line| line.b / line.a),
        kappa: ranged(&|line| line.c / line.a),
        peak_users: has_peak.then_some(peak),
        peak_throughput: has_peak.then(|| ranged(&|line| line.throughput(line.peak().min(1e9)))),
        peak_determined: has_peak && peak.high <= REACH * farthest,
    })
}

/// The relative deviation of the points from the law, as far as three unknowns leave one to see.
fn noise(points: &[UslPoint], line: Line) -> f64 {
    let off = |p: &UslPoint| (p.throughput / line.throughput(p.users)).ln().powi(2);
    let free = points.len().saturating_sub(3).max(1) as f64;
    let seen = (points.iter().map(off).sum::<f64>() / free).sqrt();
    let counted = points.iter().map(|p| 1.0 / (p.count.max(1) as f64).sqrt());
    let counted = counted.sum::<f64>() / points.len() as f64;
    seen.max(counted).max(NOISE_MIN)
}

/// The least-squares line in relative error with b, c ≥ 0: of the solutions in which some of them
/// are 0, the feasible one with the least error.
fn line(points: &[UslPoint]) -> Option<Line> {
    let free: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let feasible = free.iter().filter_map(|columns| {
        let x = least_squares(points, columns)?;
        (x[0] > 0.0 && x[1] >= 0.0 && x[2] >= 0.0).then_some(Line { a: x[0], b: x[1], c: x[2] })
    });
    let error = |line: &Line| {
        points.iter().map(|p| (p.throughput / line.throughput(p.users) - 1.0).powi(2)).sum::<f64>()
    };
    feasible.min_by(|a, b| error(a).total_cmp(&error(b)))
}

/// Solves the normal equations over the free columns; the others are 0.
fn least_squares(points: &[UslPoint], columns: &[usize]) -> Option<[f64; 3]> {
    let mut matrix = [[0.0; 4]; 3];
    for point in points {
        // Each row is divided by y = N/X, so that errors are relative.
        let n = point.users;
        let y = n / point.throughput;
        let row = [1.0 / y, (n - 1.0) / y, n * (n - 1.0) / y];
        for (i, column) in columns.iter().enumerate() {
            for (j, other) in columns.iter().enumerate() {
                matrix[i][j] += row[*column] * row[*other];
            }
            matrix[i][3] += row[*column];
        }
    }
    let solved = solve(&mut matrix, columns.len())?;
    let mut x = [0.0; 3];
    for (column, value) in columns.iter().zip(solved) {
        x[*column] = value;
    }
    Some(x)
}

/// Gaussian elimination with pivots on the first `size` rows; the last column is the right side.
fn solve(matrix: &mut [[f64; 4]; 3], size: usize) -> Option<[f64; 3]> {
    for i in 0..size {
        let pivot = (i..size).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        let scale = matrix[i][i];
        if scale.abs() < f64::MIN_POSITIVE {
            return None;
        }
        let row = matrix[i].map(|value| value / scale);
        matrix[i] = row;
        for (other, values) in matrix.iter_mut().enumerate().take(size) {
            if other != i {
                let factor = values[i];
                values.iter_mut().zip(row).for_each(|(value, own)| *value -= factor * own);
            }
        }
    }
    Some([matrix[0][3], matrix[1][3], matrix[2][3]])
}

/// A plateau of the throughput, and the pool that explains it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// Ok responses a second on the plateau.
    pub throughput: f64,
    /// Mean response time without load, in seconds.
    pub service: f64,
    /// How many are served at once: plateau × time without load (Little's law inside the pool).
    pub slots: Ranged,
}

/// Throughput within this part of the highest is on the plateau.
const PLATEAU: f64 = 0.92;
/// On a plateau, response is at least this multiple of the one without load.
const QUEUED: f64 = 1.5;
/// Below the plateau a request takes as long as alone, give or take this: nobody waits before every
/// slot is taken.
const ALONE: f64 = 1.3;
/// A rung is below the plateau up to this part of the slots.
const BELOW: f64 = 0.7;

/// The pool that explains a plateau: more users, no more throughput, longer responses; while below
/// it a request takes as long as alone, and the target has CPU to spare on it. A server that runs
/// out of CPU or slows down gradually has a plateau too, but no pool. `None` without one, or if
/// the CPU is not known. `rungs` are users, throughput and count, mean response, and whether
/// the target had CPU to spare; users rising.
#[must_use]
pub fn pool(rungs: &[(UslPoint, f64, Option<bool>)]) -> Option<Pool> {
    let (first, service, _) = rungs.first().copied()?;
    let best = rungs.iter().map(|(p, ..)| p.throughput).fold(0.0, f64::max);
    let flat: Vec<_> = rungs.iter().skip_while(|(p, ..)| p.throughput < PLATEAU * best).collect();
    let queued = flat.last().is_some_and(|(_, response, _)| *response > QUEUED * service);
    // Neither falling throughput nor a single point is a plateau.
    let falls = flat.iter().any(|(p, ..)| p.throughput < PLATEAU * best);
    let idle = flat.iter().all(|(.., idle)| *idle == Some(true));
    if flat.len() < 2 || !queued || falls || !idle || service <= 0.0 {
        return None;
    }
    let throughput = flat.iter().map(|(p, ..)| p.throughput).sum::<f64>() / flat.len() as f64;
    let slots = throughput * service;
    let below = rungs.iter().filter(|(p, ..)| p.users <= BELOW * slots);
    if below.clone().any(|(_, response, _)| *response > ALONE * service) {
        return None;
    }
    let count: u64 = flat.iter().map(|(p, ..)| p.count).sum();
    let error = (1.0 / count.max(1) as f64 + 1.0 / first.count.max(1) as f64).sqrt();
    let aside = (1.96 * error).exp();
    Some(Pool {
        throughput,
        service,
        slots: Ranged { value: slots, low: slots / aside, high: slots * aside },
    })
}

/// By how much users and throughput × response disagree, as a part of the users: Little's law.
#[must_use]
pub fn littles_gap(users: f64, throughput: f64, response: f64) -> f64 {
    if users > 0.0 { (throughput * response / users - 1.0).abs() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a law, each off by a factor drawn around 1.
    fn points(sigma: f64, kappa: f64, users: &[f64], noise: f64, seed: u64) -> Vec<UslPoint> {
        let mut random = SplitMix64::new(seed);
        let law = Line { a: 0.01, b: 0.01 * sigma, c: 0.01 * kappa };
        let point = |n: &f64| UslPoint {
            users: *n,
            throughput: law.throughput(*n) * (noise * normal(&mut random)).exp(),
            count: 10_000,
        };
        users.iter().map(point).collect()
    }

    fn doubling(last: f64) -> Vec<f64> {
        let mut users = vec![1.0];
        while users[users.len() - 1] < last {
            users.push(users[users.len() - 1] * std::f64::consts::SQRT_2);
        }
        users
    }

    #[test]
    fn an_exact_law_is_found_exactly() {
        let law = fit(&points(0.02, 0.0005, &doubling(128.0), 0.0, 1)).unwrap();
        assert!((law.gamma.value - 100.0).abs() < 1e-6);
        assert!((law.sigma.value - 0.02).abs() < 1e-9);
        assert!((law.kappa.value - 0.0005).abs() < 1e-9);
        let peak = law.peak_users.unwrap();
        assert!((peak.value - 44.27).abs() < 0.01, "{peak:?}");
        assert!(law.peak_determined);
        assert!((law.throughput(1.0) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn with_noise_the_interval_covers_the_peak() {
        let runs = 200;
        let mut covered = 0;
        for seed in 0..runs {
            let law = fit(&points(0.02, 0.0005, &doubling(128.0), 0.1, seed)).unwrap();
            let peak = law.peak_users.unwrap();
            let throughput = law.peak_throughput.unwrap();
            assert!((throughput.value / 1_568.0 - 1.0).abs() < 0.25, "{throughput:?}");
            covered += i32::from(peak.low <= 44.27 && 44.27 <= peak.high);
        }
        // Nominally 190; fifteen points leave the noise itself uncertain.
        assert!(covered > 165, "{covered} of {runs}");
    }

    #[test]
    fn points_before_the_peak_do_not_determine_it() {
        let told = (0..50)
            .filter(|seed| {
                fit(&points(0.02, 0.0005, &doubling(16.0), 0.1, *seed)).unwrap().peak_determined
            })
            .count();
        // By luck one in some may look determined.
        assert!(told <= 10, "{told}");
    }

    #[test]
    fn a_server_without_contention_has_none() {
        let law = fit(&points(0.0, 0.0, &doubling(16.0), 0.0, 1)).unwrap();
        assert!(law.sigma.value < 1e-9 && law.kappa.value < 1e-9);
        assert!(!law.peak_determined);
        assert_eq!(fit(&points(0.0, 0.0, &[1.0, 2.0], 0.0, 1)), None);
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn a_plateau_is_a_pool() {
        let rung = |users: f64| {
            let (throughput, response) = crate::queueing::closed_fixed(200, 5.0, users as u32);
            (UslPoint { users, throughput, count: 2_000 }, response, Some(true))
        };
        let rungs: Vec<_> = doubling(1_024.0).iter().map(|n| rung(n.floor())).collect();
        let found = pool(&rungs).unwrap();
        assert!((found.slots.value - 200.0).abs() < 2.0, "{found:?}");
        // Before the plateau, and on a fall, there is none.
        assert_eq!(pool(&rungs[..10]), None);
        let mut falling = rungs.clone();
        falling.push((UslPoint { users: 2_000.0, throughput: 20.0, count: 100 }, 50.0, Some(true)));
        assert_eq!(pool(&falling), None);
        // A target without CPU to spare, or an unknown one.
        for idle in [Some(false), None] {
            let busy = rungs.iter().map(|(point, response, _)| (*point, *response, idle));
            assert_eq!(pool(&busy.collect::<Vec<_>>()), None, "{idle:?}");
        }
        assert!(littles_gap(300.0, 40.0, 7.5) < 1e-12);
    }

    #[test]
    fn a_plateau_that_is_reached_bit_by_bit_is_no_pool() {
        // Contention: every further user makes all others slower, from the second on.
        let law = Line { a: 0.01, b: 0.002, c: 0.0 };
        let rung = |users: f64| {
            let throughput = law.throughput(users);
            (UslPoint { users, throughput, count: 2_000 }, users / throughput, Some(true))
        };
        let rungs: Vec<_> = doubling(1_024.0).into_iter().map(rung).collect();
        assert_eq!(pool(&rungs), None);
    }
}
