//! `gake fleet`: lists agents and runs, shows their logs, and ends runs.

mod attach;

use gake_fleet::{AgentList, AgentLogLine, ListedAgent, StopRecipient};

use crate::cli::{FleetCommand, FleetCommandArgs};
use gake_session::Console;
use gake_session::fleet::{self, manifest};
use gake_session::{Exit, Failure};

/// Runs a command on the fleet at a NATS server.
///
/// # Errors
/// When the server cannot be used, or no agent has the run or the name.
pub fn run(args: &FleetCommandArgs, console: &Console) -> Result<Exit, Failure> {
    match &args.command {
        FleetCommand::Ls { nats } => {
            let (nats, token) = fleet::settings(nats)?;
            let list = AgentList::fetch(&nats, &token).map_err(fleet::failure)?;
            for name in &list.other_token {
                console.warn(&format!("agent {name} has another token"));
            }
            console.result(&table(&list.agents))?;
        }
        FleetCommand::Stop { run, now, nats } => {
            let (nats, token) = fleet::settings(nats)?;
            let how = (*now, env!("CARGO_PKG_VERSION"));
            let stopped =
                StopRecipient::request_stop(&nats, &token, run, how).map_err(fleet::failure)?;
            console.note(&match stopped {
                StopRecipient::Coordinator => "its coordinator ends the run".to_owned(),
                StopRecipient::Agents { names, has_journal } => {
                    let names = names.join(", ");
                    let ends = format!("the run has no coordinator; its agents end it: {names}");
                    match has_journal {
                        true => format!("{ends}; `gake fleet attach {run}` shows what is recorded"),
                        false => ends,
                    }
                }
            });
        }
        FleetCommand::Manifest(args) => console.result(&manifest::manifest(args))?,
        FleetCommand::Attach(args) => return attach::attach(args, console),
        FleetCommand::Logs { agents, nats } => {
            let (nats, token) = fleet::settings(nats)?;
            let lines = AgentLogLine::fetch(&nats, &token, agents).map_err(fleet::failure)?;
            console.result(&lines.iter().map(line).collect::<String>())?;
        }
    }
    Ok(Exit::Done)
}

/// An event of an agent: the time of day (UTC), the agent, what happened.
fn line(event: &AgentLogLine) -> String {
    let AgentLogLine { unix_seconds, agent, text } = event;
    let (hour, minute, second) =
        (unix_seconds / 3_600 % 24, unix_seconds / 60 % 60, unix_seconds % 60);
    // The plan of several scenarios has a line for each.
    let text: Vec<_> = text.lines().map(str::trim).collect();
    format!("{hour:02}:{minute:02}:{second:02}Z  {agent}  {}\n", text.join("; "))
}

/// The agents, a line each.
fn table(agents: &[ListedAgent]) -> String {
    let width = agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
    let line = |agent: &ListedAgent| {
        let state = agent.run.as_deref().unwrap_or("free");
        let tags: Vec<_> = agent.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let tags = if tags.is_empty() { "-".to_owned() } else { tags.join(",") };
        let (cores, version, host) = (agent.cores, &agent.version, &agent.host);
        let name = &agent.name;
        format!("{name:width$}  {state:16}  {cores:>3}  {version}  {tags}  {host}\n")
    };
    agents.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_a_line_each() {
        let agent = |name: &str, run: Option<&str>| ListedAgent {
            name: name.to_owned(),
            host: "box, Linux 6".to_owned(),
            version: "1.2.3".to_owned(),
            cores: 8,
            tags: [("zone".to_owned(), "a".to_owned())].into(),
            run: run.map(str::to_owned),
        };
        let bare = ListedAgent {
            tags: Default::default(),
            ..agent("long-name", Some("0123456789abcdef"))
        };
        assert_eq!(
            table(&[agent("a", None), bare]),
            "a          free                8  1.2.3  zone=a  box, Linux 6\n\
             long-name  0123456789abcdef    8  1.2.3  -  box, Linux 6\n"
        );
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn an_event_has_the_time_of_day() {
        let event =
            AgentLogLine { unix_seconds: 86_400 + 3_723, agent: "a".into(), text: "done".into() };
        assert_eq!(line(&event), "01:02:03Z  a  done\n");
    }
}
