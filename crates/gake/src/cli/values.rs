//! Parsers of flag values: this crate's own, and the session's.

use std::fmt;

use gake_session::Failure;
pub use gake_session::options::values::*;

use gake_users::{UserStore, UserStoreError};

/// A database of users, as the user wrote it: a password, or `env:NAME` where one is.
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
        let refused = |why: String| Failure::usage(format!("--db: {why}"));
        let text = secret(&self.0).map_err(refused)?;
        text.parse().map_err(|error: UserStoreError| refused(error.to_string()))
    }
}

/// A database of users.
pub fn store(text: &str) -> Result<StoreArg, String> {
    let checked: Result<UserStore, UserStoreError> = secret(text)?.parse();
    checked.map(|_| StoreArg(text.to_owned())).map_err(|error| error.to_string())
}

/// The runs of each side of a comparison: fewer than five leave no interval.
pub fn slices(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(slices) if (5..=100).contains(&slices) => Ok(slices),
        _ => Err("write a number from 5 to 100".to_owned()),
    }
}
