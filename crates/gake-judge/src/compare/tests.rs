//! What a comparison says of simulated runs, over many repetitions.
//!
//! Seconds are correlated: a second's latencies share a level that follows an autoregression.

use gake_core::clock::{Nanos, SECOND};
use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::plan::ExpectedStatus;
use gake_core::random::SplitMix64;
use gake_core::record::{Counts, Tally};

use super::normal::normal_quantile;
use super::pieces::{PartPiece, Piece, Times};
use super::*;
use crate::testing::{MS, RunSample as Outcomes, answered, healthy};

const SECONDS: u64 = 60;
const RATE: usize = 80;

/// A server: its level's correlation and deviation, its samples' own deviation, its share of errors.
#[derive(Clone, Copy)]
struct Server {
    median: f64,
    correlation: f64,
    level: f64,
    own: f64,
    errors: f64,
}

const STEADY: Server =
    Server { median: 10e6, correlation: 0.5, level: 0.02, own: 0.2, errors: 0.01 };

fn normal(random: &mut SplitMix64) -> f64 {
    normal_quantile(uniform(random))
}

fn uniform(random: &mut SplitMix64) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The times and failures of each second of a run.
fn simulate(server: Server, seconds: u64, random: &mut SplitMix64) -> Vec<Vec<(Nanos, bool)>> {
    let mut level = normal(random);
    let one = |_| {
        let shock = (1.0 - server.correlation.powi(2)).sqrt() * normal(random);
        level = server.correlation * level + shock;
        let request = |_| {
            let took = server.median * (server.level * level + server.own * normal(random)).exp();
            (took as Nanos, uniform(random) < server.errors)
        };
        (0..RATE).map(request).collect()
    };
    (0..seconds).map(one).collect()
}

fn tally(requests: &[(Nanos, bool)]) -> Tally {
    let mut tally = Tally::new(0);
    for &(took, failed) in requests {
        let status = if failed { 503 } else { 200 };
        tally.record(&answered(10_000, took, took, status), &ExpectedStatus::default());
    }
    tally
}

fn whole(seconds: &[Vec<(Nanos, bool)>]) -> Run {
    let mut run = healthy();
    run.tally = tally(&seconds.concat());
    let time = seconds.len() as u64 * SECOND;
    (run.measured, run.sending, run.completing, run.elapsed) = (time, time, time, time);
    run.asked_rate = Some(RATE as f64);
    run.tally.in_flight_ns = crate::stats::fired_time(&run.tally);
    run
}

/// A run with its seconds, which hold what [`Pieces::add`] would make of them; thousands of
/// histograms of a second would take a minute.
fn sampled(seconds: &[Vec<(Nanos, bool)>]) -> RunSample {
    let run = whole(seconds);
    let mut pieces = Pieces::new(&run, &ComparedFigures::usual());
    let whole = &pieces.parts[0];
    // A quantile is the highest value of its bucket, or the largest of all.
    let bounds = [&whole.response, &whole.service].map(|quantiles| quantiles.map(|q| q as Nanos));
    for requests in seconds {
        let times = |late: Nanos, bounds: [Nanos; 5]| Times {
            count: requests.len() as f64,
            sum: requests.iter().map(|request| (request.0 - late) as f64).sum(),
            beyond: bounds.map(|bound| {
                requests.iter().filter(|request| request.0 - late > bound).count() as f64
            }),
        };
        let failed = requests.iter().filter(|request| request.1).count() as u64;
        let sent = requests.len() as u64;
        pieces.pieces.push(Piece {
            seconds: 1,
            weight: RATE as f64,
            parts: vec![PartPiece {
                counts: Counts { sent, failed, ok: sent - failed, ..Counts::default() },
                response: times(0, bounds[0]),
                service: times(10_000, bounds[1]),
                ..PartPiece::default()
            }],
        });
    }
    RunSample { run, pieces }
}

