//! `/users`: a row for each POST.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::error::DatabaseError;
use super::pool::ConnectionPool;
use super::real::{UserReply, UserRow, UserStatement};
use crate::timer::Timer;

/// Bytes of a request body that are kept; a longer one is no valid user.
pub(crate) const BODY_CAP: usize = 64 << 10;
/// Longest name or mail, in bytes.
const TEXT_MAX: usize = 255;

/// The service and its connection pool.
#[derive(Debug)]
pub(crate) struct UserService {
    pub(crate) pool: ConnectionPool,
}

type JsonReply = (StatusCode, Value);

impl UserService {
    pub(crate) fn new(pool: ConnectionPool) -> Self {
        Self { pool }
    }

    /// Serves one request for `path` under `/users`. A database error is a 500 with the database's
    /// own message.
    pub(crate) async fn serve(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
        timer: &Arc<Timer>,
    ) -> JsonReply {
        let reply = match (method.as_str(), path.strip_prefix("/users").unwrap_or_default()) {
            ("POST", "" | "/") => match user(body) {
                Ok((name, mail)) => self.insert(name, mail, timer).await,
                Err(why) => return (StatusCode::BAD_REQUEST, json!({ "error": why })),
            },
            ("GET" | "HEAD", "/count") => self.execute(UserStatement::Count, timer).await,
            ("DELETE", "" | "/") => self.execute(UserStatement::Clear, timer).await,
            ("GET" | "HEAD", path) if path.len() > 1 => {
                let Ok(id) = path[1..].parse() else {
                    let why = format!("{:?} is not the number of a user", &path[1..]);
                    return (StatusCode::BAD_REQUEST, json!({ "error": why }));
                };
                self.execute(UserStatement::Get(id), timer).await
            }
            _ => {
                let why = "POST /users, GET /users/ID, GET /users/count or DELETE /users";
                return (StatusCode::METHOD_NOT_ALLOWED, json!({ "error": why }));
            }
        };
        reply.unwrap_or_else(|error| {
            (StatusCode::INTERNAL_SERVER_ERROR, json!({ "error": error.to_string() }))
        })
    }

    async fn insert(
        &self,
        name: String,
        mail: String,
        timer: &Arc<Timer>,
    ) -> Result<JsonReply, DatabaseError> {
        if self.pool.loses() {
            // Takes the time of a statement and changes nothing.
            self.pool.execute(UserStatement::Get(0), timer).await?;
            return Ok((StatusCode::OK, UserRow { id: 0, name, mail }.json()));
        }
        self.execute(UserStatement::Insert { name, mail }, timer).await
    }

    /// Executes a statement and returns its reply as JSON.
    async fn execute(
        &self,
        statement: UserStatement,
        timer: &Arc<Timer>,
    ) -> Result<JsonReply, DatabaseError> {
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

/// A user's name and mail from a JSON body; absent ones get defaults.
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
        // PostgreSQL text cannot hold it.
        Some(text) if text.contains('\0') => Err(format!("{name} has a zero byte")),
        text => Ok(text.unwrap_or(default).to_owned()),
    };
    Ok((text("name", "nobody")?, text("mail", "nobody@example.com")?))
}
