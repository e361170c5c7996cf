//! A connection to a server, authenticated and with its database selected.

use std::rc::Rc;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_k6::user::dial::{UserStream, dial};
use gake_k6::user::vu::Vu;
use gake_script::user::HeapCharge;
use gake_wire::StreamTls;
use tokio::io::{AsyncWriteExt, BufReader};

use super::options::RedisOptions;
use super::reply::{ReadError, Reply, encoded, lost, read};
use crate::later::{sleep, within};

/// Attempts to connect before a command fails, and the pause between them.
const DIALS: usize = 5;
const DIAL_PAUSE: Duration = Duration::from_millis(100);

/// Capacity of a connection's buffer.
const BUFFER: usize = 4 << 10;

/// Why a command has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandError {
    /// There is no connection, or it was lost: another attempt may succeed.
    Lost(String),
    /// Another attempt would fail, too.
    Final(String),
    /// The reply does not fit into the script's heap.
    NoMemory,
}

pub(super) struct RedisConnection {
    vu: Rc<Vu>,
    stream: BufReader<UserStream>,
    opened: Nanos,
    /// When it was used last.
    pub(super) used: Nanos,
}

impl RedisConnection {
    /// Connects and authenticates.
    pub(super) async fn open(
        vu: &Rc<Vu>,
        options: &RedisOptions,
        tls: Option<&StreamTls>,
        charge: &mut HeapCharge,
    ) -> Result<Self, CommandError> {
        let stream = connected(vu, options, tls).await?;
        let stream = BufReader::with_capacity(BUFFER, stream);
        let now = vu.now();
        let mut connection = Self { vu: Rc::clone(vu), stream, opened: now, used: now };
        connection.greet(options, charge).await?;
        Ok(connection)
    }

    /// Whether it is too old, or was idle for too long.
    pub(super) fn is_stale(&self, options: &RedisOptions) -> bool {
        let now = self.vu.now();
        let since = |then: Nanos| Duration::from_nanos(now.saturating_sub(then));
        since(self.used) >= options.idle_max
            || options.age_max.is_some_and(|age| since(self.opened) >= age)
    }

    /// Sends a command and reads its reply.
    pub(super) async fn call(
        &mut self,
        command: &[u8],
        options: &RedisOptions,
        charge: &mut HeapCharge,
    ) -> Result<Reply, CommandError> {
        let vu = Rc::clone(&self.vu);
        let sent = limited(&vu, options.write_timeout, "write", async {
            let stream = self.stream.get_mut();
            stream.write_all(command).await.map_err(|error| lost(&error))?;
            stream.flush().await.map_err(|error| lost(&error))
        });
        sent.await?;
        let reply = limited(&vu, options.read_timeout, "read", read(&mut self.stream, charge));
        let reply = reply.await?;
        self.used = self.vu.now();
        Ok(reply)
    }

    /// What the extension's client sends first.
    async fn greet(
        &mut self,
        options: &RedisOptions,
        charge: &mut HeapCharge,
    ) -> Result<(), CommandError> {
        let RedisOptions { username, password, client_name, database, .. } = options;
        let mut hello = vec!["hello", "2"];
        let user = if username.is_empty() { "default" } else { username.as_str() };
        if !password.is_empty() {
            hello.extend(["auth", user, password]);
        }
        if !client_name.is_empty() {
            hello.extend(["setname", client_name]);
        }
        let reply = self.call(&encoded(&hello), options, charge).await?;
        if matches!(reply, Reply::Error(_)) && !password.is_empty() {
            let auth = match username.is_empty() {
                true => vec!["auth", password],
                false => vec!["auth", username, password],
            };
            let reply = self.call(&encoded(&auth), options, charge).await?;
            accepted(reply)?;
        }
        if *database > 0 {
            let select = ["select".to_owned(), database.to_string()];
            let reply = self.call(&encoded(&select), options, charge).await?;
            accepted(reply)?;
        }
        Ok(())
    }
}

async fn connected(
    vu: &Rc<Vu>,
    options: &RedisOptions,
    tls: Option<&StreamTls>,
) -> Result<UserStream, CommandError> {
    let RedisOptions { host, port, dial_timeout, .. } = options;
    let mut last = String::new();
    for attempt in 0..DIALS {
        if attempt > 0 {
            sleep(vu, DIAL_PAUSE).await;
        }
        let stream = match dial(vu, host, *port, *dial_timeout).await {
            Ok(stream) => stream,
            Err(error) if error.is_blocked => return Err(CommandError::Final(error.message)),
            Err(error) => {
                last = error.message;
                continue;
            }
        };
        let Some(tls) = tls else { return Ok(stream) };
        match within(vu, *dial_timeout, stream.secure(tls)).await {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(message)) => return Err(CommandError::Final(message)),
            None => last = format!("dial tcp {host}:{port}: i/o timeout"),
        }
    }
    Err(CommandError::Lost(last))
}

/// The output of a read or write, which may take `limit`.
async fn limited<T>(
    vu: &Vu,
    limit: Option<Duration>,
    what: &str,
    future: impl Future<Output = Result<T, ReadError>>,
) -> Result<T, CommandError> {
    let ended = match limit {
        Some(limit) => within(vu, limit, future).await,
        None => Some(future.await),
    };
    match ended {
        Some(Ok(value)) => Ok(value),
        Some(Err(ReadError::Lost(message))) => Err(CommandError::Lost(message)),
        Some(Err(ReadError::NoMemory)) => Err(CommandError::NoMemory),
        None => Err(CommandError::Lost(format!("{what} tcp: i/o timeout"))),
    }
}

fn accepted(reply: Reply) -> Result<(), CommandError> {
    match reply {
        Reply::Error(error) => Err(CommandError::Final(error)),
        _ => Ok(()),
    }
}