fn known(sample: &RunSample) -> Known<'_> {
    Known { plan: &sample.run.plan, series: &sample.run.tally.series }
}

fn judged(a: &RunSample, b: &RunSample, question: &Question) -> Comparison {
    let figures = ComparedFigures::of(question, [known(a), known(b)]).unwrap();
    compare(a, b, &figures, question)
}

fn sample(server: Server, random: &mut SplitMix64) -> RunSample {
    sampled(&simulate(server, SECONDS, random))
}

#[test]
fn simulated_seconds_are_those_that_are_recorded() {
    let seconds = simulate(STEADY, 9, &mut SplitMix64::new(5));
    let sample = sampled(&seconds);
    let mut pieces = Pieces::new(&sample.run, &ComparedFigures::usual());
    for (at, requests) in (0..).zip(&seconds) {
        pieces.add(at, Some(RATE as f64), &tally(requests), &[]);
    }
    assert_eq!(pieces.pieces.len(), 9);
    for (made, recorded) in sample.pieces.pieces.iter().zip(&pieces.pieces) {
        let (made, recorded) = (&made.parts[0], &recorded.parts[0]);
        assert_eq!(made.response, recorded.response);
        assert_eq!(made.service, recorded.service);
        assert_eq!((made.counts.sent, made.counts.ok), (recorded.counts.sent, recorded.counts.ok));
    }
}

/// The largest number of `n` that a chance of `p` each gives, but for one time in ten thousand.
fn at_most(n: usize, p: f64) -> usize {
    let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    (mean + 3.8 * deviation).ceil() as usize
}

/// Comparisons of a server with itself that found a difference, and that were inconclusive.
fn false_alarms(server: Server, repetitions: usize, questions: &[Question]) -> Vec<(usize, usize)> {
    let mut counts = vec![(0, 0); questions.len()];
    for seed in 0..repetitions as u64 {
        let mut random = SplitMix64::new(seed);
        let (a, b) = (sample(server, &mut random), sample(server, &mut random));
        for ((alarms, open), question) in counts.iter_mut().zip(questions) {
            let found = judged(&a, &b, question);
            let differs = |f: &Figure| {
                matches!(f.verdict, ComparisonOutcome::Better | ComparisonOutcome::Worse)
            };
            *alarms += usize::from(found.figures.iter().any(differs));
            *open += usize::from(found.outcome == ComparisonOutcome::Inconclusive);
        }
    }
    counts
}

#[test]
fn a_server_does_not_differ_from_itself_more_often_than_said() {
    let repetitions = 150;
    let question = [Question { tolerance: 0.1, ..Question::default() }];
    for correlation in [0.0, 0.5, 0.7] {
        let server = Server { correlation, ..STEADY };
        let (alarms, open) = false_alarms(server, repetitions, &question)[0];
        assert!(alarms <= at_most(repetitions, ALPHA), "{alarms} alarms at ρ {correlation}");
        // Silence is no merit when nothing can be said.
        assert!(open < repetitions / 4, "{open} left open at ρ {correlation}");
    }
}

#[test]
fn one_figure_alone_keeps_its_level_too() {
    // Without other figures there is nothing to hide behind: 5 % are alarms, and not many more.
    let repetitions = 300;
    let names = ["response.p50", "response.p99", "response.mean", "errors"];
    let questions =
        names.map(|name| Question { figures: vec![name.to_owned()], ..Question::default() });
    let counts = false_alarms(STEADY, repetitions, &questions);
    for (name, (alarms, _)) in names.iter().zip(counts) {
        assert!(alarms <= at_most(repetitions, ALPHA), "{alarms} alarms of {name}");
    }
}

