//! Thread groups as scenarios.

use super::{Element, ITERATION, JmeterPlan, SamplerScope, USERS_ITERATION};
use crate::script::{ScriptFunction, ScriptNode};
use crate::template::variable_name;

/// The duration of a group that has no end.
const ENDLESS_DURATION: &str = "10m";

impl JmeterPlan {
    /// Converts a thread group to a scenario and its function.
    pub(super) fn thread_group<'a>(&mut self, group: Element<'a>, scope: &SamplerScope<'a>) {
        let tag = group.tag();
        if !tag.ends_with("ThreadGroup") {
            return;
        }
        let outer = self.start.clone();
        let scope = self.scope(scope, group);
        let mut nodes = self.nodes(group, &scope, 0);
        let name = self.function_name(group.name());
        let mut start = std::mem::replace(&mut self.start, outer);
        let head = match tag {
            "SetupThreadGroup" | "PostThreadGroup" => {
                // They run once, outside of any scenario.
                for line in &mut start {
                    *line = line.replace(USERS_ITERATION, "0").replace(ITERATION, "0");
                }
                let is_setup = tag == "SetupThreadGroup";
                format!("function {}()", if is_setup { "setup" } else { "teardown" })
            }
            _ => {
                let (options, ramp) = self.scenario(group);
                start.splice(0..0, ramp);
                self.script.options.push(format!("  {name}: {{ exec: '{name}', {options} }},"));
                format!("function {name}()")
            }
        };
        if self.script.functions.iter().any(|function| function.head == head) {
            self.script.warnings.add("a second group of its kind is left out", group.name());
            return;
        }
        nodes.insert(0, ScriptNode::Lines(start));
        self.script.functions.push(ScriptFunction { head, nodes });
    }

    fn function_name(&self, name: &str) -> String {
        let mut own = String::new();
        for word in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
        {
            let (first, rest) = word.split_at(1);
            let first = if own.is_empty() { first.to_lowercase() } else { first.to_uppercase() };
            own.push_str(&(first + rest));
        }
        let own = if own.is_empty() { "threads".to_owned() } else { variable_name(&own) };
        let is_taken = |name: &str| {
            let head = format!("function {name}()");
            RESERVED.contains(&name) || self.script.functions.iter().any(|one| one.head == head)
        };
        let numbered = (2..).map(|number| format!("{own}{number}"));
        std::iter::once(own.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(own)
    }

    /// The options of a scenario, and lines before each iteration.
    fn scenario(&mut self, group: Element) -> (String, Vec<String>) {
        let tag = group.tag();
        let mut number = |name: &str| self.number(group.text(name).unwrap_or_default());
        if tag.contains("Concurrency") {
            let (users, ramp, hold) = (number("TargetLevel"), number("RampUp"), number("Hold"));
            let unit = if group.text("Unit") == Some("S") { "s" } else { "m" };
            let stages = [(ramp, &users), (hold, &users)];
            let stages = stages.iter().map(|(length, users)| stage(length, unit, users));
            let stages = stages.collect::<Vec<_>>().join(", ");
            return (
                format!("executor: 'ramping-vus', startVUs: 0, stages: [{stages}]"),
                Vec::new(),
            );
        }
        if tag != "ThreadGroup" {
            self.script
                .warnings
                .add("a thread group of a plugin runs with one user and one iteration", tag);
            return ("executor: 'per-vu-iterations', vus: 1, iterations: 1".to_owned(), Vec::new());
        }
        let (users, ramp) = (number("ThreadGroup.num_threads"), number("ThreadGroup.ramp_time"));
        let (duration, delay) = (number("ThreadGroup.duration"), number("ThreadGroup.delay"));
        let main =
            group.child("ThreadGroup.main_controller").map(|own| Element { own, below: None });
        let loops = main.and_then(|main| main.text("LoopController.loops")).unwrap_or("1");
        let is_endless = loops == "-1"
            || main.is_some_and(|main| main.is("LoopController.continue_forever") && loops == "-1");
        let loops = self.number(loops);
        let is_timed = group.is("ThreadGroup.scheduler") && duration != "0";
        let start = match is_timed && delay != "0" {
            true => format!(", startTime: {}", time(&delay, "s")),
            false => String::new(),
        };
        if !is_endless {
            let most = if is_timed { time(&duration, "s") } else { "'24h'".to_owned() };
            let options = format!(
                "executor: 'per-vu-iterations', vus: {users}, iterations: {loops}, maxDuration: {most}{start}"
            );
            // Threads start one by one.
            let wait = format!(
                "if (exec.vu.iterationInScenario === 0) sleep(({ramp} * (exec.vu.idInInstance - 1)) / {users});"
            );
            let is_ramp = ramp != "0" && users != "1";
            return (options, is_ramp.then_some(wait).into_iter().collect());
        }
        let length = match is_timed {
            true => time(&duration, "s"),
            false => {
                self.script.warnings.add("an endless thread group ends after", ENDLESS_DURATION);
                format!("'{ENDLESS_DURATION}'")
            }
        };
        if ramp == "0" || ramp == "1" && users == "1" {
            return (
                format!("executor: 'constant-vus', vus: {users}, duration: {length}{start}"),
                Vec::new(),
            );
        }
        let rest = match (is_timed, duration.parse::<f64>(), ramp.parse::<f64>()) {
            (false, ..) => length,
            (true, Ok(all), Ok(ramp)) => format!("'{}s'", (all - ramp).max(0.0)),
            (true, ..) => format!("`${{{duration} - {ramp}}}s`"),
        };
        let stages =
            format!("{}, {{ duration: {rest}, target: {users} }}", stage(&ramp, "s", &users));
        (format!("executor: 'ramping-vus', startVUs: 0, stages: [{stages}]{start}"), Vec::new())
    }
}

const RESERVED: [&str; 16] = [
    "http", "check", "sleep", "group", "exec", "encoding", "vars", "value", "default", "options",
    "test", "delete", "new", "random", "setup", "teardown",
];

fn stage(length: &str, unit: &str, users: &str) -> String {
    format!("{{ duration: {}, target: {users} }}", time(length, unit))
}

/// A duration of a number or an expression.
fn time(number: &str, unit: &str) -> String {
    match number.parse::<f64>() {
        Ok(_) => format!("'{number}{unit}'"),
        Err(_) => format!("`${{{number}}}{unit}`"),
    }
}
