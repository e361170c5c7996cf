//! A real database behind the users service. The lab knows no database protocol: its caller brings
//! one.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// A real database with a table of users.
pub trait UserDatabase: Debug + Send + Sync {
    /// Opens a connection. The error is the database's own message.
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn UserConnection>, String>>;
}

/// A connection to a [`UserDatabase`]; dropping it closes it.
pub trait UserConnection: Debug + Send {
    /// Executes a statement. After an error, or when dropped midway, the connection is not used
    /// again.
    fn execute(&mut self, statement: UserStatement) -> BoxFuture<'_, Result<UserReply, String>>;
}

/// A statement on the table of users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserStatement {
    /// Insert a row.
    Insert {
        /// The user's name.
        name: String,
        /// The user's mail address.
        mail: String,
    },
    /// Select the row with this id.
    Get(u64),
    /// Count the rows.
    Count,
    /// Delete every row.
    Clear,
}

/// The reply to a [`UserStatement`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserReply {
    /// The row inserted or selected; `None` if there is none.
    Row(Option<UserRow>),
    /// The number of rows.
    Count(u64),
}

/// A row of the table of users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// The row's number, from 1.
    pub id: u64,
    /// The user's name.
    pub name: String,
    /// The user's mail address.
    pub mail: String,
}

impl UserRow {
    pub(super) fn json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "mail": self.mail })
    }
}

/// A [`UserDatabase`] in the lab's settings. Two are equal only if they are the same instance.
#[derive(Debug, Clone)]
pub struct RealDatabase(pub(super) Arc<dyn UserDatabase>);

impl RealDatabase {
    /// Wraps a database for the settings of a lab.
    pub fn new(database: impl UserDatabase + 'static) -> Self {
        Self(Arc::new(database))
    }
}

impl PartialEq for RealDatabase {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RealDatabase {}