#[test]
fn a_change_that_can_be_detected_is_found() {
    let repetitions = 120;
    let slower = Server { median: STEADY.median * 1.05, ..STEADY };
    let names = ["response.p50", "response.mean", "service.p90"];
    let mut counts = names.map(|_| (0, 0));
    for seed in 0..repetitions as u64 {
        let mut random = SplitMix64::new(0xdead + seed);
        let (a, b) = (sample(STEADY, &mut random), sample(slower, &mut random));
        let comparison = judged(&a, &b, &Question::default());
        for (name, (able, found)) in names.iter().zip(&mut counts) {
            let figure = comparison.figures.iter().find(|f| f.name == *name).unwrap();
            if figure.change.unwrap().detectable.is_some_and(|least| least <= 0.05) {
                *able += 1;
                *found += usize::from(figure.verdict == ComparisonOutcome::Worse);
            }
        }
    }
    for (name, (able, found)) in names.iter().zip(counts) {
        // It says that it can in most of the repetitions, and is right in 80 % of those.
        assert!(able > repetitions / 2, "{name}: only {able}");
        assert!(able - found <= at_most(able, 1.0 - POWER), "{name}: {found} of {able}");
    }
}

#[test]
fn a_clear_change_fails_and_a_small_one_does_not() {
    let question = Question::default();
    let of = |factor: f64, errors: f64| {
        let mut random = SplitMix64::new(7);
        let a = sample(STEADY, &mut random);
        let server = Server { median: STEADY.median * factor, errors, ..STEADY };
        judged(&a, &sample(server, &mut random), &question)
    };
    let worse = of(1.2, 0.01);
    assert_eq!(worse.outcome, ComparisonOutcome::Worse);
    assert!(worse.conclusion.contains("response.p"), "{}", worse.conclusion);
    assert_eq!(of(0.8, 0.01).outcome, ComparisonOutcome::Better);
    let failing = of(1.0, 0.08);
    assert_eq!(failing.outcome, ComparisonOutcome::Worse);
    let errors = failing.figures.iter().find(|figure| figure.name == "errors").unwrap();
    assert!(errors.beyond && errors.verdict == ComparisonOutcome::Worse, "{errors:?}");
    assert!((errors.change.unwrap().estimate - 0.07).abs() < 0.015, "{errors:?}");
}

#[test]
fn taking_turns_cancels_what_hits_both() {
    // The level wanders by 30 %, far more than the 5 % between the sides.
    let (mut apart, mut pairs) = (0, 0);
    for seed in 0..30 {
        let mut random = SplitMix64::new(seed);
        let mut slices = Vec::new();
        let mut level = 0.0;
        for _ in 0..20 {
            level = 0.9 * level + 0.13 * normal(&mut random);
            let mut side = |factor: f64| {
                let median = STEADY.median * factor * f64::exp(level);
                let server = Server { median, level: 0.0, errors: 0.0, ..STEADY };
                simulate(server, 2, &mut random)
            };
            slices.push([side(1.0), side(1.05)]);
        }
        let question = Question { figures: vec!["response.p50".into()], ..Question::default() };
        let runs: Vec<_> = slices.iter().map(|[a, b]| (whole(a), whole(b))).collect();
        let side = |i: usize| {
            let seconds = slices.iter().flat_map(|pair: &[Vec<_>; 2]| pair[i].clone());
            sampled(&seconds.collect::<Vec<_>>())
        };
        let (a, b) = (side(0), side(1));
        let figures = ComparedFigures::of(&question, [known(&a), known(&b)]).unwrap();
        let turns = compare_pairs([&a.run, &b.run], &runs, &figures, &question);
        pairs += usize::from(turns.figures[0].verdict == ComparisonOutcome::Worse);
        apart +=
            usize::from(judged(&a, &b, &question).figures[0].verdict == ComparisonOutcome::Worse);
    }
    assert!(pairs >= 28 && apart <= 3, "{pairs} in pairs, {apart} apart");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut random = SplitMix64::new(1);
    let a = sample(STEADY, &mut random);
    let mut short = a.clone();
    short.pieces = Pieces::new(&a.run, &ComparedFigures::usual());
    let found = judged(&a, &short, &Question::default());
    assert_eq!(found.outcome, ComparisonOutcome::Inconclusive);
    assert!(found.conclusion.contains("whole seconds"), "{}", found.conclusion);
    let mut invalid = a.clone();
    invalid.run.asked_rate = Some(10_000.0);
    let found = judged(&invalid, &a, &Question::default());
    assert_eq!(found.outcome, ComparisonOutcome::Inconclusive);
    assert!(found.conclusion.ends_with("A is invalid"), "{}", found.conclusion);
    let mut other = a.clone();
    other.run.plan.target = "elsewhere".to_owned();
    assert_eq!(judged(&a, &other, &Question::default()).warnings.len(), 1);
    let nothing = Outcomes::default().run();
    let empty =
        RunSample { pieces: Pieces::new(&nothing, &ComparedFigures::usual()), run: nothing };
    assert_eq!(
        judged(&empty, &empty, &Question::default()).outcome,
        ComparisonOutcome::Inconclusive
    );
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let sample = sample(STEADY, &mut SplitMix64::new(3));
    let found = judged(&sample, &sample, &Question { tolerance: 0.1, ..Question::default() });
    assert_eq!(found.outcome, ComparisonOutcome::NoDifference, "{found:#?}");
    assert!(found.figures.iter().all(|f| f.change.is_none_or(|c| c.estimate == 0.0)));
    // p99.9 of 4,800 samples is nobody's guess.
    let tail = found.figures.iter().find(|f| f.name == "response.p99.9").unwrap();
    assert_eq!((tail.verdict, tail.change), (ComparisonOutcome::Inconclusive, None));
    let made = || Pieces::new(&Outcomes::of(5, MS).run(), &ComparedFigures::usual());
    assert_eq!(made(), made());
}

