//! Replaces hooks in JavaScript in a build without the feature `scripts`: they are refused.

use gake_shadow::Proxy;
use gake_shadow::config::Config;
use gake_shadow::hooks::HookScript;

use gake_session::{Console, Failure};
use gake_text::redact::Redactor;

/// Refuses a script.
///
/// # Errors
/// When there is one.
pub fn add(
    script: Option<&HookScript>,
    _: &Config,
    proxy: Proxy,
    _: &Console,
    _: &Redactor,
) -> Result<Proxy, Failure> {
    let refused = |script: &HookScript| {
        Failure::usage(format!(
            "{}: this build runs no scripts: it was made without the feature `scripts`",
            script.path.display()
        ))
    };
    script.map_or(Ok(proxy), |script| Err(refused(script)))
}
