//! Hooks of the proxy in JavaScript.

use std::sync::Arc;

use gake_shadow::Proxy;
use gake_shadow::config::Config;
use gake_shadow::hooks::HookScript;
use gake_shadow::script_hooks::{ConsoleLevel, HookLog};

use gake_session::{Console, Failure};
use gake_text::redact::Redactor;

/// Adds the hooks of `script`, if any, to `proxy`.
///
/// # Errors
/// When it cannot be loaded.
pub fn add(
    script: Option<&HookScript>,
    config: &Config,
    proxy: Proxy,
    console: &Console,
    redactor: &Redactor,
) -> Result<Proxy, Failure> {
    match script {
        Some(script) => script.add(config, log(*console), redactor, proxy).map_err(Failure::usage),
        None => Ok(proxy),
    }
}

/// The destination of a script's console and of its errors.
fn log(console: Console) -> HookLog {
    Arc::new(move |level, line| match level {
        ConsoleLevel::Log => console.note(line),
        ConsoleLevel::Warn => console.warn(line),
        ConsoleLevel::Error => console.error(line),
    })
}