/// A run of 60 s with a label and metrics of its own: a trend of times and one of numbers, a rate
/// and a counter.
fn scripted(slower: f64, failing: f64, random: &mut SplitMix64) -> (Run, Vec<Tally>) {
    let define = |name: &str, kind, unit| {
        std::sync::Arc::new(Definition { name: name.to_owned(), kind, unit })
    };
    let login = define("login_time", MetricKind::Trend, MetricUnit::Time);
    let basket = define("basket_size", MetricKind::Trend, MetricUnit::Number);
    let checks = define("checks", MetricKind::Rate, MetricUnit::Number);
    let sold = define("sold", MetricKind::Counter, MetricUnit::Number);
    let tags = |name: &str| Tags::new([("name", name)]);
    let mut all = Tally::new(2);
    let mut seconds = Vec::new();
    for _ in 0..60 {
        let mut tally = Tally::new(2);
        for i in 0..RATE as u16 {
            let took = (10e6 * (0.2 * normal(random)).exp()) as Nanos;
            let mut outcome = answered(10_000, took, took, 200);
            outcome.exchange.label = i % 2;
            tally.record(&outcome, &ExpectedStatus::default());
            let name = if i % 2 == 0 { "a" } else { "b" };
            let factor = if i % 2 == 0 { slower } else { 1.0 };
            let mut add = |metric, value| {
                let id = tally.series.intern(metric, &tags(name));
                tally.series.add(id, value, 0);
            };
            add(&login, took as f64 * factor);
            add(&basket, 0.5 + uniform(random) * slower);
            add(&checks, f64::from(uniform(random) >= failing));
            add(&sold, slower);
        }
        all.merge(&tally);
        seconds.push(tally);
    }
    let mut run = healthy();
    run.plan.labels = vec!["a".to_owned(), "b".to_owned()];
    let time = 60 * SECOND;
    (run.measured, run.sending, run.completing, run.elapsed) = (time, time, time, time);
    run.asked_rate = Some(RATE as f64);
    run.tally = all;
    run.tally.in_flight_ns = crate::stats::fired_time(&run.tally);
    (run, seconds)
}

