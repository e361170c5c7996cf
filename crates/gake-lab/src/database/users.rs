//! `/users`: a row for each POST.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::error::DatabaseError;
use super::pool::Pool;
use super::real::{UserReply, UserRow, UserStatement};
use crate::timer::Timer;

/// Bytes of a body that are read; more is no user.
pub(crate) const BODY_CAP: usize = 64 << 10;
/// Longest name or mail, in bytes.
const TEXT_MAX: usize = 255;

/// The table of users, and the pool that leads to it.
#[derive(Debug)]
pub(crate) struct Users {
    pub(crate) pool: Pool,
}

/// An answer: its status and its JSON.
type Told = (StatusCode, Value);

impl Users {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Answers one request for `path` under `/users`. A database that cannot be reached is a 500
    /// with its own words.
    pub(crate) async fn answer(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
        timer: &Arc<Timer>,
    ) -> Told {
        let told = match (method.as_str(), path.strip_prefix("/users").unwrap_or_default()) {
            ("POST", "" | "/") => match user(body) {
                Ok((name, mail)) => self.insert(name, mail, timer).await,
                Err(why) => return (StatusCode::BAD_REQUEST, json!({ "error": why })),
            },
            ("GET" | "HEAD", "/count") => self.told(UserStatement::Count, timer).await,
            ("DELETE", "" | "/") => self.told(UserStatement::Clear, timer).await,
            ("GET" | "HEAD", path) if path.len() > 1 => {
                let Ok(id) = path[1..].parse() else {
                    let why = format!("{:?} is not the number of a user", &path[1..]);
                    return (StatusCode::BAD_REQUEST, json!({ "error": why }));
                };
                self.told(UserStatement::Get(id), timer).await
            }
            _ => {
                let why = "POST /users, GET /users/ID, GET /users/count or DELETE /users";
                return (StatusCode::METHOD_NOT_ALLOWED, json!({ "error": why }));
            }
        };
        told.unwrap_or_else(|error| {
            (StatusCode::INTERNAL_SERVER_ERROR, json!({ "error": error.to_string() }))
        })
    }

    async fn insert(
        &self,
        name: String,
        mail: String,
        timer: &Arc<Timer>,
    ) -> Result<Told, DatabaseError> {
        if self.pool.loses() {
            // The statement takes its time; what it changes is nothing.
            self.pool.execute(UserStatement::Get(0), timer).await?;
            return Ok((StatusCode::OK, UserRow { id: 0, name, mail }.json()));
        }
        self.told(UserStatement::Insert { name, mail }, timer).await
    }

    /// Executes a statement and tells its answer.
    async fn told(
        &self,
        statement: UserStatement,
        timer: &Arc<Timer>,
    ) -> Result<Told, DatabaseError> {
        let id = if let UserStatement::Get(id) = &statement { *id } else { 0 };
        Ok(match self.pool.execute(statement, timer).await? {
            UserReply::Row(Some(user)) => (StatusCode::OK, user.json()),
            UserReply::Row(None) => {
                (StatusCode::NOT_FOUND, json!({ "error": format!("no user {id}") }))
            }
            UserReply::Count(count) => (StatusCode::OK, json!({ "count": count })),
        })
    }
}

/// A user's name and mail from a body in JSON; those that are not given are made up.
fn user(body: &[u8]) -> Result<(String, String), String> {
    if body.is_empty() {
        return Ok(("nobody".to_owned(), "nobody@example.com".to_owned()));
    }
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let text = |name: &str, default: &str| match value[name].as_str() {
        Some(text) if text.len() > TEXT_MAX => {
            Err(format!("{name} is longer than {TEXT_MAX} bytes"))
        }
        // PostgreSQL has no such text.
        Some(text) if text.contains('\0') => Err(format!("{name} has a zero byte")),
        text => Ok(text.unwrap_or(default).to_owned()),
    };
    Ok((text("name", "nobody")?, text("mail", "nobody@example.com")?))
}
