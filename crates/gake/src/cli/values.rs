//! Parsers of flag values: this crate's own, and the session's.

use std::fmt;

use gake_session::Failure;
pub use gake_session::options::values::*;

use gake_users::UserStore;

/// A database of users, as the user wrote it. It may hold a password, which is not shown.
#[derive(Clone)]
pub struct StoreArg(pub String);

impl fmt::Debug for StoreArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreArg")
    }
}

impl StoreArg {
    /// What it means.
    ///
    /// # Errors
    /// When it is not a database; the message leaves out its password.
    pub fn store(&self) -> Result<UserStore, Failure> {
        self.0.parse().map_err(|error| Failure::usage(format!("--db: {error}")))
    }
}

/// A database of users.
pub fn store(text: &str) -> Result<StoreArg, String> {
    match text.parse::<UserStore>() {
        // A refused value is printed as it is: one that may hold a password is refused later.
        Err(error) if !may_hold_secrets(text) => Err(error.to_string()),
        _ => Ok(StoreArg(text.to_owned())),
    }
}

/// The runs of each side of a comparison: fewer than five leave no interval.
pub fn slices(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(slices) if (5..=100).contains(&slices) => Ok(slices),
        _ => Err("write a number from 5 to 100".to_owned()),
    }
}
