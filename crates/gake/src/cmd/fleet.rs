//! `gake fleet`: who is there.

use gake_fleet::{AgentList, ListedAgent};

use crate::cli::{FleetCommand, FleetCommandArgs};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::fleet;

/// Lists the agents at a NATS server.
///
/// # Errors
/// When the server cannot be used.
pub fn run(args: &FleetCommandArgs, console: &Console) -> Result<Exit, Failure> {
    let FleetCommand::Ls { nats } = &args.command;
    let (nats, token) = fleet::settings(nats)?;
    let list = AgentList::ask(&nats, &token).map_err(fleet::failure)?;
    for name in &list.other_token {
        console.warn(&format!("agent {name} has another token"));
    }
    console.result(&table(&list.agents))?;
    Ok(Exit::Done)
}

/// The agents, a line each.
fn table(agents: &[ListedAgent]) -> String {
    let width = agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
    let line = |agent: &ListedAgent| {
        let state = if agent.busy { "busy" } else { "free" };
        let tags: Vec<_> = agent.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let tags = if tags.is_empty() { "-".to_owned() } else { tags.join(",") };
        let (cores, version, host) = (agent.cores, &agent.version, &agent.host);
        let name = &agent.name;
        format!("{name:width$}  {state}  {cores:>3}  {version}  {tags}  {host}\n")
    };
    agents.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_a_line_each() {
        let agent = |name: &str, busy| ListedAgent {
            name: name.to_owned(),
            host: "box, Linux 6".to_owned(),
            version: "1.2.3".to_owned(),
            cores: 8,
            tags: [("zone".to_owned(), "a".to_owned())].into(),
            busy,
        };
        let bare = ListedAgent { tags: Default::default(), ..agent("long-name", true) };
        assert_eq!(
            table(&[agent("a", false), bare]),
            "a          free    8  1.2.3  zone=a  box, Linux 6\n\
             long-name  busy    8  1.2.3  -  box, Linux 6\n"
        );
        assert_eq!(table(&[]), "");
    }
}
