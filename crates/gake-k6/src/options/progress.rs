//! The progress of a run as k6 writes it without a terminal: a line for the run and one for each
//! scenario.

use super::describe::{duration, end, most, sorted, users};
use super::{Executor, K6Options, ScenarioOptions};
use crate::duration::GoDuration;

/// Nanoseconds in a tenth of a second, to which times are rounded.
const TENTH: i64 = 100_000_000;

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// The time since its start.
    pub elapsed: GoDuration,
    /// Active and initialised users.
    pub users: (u64, u64),
    /// Complete and interrupted iterations.
    pub iterations: (u64, u64),
    /// The progress of scenarios by name.
    pub scenarios: Vec<(String, ScenarioState)>,
    /// Whether `setup` is running.
    pub is_set_up: bool,
}

/// The progress of a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScenarioState {
    /// The time since its start: negative before it, `None` before the load begins.
    pub elapsed: Option<GoDuration>,
    /// Users running an iteration.
    pub active: u64,
    /// Ended iterations.
    pub done: u64,
    /// Whether it has ended.
    pub is_over: bool,
    /// Whether the run was cut short before its end.
    pub is_cut: bool,
}

/// k6's progress lines of a run.
#[must_use]
pub fn progressed(options: &K6Options, progress: &RunProgress) -> String {
    let scenarios = sorted(options);
    let left = scenarios.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(4);
    let left = left.min(LEFT_MAX);
    let longest = scenarios.iter().map(|(_, one)| end(one).nanos()).max().unwrap_or(0);
    let most: i64 = scenarios.iter().map(|(_, one)| users(one)).sum();
    let digits = digits(most);
    let (active, all) = progress.users;
    let (complete, interrupted) = progress.iterations;
    let time = fixed(progress.elapsed.nanos(), longest);
    let mut text = match progress.is_set_up {
        true => format!("\n{:left$}   [ 100% ] setup()\n", "Run"),
        false => format!(
            "\nrunning ({time}), {active:0digits$}/{all:0digits$} VUs, {complete} complete and \
             {interrupted} interrupted iterations\n"
        ),
    };
    let state = |name: &str| {
        let found = progress.scenarios.iter().find(|(known, _)| known == name);
        found.map(|(_, state)| *state).unwrap_or_default()
    };
    let bars: Vec<(&str, ProgressBar)> =
        scenarios.iter().map(|(name, one)| (name.as_str(), bar(one, state(name)))).collect();
    // All but the last column are aligned.
    let mut widths = [0; 2];
    for (_, bar) in &bars {
        let aligned = bar.right.len().saturating_sub(1);
        for (width, column) in widths.iter_mut().zip(&bar.right[..aligned]) {
            *width = (*width).max(column.len());
        }
    }
    for (name, bar) in bars {
        let name = match name.len() > LEFT_MAX && name.is_char_boundary(LEFT_MAX - 3) {
            true => format!("{}...", &name[..LEFT_MAX - 3]),
            false => name.to_owned(),
        };
        text += &format!("{name:left$} {} [ {:3.0}% ]", bar.mark, bar.share * 100.0);
        for (at, column) in bar.right.iter().enumerate() {
            let width = widths.get(at).copied().unwrap_or(0) + 1;
            text += &format!(" {column:width$}");
        }
        text.push('\n');
    }
    text
}

/// The longest name that is not cut.
const LEFT_MAX: usize = 30;

/// The line of a scenario.
struct ProgressBar {
    mark: char,
    share: f64,
    right: Vec<String>,
}

