//! A client: its connections, and further attempts where one was lost.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use gake_k6::user::dial::tls_settings;
use gake_k6::user::vu::Vu;
use gake_script::user::HeapCharge;
use gake_wire::StreamTls;
use tokio::sync::Semaphore;

use super::connection::{CommandError, RedisConnection};
use super::options::RedisOptions;
use super::reply::Reply;
use crate::later::{sleep, within};

/// Replies after which the command is sent again.
const BUSY: [&str; 7] = [
    "CLUSTERDOWN ",
    "ERR max number of clients reached",
    "LOADING ",
    "MASTERDOWN ",
    "NOREPLICAS ",
    "READONLY ",
    "TRYAGAIN ",
];

pub(super) struct RedisClient {
    pub(super) vu: Rc<Vu>,
    options: RedisOptions,
    tls: OnceCell<Result<StreamTls, String>>,
    /// One permit for each connection at a time.
    permits: Semaphore,
    /// The last one was used last.
    idle: RefCell<Vec<RedisConnection>>,
    /// Whether a command was sent.
    pub(super) is_connected: Cell<bool>,
}

impl RedisClient {
    pub(super) fn new(vu: &Rc<Vu>, options: RedisOptions) -> Rc<Self> {
        Rc::new(Self {
            vu: Rc::clone(vu),
            permits: Semaphore::new(options.pool_size),
            options,
            tls: OnceCell::new(),
            idle: RefCell::default(),
            is_connected: Cell::new(false),
        })
    }

    /// Sends a command until there is a reply, or no attempt is left.
    pub(super) async fn run(
        &self,
        command: &[u8],
        charge: &mut HeapCharge,
    ) -> Result<Reply, CommandError> {
        let mut attempt = 0;
        loop {
            let result = self.attempt(command, charge).await;
            let is_over = match &result {
                Ok(Reply::Error(error)) => !BUSY.iter().any(|start| error.starts_with(start)),
                Ok(_) | Err(CommandError::Final(_) | CommandError::NoMemory) => true,
                Err(CommandError::Lost(_)) => false,
            };
            if is_over || attempt >= self.options.retries {
                return result;
            }
            attempt += 1;
            sleep(&self.vu, self.backoff(attempt)).await;
        }
    }

    fn backoff(&self, attempt: u32) -> Duration {
        let longer = self.options.backoff_min.saturating_mul(1 << attempt.min(16));
        longer.min(self.options.backoff_max)
    }

    async fn attempt(
        &self,
        command: &[u8],
        charge: &mut HeapCharge,
    ) -> Result<Reply, CommandError> {
        let options = &self.options;
        let permit = within(&self.vu, options.pool_timeout, self.permits.acquire()).await;
        let Some(Ok(_permit)) = permit else {
            return Err(CommandError::Lost("redis: connection pool timeout".to_owned()));
        };
        self.idle.borrow_mut().retain(|idle| !idle.is_stale(options));
        let idle = self.idle.borrow_mut().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => RedisConnection::open(&self.vu, options, self.tls()?, charge).await?,
        };
        let reply = connection.call(command, options, charge).await?;
        self.idle.borrow_mut().push(connection);
        Ok(reply)
    }

    fn tls(&self) -> Result<Option<&StreamTls>, CommandError> {
        let Some(own) = &self.options.tls else { return Ok(None) };
        let made = self.tls.get_or_init(|| tls_settings(&self.vu, &self.options.host, own));
        made.as_ref().map(Some).map_err(|why| CommandError::Final(why.clone()))
    }
}
