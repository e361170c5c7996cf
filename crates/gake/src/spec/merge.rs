//! Flags beside a spec file.

use std::path::Path;

use gake_core::spec::value::HeaderValue;
use gake_core::spec::{ConnectionDraft, RunDraft, ScenarioDraft, TlsDraft};
use serde_json::{Map, Value};

use super::flags::connections_or_users;
use crate::cli::RunArgs;
use gake_session::Failure;
use gake_session::spec_error::flag;

/// The keys that say what is sent: one of them takes the place of all.
const SOURCES: [&str; 16] = [
    "url",
    "targets",
    "recording",
    "to",
    "speed",
    "select",
    "script",
    "function",
    "environment",
    "given",
    "request",
    "ws_message",
    "ws_expect",
    "ws_send_only",
    "proto",
    "proto_paths",
];

/// What the file says, with what the flags say in its place. What holds for the whole run always
/// can be changed, a scenario only where there is one.
///
/// # Errors
/// When a flag does not say which of several scenarios it means.
pub fn beside(
    mut file: RunDraft,
    mut flags: RunDraft,
    args: &RunArgs,
    path: &Path,
) -> Result<RunDraft, Failure> {
    let connection: ConnectionDraft = over(&file.connection, &flags.connection)?;
    let given = flags.scenarios.pop().unwrap_or_default();
    match file.scenarios.as_mut_slice() {
        [only] => *only = scenario(std::mem::take(only), given, &connection)?,
        several => {
            if let Some(what) = first_of(&given, args)? {
                return Err(Failure::usage(format!(
                    "{what} does not say which of the {} scenarios of {} it means; change the file",
                    several.len(),
                    path.display()
                )));
            }
        }
    }
    let scenarios = std::mem::take(&mut file.scenarios);
    let tls: TlsDraft = over(&file.tls, &flags.tls)?;
    (file.connection, file.tls) = (ConnectionDraft::default(), TlsDraft::default());
    (flags.connection, flags.tls) = (ConnectionDraft::default(), TlsDraft::default());
    let run: RunDraft = over(&file, &flags)?;
    Ok(RunDraft { connection, tls, scenarios, ..run })
}

fn scenario(
    file: ScenarioDraft,
    flags: ScenarioDraft,
    connection: &ConnectionDraft,
) -> Result<ScenarioDraft, Failure> {
    let mut said = object(&file)?;
    let given = object(&flags)?;
    if ["url", "targets", "recording", "request"].iter().any(|key| given.contains_key(*key)) {
        SOURCES.iter().for_each(|key| drop(said.remove(*key)));
    }
    // A rate takes the place of the stages, and the other way round.
    if given.contains_key("rate") {
        said.remove("stages");
    }
    if given.contains_key("stages") {
        said.remove("rate");
        said.remove("duration");
    }
    let own = |line: &HeaderValue| {
        !flags.headers.iter().any(|given| given.0.eq_ignore_ascii_case(&line.0))
    };
    let headers = file.headers.iter().filter(|line| own(line)).chain(&flags.headers);
    let headers = headers.cloned().collect();
    said.extend(given);
    let mut merged: ScenarioDraft = read(said)?;
    merged.headers = headers;
    if flags.connections.is_some() && flags.users.is_none() {
        let users = merged.users.take();
        connections_or_users(&mut merged, connection);
        merged.users = merged.users.or(users);
    }
    Ok(merged)
}

/// What the first flag about a scenario is called, when one is given.
fn first_of(given: &ScenarioDraft, args: &RunArgs) -> Result<Option<String>, Failure> {
    if let Some(target) = &args.target {
        return Ok(Some(format!("the target {target}")));
    }
    let first = object(given)?.keys().next().cloned();
    Ok(first.map(|field| flag(&field).map_or(field.clone(), str::to_owned)))
}

/// `file`, with the fields of `flags` in its place.
fn over<T>(file: &T, flags: &T) -> Result<T, Failure>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut said = object(file)?;
    said.extend(object(flags)?);
    read(said)
}

fn object(draft: &impl serde::Serialize) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(draft) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(Failure::could_not(error)),
    }
}

fn read<T: serde::de::DeserializeOwned>(object: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(object)).map_err(Failure::could_not)
}