fn by_name(
    a: &(Run, Vec<Tally>),
    b: &(Run, Vec<Tally>),
    names: &[&str],
) -> Result<Comparison, FigureError> {
    let figures = names.iter().map(|&name| name.to_owned()).collect();
    let question = Question { figures, ..Question::default() };
    let known = [&a.0, &b.0].map(|run| Known { plan: &run.plan, series: &run.tally.series });
    let figures = ComparedFigures::of(&question, known)?;
    let side = |(run, seconds): &(Run, Vec<Tally>)| {
        let mut pieces = Pieces::new(run, &figures);
        for (at, tally) in (0..).zip(seconds) {
            pieces.add(at, Some(RATE as f64), tally, &[]);
        }
        RunSample { run: run.clone(), pieces }
    };
    Ok(compare(&side(a), &side(b), &figures, &question))
}

#[test]
fn metrics_of_a_runs_own_are_compared_by_tag() {
    let random = &mut SplitMix64::new(11);
    let (a, b) = (scripted(1.0, 0.01, random), scripted(1.3, 0.2, random));
    let verdict = |name: &str| {
        let found = by_name(&a, &b, &[name]).unwrap();
        assert_eq!(found.figures[0].problem, None, "{name}");
        (found.figures[0].verdict, found.outcome)
    };
    use ComparisonOutcome::{Different, NoDifference, Worse};
    assert_eq!(verdict("login_time{name:a}:p95"), (Worse, Worse));
    assert_eq!(verdict("login_time{name:b}:p95").0, NoDifference);
    assert_eq!(verdict("login_time:avg"), (Worse, Worse));
    assert_eq!(verdict("checks"), (Worse, Worse));
    assert_eq!(verdict("checks{name:a}"), (Worse, Worse));
    assert_eq!(verdict("sold"), (Different, Different));
    assert_eq!(verdict("basket_size{name:a}:p(50)"), (Different, Different));
    // What every run measures is as before, of each label too.
    assert_eq!(verdict("b:p50").0, NoDifference);
    assert_eq!(verdict("response{name:a}:avg").0, NoDifference);

    let usual = by_name(&a, &b, &[]).unwrap();
    let own: Vec<_> = usual.figures[NAMES.len()..].iter().map(|f| f.name.as_str()).collect();
    let of = |name: &str| ["avg", "p50", "p95", "p99"].map(|of| format!("{name}:{of}"));
    // Those that the script defines, then those of every script.
    let expected: Vec<String> = [of("basket_size"), of("login_time")].concat();
    let expected = [expected, vec!["sold".into(), "checks".into()]].concat();
    assert_eq!(own, expected);
    let times = usual.figures.iter().find(|figure| figure.name == "login_time:p50").unwrap();
    let change = times.change.unwrap();
    assert!(change.low < 0.16 && 0.10 < change.high, "{change:?}");
}

#[test]
fn a_figure_that_is_not_there_is_refused_with_those_that_are() {
    let random = &mut SplitMix64::new(12);
    let runs = (scripted(1.0, 0.0, random), scripted(1.0, 0.0, random));
    for (name, part) in [
        ("typo", "there are sent, completed"),
        ("typo:p95", "and their own basket_size, checks, login_time, sold"),
        ("login_time", "it has avg, p50, p90, p95, p99 and p99.9"),
        ("login_time:p97", "it has avg, p50"),
        ("a:p97", "of a label there are sent"),
        ("response{name:c}:p99", "there is no label \"c\"; there are a, b"),
        ("response{scenario:x}:p99", "there is no scenario \"x\""),
        ("response{status:200}:p99", "no scenario has the tags {status:200}; there are {scenario:"),
        ("response{name:a,scenario:x}:p99", "leave the other tags out"),
    ] {
        let error = by_name(&runs.0, &runs.1, &[name]).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(name), "{name}: {error}");
    }
}
