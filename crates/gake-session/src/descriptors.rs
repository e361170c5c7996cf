//! The limit on file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one and returns it; [`u64::MAX`] without a limit.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Fails only where a policy forbids it; then the soft limit holds.
    let allowed =
        if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    allowed.unwrap_or(u64::MAX)
}
