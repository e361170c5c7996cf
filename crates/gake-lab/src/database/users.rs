//! `/users`: a row for each POST.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::model::DatabaseError;
use super::pool::Pool;
use crate::timer::Timer;

/// Bytes of a body that are read; more is no user.
pub(crate) const BODY_CAP: usize = 64 << 10;
/// Users that are kept with their names; of others only the number is known.
const KEPT: usize = 100_000;
/// Longest name or mail, in bytes.
const TEXT_MAX: usize = 255;

/// The table of users, and the pool that leads to it.
#[derive(Debug)]
pub(crate) struct Users {
    pub(crate) pool: Arc<Pool>,
    rows: Mutex<Rows>,
    last_id: AtomicU64,
}

#[derive(Debug, Default)]
struct Rows {
    /// The first ones, in order.
    kept: Vec<User>,
    count: u64,
}

#[derive(Debug, Clone)]
struct User {
    id: u64,
    name: String,
    mail: String,
}

impl User {
    fn json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "mail": self.mail })
    }
}

/// An answer: its status and its JSON.
type Told = (StatusCode, Value);

impl Users {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool: Arc::new(pool), rows: Mutex::default(), last_id: AtomicU64::new(0) }
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
            ("GET" | "HEAD", "/count") => self.count(timer).await,
            ("DELETE", "" | "/") => self.clear(timer).await,
            ("GET" | "HEAD", path) if path.len() > 1 => {
                let Ok(id) = path[1..].parse() else {
                    let why = format!("{:?} is not the number of a user", &path[1..]);
                    return (StatusCode::BAD_REQUEST, json!({ "error": why }));
                };
                self.get(id, timer).await
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
        let _lease = self.pool.acquire(timer).await?;
        self.pool.statement(timer).await;
        let mut rows = self.rows();
        // Within the lock, so that rows are in the order of their ids.
        let id = self.last_id.fetch_add(1, Relaxed) + 1;
        let user = User { id, name, mail };
        let told = user.json();
        if self.pool.loses(id) {
            return Ok((StatusCode::OK, told));
        }
        rows.count += 1;
        if rows.kept.len() < KEPT {
            rows.kept.push(user);
        }
        Ok((StatusCode::OK, told))
    }

    async fn get(&self, id: u64, timer: &Arc<Timer>) -> Result<Told, DatabaseError> {
        let _lease = self.pool.acquire(timer).await?;
        self.pool.statement(timer).await;
        let found = {
            let rows = self.rows();
            let at = rows.kept.binary_search_by_key(&id, |user| user.id);
            at.ok().map(|at| rows.kept[at].json())
        };
        Ok(match found {
            Some(user) => (StatusCode::OK, user),
            None => (StatusCode::NOT_FOUND, json!({ "error": format!("no user {id}") })),
        })
    }

    async fn count(&self, timer: &Arc<Timer>) -> Result<Told, DatabaseError> {
        let _lease = self.pool.acquire(timer).await?;
        self.pool.statement(timer).await;
        Ok((StatusCode::OK, json!({ "count": self.rows().count })))
    }

    async fn clear(&self, timer: &Arc<Timer>) -> Result<Told, DatabaseError> {
        let _lease = self.pool.acquire(timer).await?;
        self.pool.statement(timer).await;
        *self.rows() = Rows::default();
        Ok((StatusCode::OK, json!({ "count": 0 })))
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
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
        text => Ok(text.unwrap_or(default).to_owned()),
    };
    Ok((text("name", "nobody")?, text("mail", "nobody@example.com")?))
}
