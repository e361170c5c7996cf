//! What gake does beside k6's own outputs: its live page, its history, its sinks.

use clap::{CommandFactory, FromArgMatches, Parser};
use gake_judge::Summary;
use gake_run::{Interrupt, Prepared, Sink};

use gake_session::Console;
use gake_session::options::FleetArgs;
use gake_session::options::SaveArgs;
use gake_session::options::SinkArgs;
use gake_session::options::WebArgs;
use gake_session::run::{Controls, Saving, Web, destinations};
use gake_session::{Exit, Failure};

/// gake's own flags of a script's run.
#[derive(Debug, Parser)]
#[command(name = "gake run", disable_help_flag = true)]
pub struct BesideArgs {
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

/// What goes on beside a script's run.
#[derive(Debug)]
pub struct OwnOutputs {
    web: Web,
    saving: Option<Saving>,
}

impl BesideArgs {
    /// Takes gake's own flags out of a command line.
    ///
    /// # Errors
    /// When one lacks its value, or has a wrong one.
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

impl BesideArgs {
    /// Starts what is asked for. Returns the sinks that the run feeds, too.
    ///
    /// # Errors
    /// When something cannot be used: a wrong name costs no run.
    pub fn start(
        &self,
        prepared: &Prepared,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<(OwnOutputs, Vec<Box<dyn Sink>>), Failure> {
        let Self { web, history, sinks, .. } = self;
        OwnOutputs::start((web, history, sinks), prepared, interrupt, console)
    }
}

impl OwnOutputs {
    /// Starts what these flags ask for. Returns the sinks that the run feeds, too.
    ///
    /// # Errors
    /// When something cannot be used: a wrong name costs no run.
    pub fn start(
        (web, history, sinks): (&WebArgs, &SaveArgs, &SinkArgs),
        prepared: &Prepared,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<(Self, Vec<Box<dyn Sink>>), Failure> {
        let saving = Saving::start(history)?;
        let mut sinks = destinations(sinks, console)?;
        if let Some(saving) = &saving {
            sinks.push(saving.sink().map_err(Failure::could_not)?);
        }
        let controls = Controls { interrupt, rate: None };
        let web = Web::start(web, prepared, controls, Some(*console), console)?;
        sinks.extend(web.sink());
        Ok((Self { web, saving }, sinks))
    }

    /// Makes the page the report, keeps the run and compares it. The exit code: `exit`, that of
    /// the run by itself, unless only the comparison is bad.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn finish(self, summary: &Summary, exit: Exit, console: &Console) -> Result<Exit, Failure> {
        self.web.finish(summary);
        match self.saving {
            Some(saving) => saving.finish(summary, exit, true, console),
            None => Ok(exit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(line: &str) -> Result<(BesideArgs, Vec<String>), Failure> {
        BesideArgs::take(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
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
