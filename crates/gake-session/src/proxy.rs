//! Proxies in the environment, for tools and scripts that read them from there.

use gake_core::spec::ConnectionSpec;
use gake_wire::ProxyRules;

use crate::Failure;

/// Uses the proxies in the environment of this process, unless the settings name another way.
///
/// # Errors
/// When a variable holds a proxy that gake cannot use.
pub fn use_environment(connection: &mut ConnectionSpec) -> Result<(), Failure> {
    if connection.proxy.is_some() || connection.unix_socket.is_some() {
        return Ok(());
    }
    connection.proxy = of_environment().map_err(Failure::usage)?;
    Ok(())
}

/// The proxies in the environment of this process, as text.
pub(crate) fn of_environment() -> Result<Option<String>, String> {
    let rules = ProxyRules::from_environment(|name| std::env::var(name).ok());
    rules.map_err(|(name, why)| format!("the variable {name}: {why}"))
}
