//! A database that exists, as the users service uses it. The lab knows no database's protocol: who
//! starts it brings one.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// A database that has users.
pub trait UserDatabase: Debug + Send + Sync {
    /// Opens a connection. The error is in the database's own words.
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn UserConnection>, String>>;
}

/// A connection to a [`UserDatabase`]; closed when dropped.
pub trait UserConnection: Debug + Send {
    /// Executes a statement. After an error, or when it is given up in between, the connection is
    /// not used again.
    fn execute(&mut self, statement: UserStatement) -> BoxFuture<'_, Result<UserReply, String>>;
}

/// What is asked of the table of users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserStatement {
    /// A new row.
    Insert {
        /// The user's name.
        name: String,
        /// The user's mail address.
        mail: String,
    },
    /// The row with this id.
    Get(u64),
    /// The number of rows.
    Count,
    /// Every row is deleted.
    Clear,
}

/// The answer to a [`UserStatement`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserReply {
    /// The row that was inserted or found; `None` if there is none.
    Row(Option<UserRow>),
    /// The number of rows that there are.
    Count(u64),
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// Its number, from 1.
    pub id: u64,
    /// The name.
    pub name: String,
    /// The mail address.
    pub mail: String,
}

impl UserRow {
    pub(super) fn json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "mail": self.mail })
    }
}

/// A [`UserDatabase`] as a part of the lab's settings; equal to itself alone.
#[derive(Debug, Clone)]
pub struct RealDatabase(pub(super) Arc<dyn UserDatabase>);

impl RealDatabase {
    /// A database for the settings of a lab.
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
