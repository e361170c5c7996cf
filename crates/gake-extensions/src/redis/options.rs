//! The options of a client, and their JSON, with the errors of the extension.

use std::time::Duration;

use gake_wire::{StreamTlsOptions, TlsIdentity};
use serde_json::{Map, Value};

/// The time that connecting may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that a reply may take.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// Connections of a client, for each core.
const POOL_PER_CORE: usize = 10;

/// The options of a client.
#[derive(Clone)]
pub(super) struct RedisOptions {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) username: String,
    /// Never shown.
    pub(super) password: String,
    pub(super) client_name: String,
    pub(super) database: i64,
    /// `None` for clear text.
    pub(super) tls: Option<StreamTlsOptions>,
    /// Further attempts of a command.
    pub(super) retries: u32,
    pub(super) backoff_min: Duration,
    pub(super) backoff_max: Duration,
    pub(super) dial_timeout: Duration,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
    /// Connections at a time.
    pub(super) pool_size: usize,
    pub(super) pool_timeout: Duration,
    /// Connections that are older are closed.
    pub(super) age_max: Option<Duration>,
    /// Connections that are idle for longer are closed.
    pub(super) idle_max: Duration,
}

impl std::fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOptions").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            host: "localhost".to_owned(),
            port: 6379,
            username: String::new(),
            password: String::new(),
            client_name: String::new(),
            database: 0,
            tls: None,
            retries: 3,
            backoff_min: Duration::from_millis(8),
            backoff_max: Duration::from_millis(512),
            dial_timeout: DIAL_TIMEOUT,
            read_timeout: Some(READ_TIMEOUT),
            write_timeout: Some(READ_TIMEOUT),
            pool_size: POOL_PER_CORE * cores,
            pool_timeout: READ_TIMEOUT + Duration::from_secs(1),
            age_max: None,
            idle_max: Duration::from_secs(30 * 60),
        }
    }
}

impl RedisOptions {
    /// The options of an object for one server; `of` is its type in errors.
    pub(super) fn of_node(node: &Map<String, Value>, of: &str) -> Result<Self, String> {
        let mut options = Self::default();
        let mut has_socket = false;
        for (name, value) in node {
            let field = Field { of, name, value };
            match name.to_lowercase().as_str() {
                _ if value.is_null() => {}
                "socket" => {
                    has_socket = true;
                    options.take_socket(field.object("redis.socketOptions")?)?;
                }
                "username" => options.username = field.text()?,
                "password" => options.password = field.text()?,
                "clientname" => options.client_name = field.text()?,
                "database" => options.database = field.integer()?,
                "maxretries" => options.retries = retries(field.integer()?),
                "minretrybackoff" => {
                    options.backoff_min = backoff(field.integer()?, options.backoff_min)
                }
                "maxretrybackoff" => {
                    options.backoff_max = backoff(field.integer()?, options.backoff_max)
                }
                _ => return Err(unknown(name)),
            }
        }
        if has_socket { Ok(options) } else { Err("empty socket options".to_owned()) }
    }

    fn take_socket(&mut self, socket: &Map<String, Value>) -> Result<(), String> {
        let (mut host, mut port) = (String::new(), 0);
        let (mut pool_timeout, mut write_timeout) = (None, None);
        for (name, value) in socket {
            let path = format!("socket.{name}");
            let field = Field { of: "socketOptions", name: &path, value };
            match name.to_lowercase().as_str() {
                _ if value.is_null() => {}
                "host" => host = field.text()?,
                "port" => port = field.integer()?,
                "tls" => self.tls = Some(tls(field.object("redis.tlsOptions")?)?),
                "dialtimeout" => self.dial_timeout = field.millis()?.unwrap_or(DIAL_TIMEOUT),
                "readtimeout" => self.read_timeout = field.millis()?.or(self.read_timeout),
                "writetimeout" => write_timeout = field.millis()?,
                "poolsize" => self.pool_size = pool_size(field.integer()?, self.pool_size),
                "minidleconns" | "idlecheckfrequency" => drop(field.integer()?),
                "maxconnage" => self.age_max = field.millis()?,
                "pooltimeout" => pool_timeout = field.millis()?,
                "idletimeout" => self.idle_max = field.millis()?.unwrap_or(self.idle_max),
                _ => return Err(unknown(name)),
            }
        }
        self.write_timeout = write_timeout.or(self.read_timeout);
        self.pool_timeout = pool_timeout.unwrap_or_else(|| pool_wait(self.read_timeout));
        if !(host.is_empty() && port == 0) {
            self.port = u16::try_from(port)
                .map_err(|_| format!("dial tcp: address {port}: invalid port"))?;
            self.host = host;
        }
        Ok(())
    }
}

/// A number of connections; 0 is the default.
pub(super) fn pool_size(number: i64, default: usize) -> usize {
    match usize::try_from(number) {
        Ok(size @ 1..) => size.min(1 << 16),
        _ => default,
    }
}

/// The wait for a connection by default.
pub(super) fn pool_wait(read_timeout: Option<Duration>) -> Duration {
    read_timeout.map_or(Duration::from_secs(30), |read| read + Duration::from_secs(1))
}

/// Further attempts: 3 by default, -1 for none.
pub(super) fn retries(number: i64) -> u32 {
    match number {
        0 => 3,
        number => u32::try_from(number).unwrap_or(0).min(1_000),
    }
}

/// Nanoseconds, as Go's durations are: 0 is the default, -1 none.
fn backoff(nanos: i64, default: Duration) -> Duration {
    match nanos {
        0 => default,
        nanos => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
    }
}

fn tls(object: &Map<String, Value>) -> Result<StreamTlsOptions, String> {
    let mut options = StreamTlsOptions::default();
    let (mut certificates, mut key) = (String::new(), String::new());
    for (name, value) in object {
        let path = format!("socket.tls.{name}");
        let field = Field { of: "tlsOptions", name: &path, value };
        match name.to_lowercase().as_str() {
            _ if value.is_null() => {}
            "ca" => {
                let Some(all) = value.as_array() else { return Err(field.is_not("[]string")) };
                for value in all {
                    options.authorities.push(Field { value, ..field }.text()?);
                }
            }
            "cert" => certificates = field.text()?,
            "key" => key = field.text()?,
            _ => return Err(unknown(name)),
        }
    }
    if !certificates.is_empty() && !key.is_empty() {
        options.identity = Some(TlsIdentity { certificates, key });
    }
    Ok(options)
}

/// Go's error for a field that it does not know.
pub(super) fn unknown(name: &str) -> String {
    format!("json: unknown field {name:?}")
}

/// The type of a value of a script, as Go names it.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A field of an object, and Go's error for one of a wrong type.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// The type of the object that holds it.
    of: &'a str,
    /// The names of the objects that hold it, and its own.
    name: &'a str,
    value: &'a Value,
}

impl<'a> Field<'a> {
    fn is_not(&self, kind: &str) -> String {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let Self { of, name, .. } = self;
        format!("json: cannot unmarshal {found} into Go struct field {of}.{name} of type {kind}")
    }

    fn text(&self) -> Result<String, String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.is_not("string"))
    }

    fn integer(&self) -> Result<i64, String> {
        self.value.as_i64().ok_or_else(|| self.is_not("int"))
    }

    /// A positive number of milliseconds.
    fn millis(&self) -> Result<Option<Duration>, String> {
        let millis = self.value.as_i64().ok_or_else(|| self.is_not("int64"))?;
        Ok(u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis))
    }

    fn object(&self, kind: &str) -> Result<&'a Map<String, Value>, String> {
        self.value.as_object().ok_or_else(|| self.is_not(kind))
    }
}
