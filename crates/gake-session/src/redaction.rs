//! The redaction of this process: its names from flags, its key from the system.

use gake_text::redact::{Redactor, SecretNames};

use crate::console::Console;
use crate::exit::Failure;
use crate::options::RedactionArgs;
use crate::random;

/// The word that turns it off.
const NONE: &str = "none";

/// What hides secrets as `args` say, under a new key. When nothing is hidden, that is said.
///
/// # Errors
/// When the flags contradict each other, or the system has no randomness.
pub fn redactor(args: &RedactionArgs, console: &Console) -> Result<Redactor, Failure> {
    told(args, false, console)
}

/// The same; `off` is an older flag that says `--redact none`.
///
/// # Errors
/// As [`redactor`].
pub fn told(args: &RedactionArgs, off: bool, console: &Console) -> Result<Redactor, Failure> {
    if off || args.redact.iter().any(|name| name == NONE) {
        if args.redact.iter().any(|name| name != NONE) || !args.keep.is_empty() {
            return Err(Failure::usage(
                "--redact none hides nothing: leave out the other names and --keep",
            ));
        }
        console.warn("nothing is redacted: secrets are stored and shown as they are");
        return Ok(Redactor::off());
    }
    usual(SecretNames::new(&args.redact, &args.keep))
}

/// What hides secrets by these names, under a new key.
///
/// # Errors
/// When the system has no randomness.
pub fn usual(names: SecretNames) -> Result<Redactor, Failure> {
    let key = random::bytes()
        .map_err(|error| Failure::could_not(format!("no key for the redaction: {error}")))?;
    Ok(Redactor::new(key, names))
}
