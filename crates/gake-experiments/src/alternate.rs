//! Alternates runs between a server and a proxy in front of it.

use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_text::units::{count, percent, rate};

use crate::arithmetic::ExpressionScope;
use crate::bench::{Bench, StepError};
use crate::definition::StepDefinition;
use crate::expectations::expectation;
use crate::figures::goodput;
use crate::names::StepNames;
use crate::settings::ExperimentSettings;
use crate::step_servers::StepServers;

/// Runs on each of the two.
const TURNS: usize = 10;

/// Alternates runs on production and through the proxy, so that a noisy machine affects both alike.
/// Each kind has a name.
pub fn run(
    bench: &mut Bench<'_>,
    settings: &ExperimentSettings,
    step: &StepDefinition,
    mut names: StepNames<'_>,
    both: Vec<String>,
) -> Result<(), StepError> {
    let mut loaded = StepServers::start(settings, step, &mut names, None)?;
    let Some(proxied) = loaded.proxied() else { return Ok(()) };
    let urls = [&proxied.production, &proxied.server].map(|server| server.url_of(step.path()));
    let commands = [&proxied.production, &proxied.server].map(|server| server.command.clone());
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (runs, url) in runs.iter_mut().zip(&urls) {
            names.texts.insert("url".to_owned(), url.clone());
            runs.push(bench.fire(&loaded.spec(settings, step, &names)?)?);
        }
    }
    loaded.end(&mut names)?;
    let received = names.number("ledger_received")? as u64;
    let [direct, through] = runs;
    let expected = [
        vec![all_ok(&direct), spread(&direct)],
        vec![
            all_ok(&through),
            spread(&through),
            share(&direct, &through),
            ledger(&through, received),
        ],
    ];
    let all = both.into_iter().zip(commands).zip([direct, through]).zip(expected);
    for (((name, command), runs), expectations) in all {
        bench.add(name, command, median(runs), None, expectations);
    }
    Ok(())
}

/// Every request of every run was ok.
fn all_ok(runs: &[Summary]) -> Expectation {
    let due: u64 = runs.iter().map(|run| run.run.tally.counts.due()).sum();
    let ok: u64 = runs.iter().map(|run| run.run.tally.counts.ok).sum();
    expectation("ok", format!("all {}", count(due)), count(ok), ok == due)
}

/// The mean rate of the runs and its deviation; a machine with a large one cannot compare anything.
fn spread(runs: &[Summary]) -> Expectation {
    let (mean, deviation) = moments(&runs.iter().map(goodput).collect::<Vec<_>>());
    let relative = deviation / mean;
    let theory = format!("a deviation below 50 % over {} runs", runs.len());
    let seen = format!("{} ± {} (deviation)", rate(mean), percent(relative));
    expectation("rate", theory, seen, relative < 0.5)
}

/// The share of the direct rate that remains: the proxy adds its work to the backend's.
fn share(direct: &[Summary], through: &[Summary]) -> Expectation {
    let pairs = std::iter::zip(through, direct);
    let shares: Vec<f64> = pairs.map(|(a, b)| goodput(a) / goodput(b)).collect();
    let (mean, deviation) = moments(&shares);
    let theory = "5 % to 105 % of direct; nginx's mirror: 9 % (docs/shadow.md)".to_owned();
    let seen = format!("{} ± {} of direct", percent(mean), percent(deviation));
    expectation("share", theory, seen, (0.05..1.05).contains(&mean))
}

/// Every request of the runs is exactly once in the sandbox's ledger.
fn ledger(runs: &[Summary], received: u64) -> Expectation {
    let sent: u64 = runs.iter().map(|run| run.run.tally.counts.sent).sum();
    let theory = format!("{}: each request once", count(sent));
    expectation("ledger", theory, count(received), received == sent)
}

/// The run with the median rate.
fn median(mut runs: Vec<Summary>) -> Summary {
    runs.sort_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    runs.swap_remove(runs.len() / 2)
}

/// The mean and standard deviation of a sample.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let (mean, deviation) = moments(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(mean, 5.0);
        assert!((deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(moments(&[3.0]), (3.0, 0.0));
    }
}
