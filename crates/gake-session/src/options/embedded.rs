//! gake's own flags on the command line of another tool.

use clap::{CommandFactory, FromArgMatches, Parser};

use super::{FleetArgs, SaveArgs, SinkArgs, WebArgs};
use crate::Failure;

/// gake's own flags for a run that another tool's flags describe.
#[derive(Debug, Parser)]
#[command(name = "gake run", disable_help_flag = true)]
pub struct EmbeddedArgs {
    /// The live page.
    #[command(flatten)]
    pub web: WebArgs,

    /// The history of runs.
    #[command(flatten)]
    pub history: SaveArgs,

    /// Where figures go.
    #[command(flatten)]
    pub sinks: SinkArgs,

    /// The agents that do it.
    #[command(flatten)]
    pub fleet: FleetArgs,
}

impl EmbeddedArgs {
    /// Splits gake's own flags off the command line of another tool; returns the rest.
    ///
    /// # Errors
    /// When a value is missing or not valid.
    pub fn take(args: &[String]) -> Result<(Self, Vec<String>), Failure> {
        let command = Self::command();
        let mut own = vec!["gake run".to_owned()];
        let mut others = Vec::new();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let name = arg.strip_prefix("--").map(|arg| arg.split('=').next().unwrap_or(arg));
            let known = name.and_then(|name| {
                command.get_arguments().find(|flag| flag.get_long() == Some(name))
            });
            let Some(flag) = known else {
                others.push(arg.clone());
                continue;
            };
            own.push(arg.clone());
            let needs_value = flag.get_action().takes_values() && !flag.is_require_equals_set();
            if needs_value && !arg.contains('=') {
                own.extend(args.next().cloned());
            }
        }
        let read =
            command.try_get_matches_from(own).and_then(|found| Self::from_arg_matches(&found));
        let read = read.map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::usage(first.trim_start_matches("error: "))
        })?;
        Ok((read, others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(line: &str) -> Result<(EmbeddedArgs, Vec<String>), Failure> {
        EmbeddedArgs::take(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn own_flags_are_taken_out() {
        let line =
            "-u 5 --web=:0 --baseline last --save --annotate=grafana=http://h s.js --tag a=b";
        let (own, others) = take(line).unwrap();
        assert_eq!(others, ["-u", "5", "s.js", "--tag", "a=b"]);
        assert_eq!(own.web.address(), Some("127.0.0.1:0"));
        assert_eq!(own.history.baseline.as_deref(), Some("last"));
        assert!(own.history.save && own.sinks.annotate.len() == 1);
        let (own, others) = take("--agents 4 --nats=nats://h s.js --local-ips 127.0.0.1").unwrap();
        assert_eq!((own.fleet.agents, own.fleet.local), (Some(4), None));
        assert_eq!(others, ["s.js", "--local-ips", "127.0.0.1"]);
        let (own, others) = take("--web s.js -d 1s").unwrap();
        assert_eq!((own.web.address().is_some(), others.len()), (true, 3), "--web takes no word");
        assert!(take("s.js").unwrap().0.web.address().is_none());
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in ["--web=x:y:z s.js", "s.js --baseline", "--sink=nothing s.js", "--tolerance 5"]
        {
            assert!(take(line).is_err(), "{line}");
        }
    }
}
