//! Flags in addition to a spec file.

use std::path::Path;

use gake_core::spec::{self, RunDraft, ScenarioDraft};

use super::flags::connections_or_users;
use crate::cli::RunArgs;
use gake_session::Failure;

/// The file with the flags over it. Flags for the whole run always apply, and `--body-errors` to
/// every scenario; other flags for a load only where there is one scenario.
///
/// # Errors
/// When a flag could be for any of several scenarios.
pub fn beside(
    mut file: RunDraft,
    mut flags: RunDraft,
    args: &RunArgs,
    path: &Path,
) -> Result<RunDraft, Failure> {
    let mut given = flags.scenarios.pop().unwrap_or_default();
    file.join(flags);
    if let Some(on) = given.body_errors.take() {
        file.scenarios.iter_mut().for_each(|scenario| scenario.body_errors = Some(on));
    }
    if let [only] = file.scenarios.as_mut_slice() {
        let (connections, users) = (given.connections, given.users.clone());
        only.join(given);
        if connections.is_some() && users.is_none() {
            let users = only.users.take();
            connections_or_users(only, &file.connection);
            only.users = only.users.take().or(users);
        }
    } else if let Some(what) = first_of(&given, args) {
        return Err(Failure::usage(format!(
            "{what} could be for any of the {} scenarios of {}; change the file",
            file.scenarios.len(),
            path.display()
        )));
    }
    Ok(file)
}

/// The first flag for a load, if there is one.
fn first_of(given: &ScenarioDraft, args: &RunArgs) -> Option<String> {
    if let Some(target) = &args.target {
        return Some(format!("the target {target}"));
    }
    let key = *given.keys().first()?;
    let flag = spec::field(key).map_or(key, |field| field.flag);
    Some(if flag.is_empty() { key.to_owned() } else { flag.to_owned() })
}