fn bar(scenario: &ScenarioOptions, state: ScenarioState) -> ProgressBar {
    let Some(elapsed) = state.elapsed else {
        return ProgressBar { mark: ' ', share: 0.0, right: Vec::new() };
    };
    let spent = elapsed.nanos();
    if spent < 0 {
        let start = scenario.start_time.unwrap_or_default().nanos();
        let right = vec!["waiting".to_owned(), fixed(-spent, start)];
        return ProgressBar { mark: '•', share: 0.0, right };
    }
    let length = duration(scenario);
    let is_late = spent > length.nanos();
    let all = users(scenario);
    let width = digits(all);
    let time = match is_late && scenario.executor != Executor::SharedIterations {
        true => length.to_string(),
        false => format!("{}/{length}", fixed(spent, length.nanos())),
    };
    let of_time = if is_late { 1.0 } else { spent as f64 / length.nanos().max(1) as f64 };
    let active = state.active;
    let (share, right) = match scenario.executor {
        Executor::SharedIterations | Executor::PerVuIterations => {
            let each = scenario.iterations.unwrap_or(1);
            let is_shared = scenario.executor == Executor::SharedIterations;
            let total = if is_shared { each } else { each.saturating_mul(all) };
            let of = digits(total);
            let done = state.done;
            let iterations = match is_shared {
                true => format!("{done:0of$}/{total:0of$} shared iters"),
                false => format!("{done:0of$}/{total:0of$} iters, {each} per VU"),
            };
            let share = done as f64 / total.max(1) as f64;
            let share = if is_late && !is_shared { 1.0 } else { share };
            (share, vec![format!("{all:0width$} VUs"), time, iterations])
        }
        Executor::ConstantVus => (of_time, vec![format!("{all} VUs"), time]),
        Executor::RampingVus => {
            let whole = fixed(length.nanos(), length.nanos());
            let time = match is_late {
                true => length.to_string(),
                false => format!("{}/{whole}", fixed(spent, length.nanos())),
            };
            (of_time, vec![format!("{active:0width$}/{all:0width$} VUs"), time])
        }
        Executor::ConstantArrivalRate | Executor::RampingArrivalRate => {
            let made = scenario.pre_allocated_vus.unwrap_or(0).max(active as i64);
            let rate = rate(scenario, spent);
            let users = format!("{active:0width$}/{made:0width$} VUs");
            (of_time, vec![users, time, format!("{rate} iters/s")])
        }
        Executor::ExternallyControlled => {
            (of_time, vec![format!("{active:0width$}/{all:0width$} VUs"), time, String::new()])
        }
    };
    let mark = match () {
        () if !state.is_over && is_late => '↓',
        () if !state.is_over => ' ',
        () if state.is_cut || share < 1.0 => '✗',
        () => '✓',
    };
    ProgressBar { mark, share, right }
}

/// The current arrival rate, in the width of its maximum.
fn rate(scenario: &ScenarioOptions, spent: i64) -> String {
    let second = 1e9;
    let per_second = |rate: f64| {
        let unit = scenario.time_unit.map_or(second, |unit| unit.nanos() as f64);
        rate * second / unit.max(1.0)
    };
    let stages = scenario.stages.as_deref();
    let constant = scenario.rate.unwrap_or(0);
    let (now, highest) = match scenario.executor {
        Executor::ConstantArrivalRate => (constant as f64, constant),
        _ => {
            let mut from = scenario.start_rate.unwrap_or(0);
            let highest = most(stages, from);
            let (mut left, mut now) = (spent, from as f64);
            for stage in stages.unwrap_or_default() {
                let length = stage.duration.unwrap_or_default().nanos();
                let to = stage.target.unwrap_or(0);
                let share = if length > 0 { left as f64 / length as f64 } else { 1.0 };
                now = from as f64 + (to - from) as f64 * share.min(1.0);
                from = to;
                if left < length {
                    break;
                }
                left -= length;
            }
            (now, highest)
        }
    };
    let width = format!("{:.2}", per_second(highest as f64)).len();
    format!("{:0width$.2}", per_second(now))
}

/// The number of digits.
fn digits(number: i64) -> usize {
    number.max(0).to_string().len()
}

