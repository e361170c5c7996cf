//! Redaction of secrets: names from flags, the key from the system.

use gake_text::redact::{Redactor, SecretNames};

use crate::console::Console;
use crate::exit::Failure;
use crate::options::RedactionArgs;
use crate::random;

/// The name that disables redaction.
const NONE: &str = "none";

/// The redactor for these flags, with a new key. Warns if redaction is off.
///
/// # Errors
/// When the flags contradict each other, or the system has no randomness.
pub fn redactor(args: &RedactionArgs, console: &Console) -> Result<Redactor, Failure> {
    redactor_with(args, false, console)
}

/// As [`redactor`]; `off` is an older flag for `--redact none`.
///
/// # Errors
/// As [`redactor`].
pub fn redactor_with(
    args: &RedactionArgs,
    off: bool,
    console: &Console,
) -> Result<Redactor, Failure> {
    if off || args.redact.iter().any(|name| name == NONE) {
        if args.redact.iter().any(|name| name != NONE) || !args.keep.is_empty() {
            return Err(Failure::usage(
                "--redact none hides nothing: leave out the other names and --keep",
            ));
        }
        console.warn("nothing is redacted: secrets are stored and shown as they are");
        return Ok(Redactor::off());
    }
    redactor_for(SecretNames::new(&args.redact, &args.keep))
}

/// The redactor of lines that are only shown, for these flags.
pub fn mask(args: &RedactionArgs) -> Redactor {
    match args.redact.iter().any(|name| name == NONE) {
        true => Redactor::off(),
        false => Redactor::masking(SecretNames::new(&args.redact, &args.keep)),
    }
}

/// A redactor for these names, with a new key.
///
/// # Errors
/// When the system has no randomness.
pub fn redactor_for(names: SecretNames) -> Result<Redactor, Failure> {
    let key = random::bytes()
        .map_err(|error| Failure::could_not(format!("no key for the redaction: {error}")))?;
    Ok(Redactor::new(key, names))
}
