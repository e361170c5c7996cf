//! The plan in one line, printed before a run.

use std::fmt;

use gake_text::duration::format_duration;

use super::{Overflow, Plan, PlanLoad};
use crate::Load;
use crate::clock::SECOND;
use crate::schedule::Trace;

impl fmt::Display for Plan {
    /// One line, then one for each scenario if there are several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlanLoad::Scenarios { scenarios } = &self.load else {
            write!(f, "{}: ", self.target)?;
            self.single(f)?;
            return self.threads(f);
        };
        write!(f, "{}: {} side by side", self.target, plural(scenarios.len(), "scenario"))?;
        self.threads(f)?;
        for plan in scenarios {
            write!(f, "\n  {}", plan.name)?;
            if !plan.start.is_zero() {
                write!(f, " from {}", format_duration(plan.start))?;
            }
            write!(f, ": {}: ", plan.target)?;
            plan.single(f)?;
        }
        Ok(())
    }
}

impl Plan {
    fn threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tables {
            // The threads of agents are not known yet.
            0 | 1 if self.threads == 0 => Ok(()),
            0 | 1 => write!(f, ", {}", plural(self.threads, "thread")),
            _ => write!(f, ", {} threads with a descriptor table each", self.workers()),
        }
    }

    /// A single load, without its target and the settings of the run.
    fn single(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load.one() {
            Some(Load::Open { stages, process }) => {
                write!(f, "open loop, {process} arrivals, ")?;
                stages_of(f, stages)?;
            }
            Some(Load::Replay { speed, trace }) => {
                replay(f, *speed, &trace.clone().unwrap_or_default())?;
            }
            Some(load) => self.closed(f, load)?,
            None => {}
        }
        if let Some(requests) = self.requests {
            write!(f, ", {}", plural(requests, "request"))?;
        }
        self.warmup(f)?;
        if self.load.is_open() {
            write!(f, ", at most {}", plural(self.connections, "connection"))?;
            if self.streams > 1 {
                write!(f, " of {} streams", self.streams)?;
            }
            match self.overflow {
                Overflow::Wait => {}
                Overflow::Drop => write!(f, " (overflow is dropped)")?,
                Overflow::Queue { waiting } => {
                    write!(f, " ({waiting} may wait, further overflow is dropped)")?;
                }
            }
        }
        if !self.keepalive {
            write!(f, ", a new connection each")?;
        }
        if let Some(rate) = self.connect_rate {
            write!(f, ", at most {rate} new connections/s")?;
        }
        if self.idle_connections > 0 {
            write!(f, ", plus {} idle connections", self.idle_connections)?;
        }
        Ok(())
    }

    fn closed(&self, f: &mut fmt::Formatter<'_>, load: &Load) -> fmt::Result {
        write!(f, "closed loop, ")?;
        if let Load::Ramping { stages, think, .. } = load {
            stages_of(f, stages)?;
            if !think.is_zero() {
                write!(f, ", think time {}", format_duration(*think))?;
            }
            return Ok(());
        }
        let users = match load {
            Load::External { users, .. } => *users,
            load => load.users().unwrap_or_default(),
        };
        write!(f, "{}", plural(users, "user"))?;
        if self.streams > 1 || self.connections < users {
            write!(f, " on {}", plural(self.connections, "connection"))?;
        }
        let mut limit = "";
        match load {
            Load::Closed { think, .. } if !think.is_zero() => {
                write!(f, ", think time {}", format_duration(*think))?;
            }
            Load::Paced { pace, .. } => {
                write!(f, ", at most one request every {}", format_duration(*pace))?;
            }
            Load::Shared { iterations, .. } => {
                write!(f, ", {} in total", plural(*iterations, "iteration"))?;
                limit = ", at most";
            }
            Load::PerUser { iterations, .. } => {
                write!(f, ", {} each", plural(*iterations, "iteration"))?;
                if self.keepalive {
                    write!(f, ", connections kept to the end")?;
                }
                limit = ", at most";
            }
            Load::External { max, .. } => write!(f, " at first, at most {max}")?,
            _ => {}
        }
        match self.duration {
            Some(duration) => write!(f, "{limit} for {}", format_duration(duration)),
            None => Ok(()),
        }
    }

    fn warmup(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.warmup.is_zero() {
            return Ok(());
        }
        write!(f, " after {} of warm-up", format_duration(self.warmup))
    }
}

fn stages_of<S: fmt::Display>(f: &mut fmt::Formatter<'_>, stages: &[S]) -> fmt::Result {
    for (i, stage) in stages.iter().enumerate() {
        let arrow = if i == 0 { "" } else { " → " };
        write!(f, "{arrow}{stage}")?;
    }
    Ok(())
}

fn replay(f: &mut fmt::Formatter<'_>, speed: f64, trace: &Trace) -> fmt::Result {
    write!(f, "open loop, replay of {}", plural(trace.arrivals(), "arrival"))?;
    let seconds = trace.length() as f64 / SECOND as f64;
    write!(f, " over {seconds:.1}s, {speed}x as recorded")
}

fn plural<N: fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let s = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{s}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;
    use crate::plan::UserStage;

    const URL: &str = "http://localhost/";

    fn line(load: Load) -> String {
        Plan { duration: Some(Duration::from_secs(60)), ..Plan::new(URL, load) }.to_string()
    }

    #[test]
    fn closed_loops_are_described_by_their_users() {
        let second = Duration::from_secs(1);
        let stages = vec![
            UserStage { from: 1, to: 20, duration: second * 30 },
            UserStage::step(1, second * 5),
        ];
        let ramping = Load::Ramping { stages, graceful_ramp_down: second, think: second };
        for (load, text) in [
            (Load::Closed { users: 1, think: second }, "1 user, think time 1s for 1m"),
            (
                Load::Paced { users: 2, pace: second },
                "2 users, at most one request every 1s for 1m",
            ),
            (ramping, "1..20 users for 30s → 1 user for 5s, think time 1s"),
            (
                Load::Shared { users: 3, iterations: 9 },
                "3 users, 9 iterations in total, at most for 1m",
            ),
            (
                Load::PerUser { users: 3, iterations: 1 },
                "3 users, 1 iteration each, connections kept to the end, at most for 1m",
            ),
            (Load::External { users: 0, max: 50 }, "0 users at first, at most 50 for 1m"),
        ] {
            assert_eq!(line(load), format!("{URL}: closed loop, {text}, 1 thread"));
        }
    }

    #[test]
    fn each_scenario_has_a_line() {
        let one = Plan::new(URL, Load::Shared { users: 3, iterations: 9 });
        let two = Plan {
            name: "two".to_owned(),
            start: Duration::from_secs(5),
            ..Plan::new(URL, Load::PerUser { users: 3, iterations: 9 })
        };
        let whole = Plan { threads: 2, ..Plan::new("a.toml", vec![one, two]) };
        expect![[r#""#]].assert_eq(&whole.to_string());
    }
}