/// A time in the units and width of the longest.
fn fixed(nanos: i64, longest: i64) -> String {
    let rounded = |nanos: i64| (nanos.saturating_abs() + TENTH / 2) / TENTH;
    let (time, longest) = (rounded(nanos), rounded(longest.max(nanos)));
    let (seconds, tenth) = (time / 10, time % 10);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match longest / 10 {
        0..10 => format!("{seconds}.{tenth}s"),
        10..60 => format!("{seconds:02}.{tenth}s"),
        60..600 => format!("{minutes}m{:02}.{tenth}s", seconds % 60),
        600..3_600 => format!("{minutes:02}m{:02}.{tenth}s", seconds % 60),
        3_600..36_000 => format!("{hours}h{:02}m{:02}.{tenth}s", minutes % 60, seconds % 60),
        36_000..86_400 => format!("{hours:02}h{:02}m{:02}.{tenth}s", minutes % 60, seconds % 60),
        all => {
            let width = digits(all / 86_400);
            let hours = hours % 24;
            format!("{days:0width$}d{hours:02}h{:02}m{:02}.{tenth}s", minutes % 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seconds(seconds: f64) -> GoDuration {
        GoDuration::from_nanos((seconds * 1e9) as i64)
    }

    #[test]
    fn times_have_the_width_of_the_longest() {
        for (time, longest, shown) in [
            (0.44, 5.0, "0.4s"),
            (0.0, 12.0, "00.0s"),
            (9.96, 90.0, "0m10.0s"),
            (61.0, 630.0, "01m01.0s"),
            (3_600.0, 4_000.0, "1h00m00.0s"),
            (90_000.0, 900_000.0, "01d01h00m00.0s"),
        ] {
            assert_eq!(fixed(seconds(time).nanos(), seconds(longest).nanos()), shown);
        }
    }

    #[test]
    fn scenarios_are_shown_in_k6s_words() {
        let options = json!({ "scenarios": {
            "a": { "executor": "shared-iterations", "vus": 2, "iterations": 40 },
            "per": { "executor": "per-vu-iterations", "vus": 2, "iterations": 3 },
            "later": { "executor": "constant-vus", "vus": 1, "duration": "2s", "startTime": "10s" },
            "ramp": { "executor": "ramping-vus", "stages": [{ "duration": "10s", "target": 10 }] },
            "rate": { "executor": "ramping-arrival-rate", "startRate": 0, "timeUnit": "1s",
                   "stages": [{ "duration": "2s", "target": 20 }], "preAllocatedVUs": 2 },
        } });
        let options = K6Options::read(&options).unwrap().options;
        let state = |elapsed: f64, done, is_over| ScenarioState {
            elapsed: Some(seconds(elapsed)),
            active: 1,
            done,
            is_over,
            is_cut: false,
        };
        let progress = RunProgress {
            elapsed: seconds(1.0),
            users: (7, 17),
            iterations: (12, 1),
            scenarios: vec![
                ("a".to_owned(), state(1.0, 7, false)),
                ("per".to_owned(), state(0.5, 6, true)),
                ("later".to_owned(), state(-9.0, 0, false)),
                ("ramp".to_owned(), state(1.0, 0, false)),
                ("rate".to_owned(), state(1.0, 0, false)),
            ],
            is_set_up: false,
        };
        let expected = "
running (00m01.0s), 07/17 VUs, 12 complete and 1 interrupted iterations
a       [  18% ] 2 VUs    00m01.0s/10m0s  07/40 shared iters
per   ✓ [ 100% ] 2 VUs    00m00.5s/10m0s  6/6 iters, 3 per VU
ramp    [  10% ] 01/10 VUs  01.0s/10.0s   
rate    [  50% ] 1/2 VUs  1.0s/2s         10.00 iters/s
later • [   0% ] waiting  09.0s           
";
        let words = |text: &str| {
            let lines =
                text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            lines.collect::<Vec<_>>()
        };
        assert_eq!(words(&progressed(&options, &progress)), words(expected));
    }

    #[test]
    fn a_run_that_is_over_is_shown_to_the_letter() {
        let options = json!({ "scenarios": {
            "default": { "executor": "shared-iterations", "vus": 1, "iterations": 2 },
        } });
        let options = K6Options::read(&options).unwrap().options;
        let state = ScenarioState {
            elapsed: Some(seconds(0.01)),
            active: 0,
            done: 2,
            is_over: true,
            is_cut: false,
        };
        let progress = RunProgress {
            elapsed: seconds(0.01),
            users: (0, 1),
            iterations: (2, 0),
            scenarios: vec![("default".to_owned(), state)],
            is_set_up: false,
        };
        let expected = "
running (00m00.0s), 0/1 VUs, 2 complete and 0 interrupted iterations
default ✓ [ 100% ] 1 VUs  00m00.0s/10m0s  2/2 shared iters
";
        assert_eq!(progressed(&options, &progress), expected);
        let set_up = RunProgress { is_set_up: true, ..RunProgress::default() };
        let expected = "\nRun       [ 100% ] setup()\ndefault   [   0% ]\n";
        assert_eq!(progressed(&options, &set_up), expected);
    }
}
