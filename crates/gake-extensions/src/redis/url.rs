//! Options by a URL: `redis[s]://[[username][:password]@][host][:port][/database][?option=value]`.

use std::time::Duration;

use gake_go::duration::GoDuration;
use gake_wire::{StreamTlsOptions, percent_decoded};
use url::Url;

use super::options::{RedisOptions, pool_size, pool_wait, retries};

/// Options of a URL that have no effect here.
const WITHOUT_EFFECT: [&str; 8] = [
    "conn_max_lifetime_jitter",
    "max_active_conns",
    "max_concurrent_dials",
    "max_idle_conns",
    "min_idle_conns",
    "pool_fifo",
    "protocol",
    "skip_verify",
];

/// Parses a URL. Errors do not contain its password.
pub(super) fn parse(text: &str) -> Result<RedisOptions, String> {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "redis" | "rediss" => {}
        "unix" => return Err("gake reaches Redis by TCP, not by a Unix socket".to_owned()),
        other => return Err(format!("redis: invalid URL scheme: {other}")),
    }
    let url = Url::parse(text).map_err(|error| format!("parse: {error}"))?;
    let decoded = percent_decoded;
    let mut options = RedisOptions {
        username: decoded(url.username()),
        password: url.password().map(decoded).unwrap_or_default(),
        port: url.port().unwrap_or(6379),
        ..RedisOptions::default()
    };
    if let Some(host) = url.host_str().filter(|host| !host.is_empty()) {
        options.host = host.trim_matches(['[', ']']).to_owned();
    }
    if scheme == "rediss" {
        options.tls = Some(StreamTlsOptions::default());
    }
    let mut path = url.path().split('/').filter(|part| !part.is_empty());
    options.database = match (path.next(), path.next()) {
        (None, _) => 0,
        (Some(number), None) => {
            number.parse().map_err(|_| format!("redis: invalid database number: {number:?}"))?
        }
        (Some(_), Some(_)) => return Err(format!("redis: invalid URL path: {}", url.path())),
    };
    take_query(&mut options, &url)?;
    Ok(options)
}

fn take_query(options: &mut RedisOptions, url: &Url) -> Result<(), String> {
    let (mut write_timeout, mut pool_timeout) = (None, None);
    let mut unexpected = Vec::new();
    for (name, value) in url.query_pairs() {
        let integer = || {
            let wrong = |_| {
                format!(
                    "redis: invalid {name} number: strconv.Atoi: parsing {value:?}: invalid syntax"
                )
            };
            if value.is_empty() { Ok(0) } else { value.parse::<i64>().map_err(wrong) }
        };
        let time =
            || time_of(&value).map_err(|why| format!("redis: invalid {name} duration: {why}"));
        match &*name {
            "db" => options.database = integer()?,
            "client_name" => options.client_name = value.clone().into_owned(),
            "max_retries" => options.retries = retries(integer()?),
            "min_retry_backoff" => options.backoff_min = time()?.or_default(options.backoff_min),
            "max_retry_backoff" => options.backoff_max = time()?.or_default(options.backoff_max),
            "dial_timeout" => options.dial_timeout = time()?.or_default(options.dial_timeout),
            "read_timeout" => options.read_timeout = time()?.or_none(options.read_timeout),
            "write_timeout" => write_timeout = Some(time()?),
            "pool_size" => options.pool_size = pool_size(integer()?, options.pool_size),
            "pool_timeout" => pool_timeout = Some(time()?),
            "conn_max_idle_time" | "idle_timeout" => {
                options.idle_max = time()?.or_default(Duration::MAX);
            }
            "conn_max_lifetime" | "max_conn_age" => options.age_max = time()?.or_none(None),
            known if WITHOUT_EFFECT.contains(&known) => {}
            other => unexpected.push(other.to_owned()),
        }
    }
    let read = options.read_timeout;
    options.write_timeout = write_timeout.map_or(read, |time| time.or_none(read));
    let wait = pool_wait(read);
    options.pool_timeout = pool_timeout.map_or(wait, |time| time.or_default(wait));
    unexpected.sort_unstable();
    match unexpected.is_empty() {
        true => Ok(()),
        false => Err(format!("redis: unexpected option: {}", unexpected.join(", "))),
    }
}

/// A duration of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryTime {
    Default,
    Off,
    Given(Duration),
}

impl QueryTime {
    fn or_default(self, default: Duration) -> Duration {
        match self {
            Self::Given(time) => time,
            Self::Default | Self::Off => default,
        }
    }

    fn or_none(self, default: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Given(time) => Some(time),
            Self::Default => default,
            Self::Off => None,
        }
    }
}

/// Seconds, or a duration of Go; 0 and less are no limit.
fn time_of(text: &str) -> Result<QueryTime, String> {
    if text.is_empty() {
        return Ok(QueryTime::Default);
    }
    match text.parse::<i64>() {
        Ok(seconds) => Ok(match u64::try_from(seconds) {
            Ok(seconds @ 1..) => QueryTime::Given(Duration::from_secs(seconds)),
            _ => QueryTime::Off,
        }),
        Err(_) => match GoDuration::parse_go(text) {
            Ok(time) => Ok(QueryTime::Given(time.to_std())),
            Err(error) => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_url_has_all_options() {
        let options = parse("redis://me:p%40ss@[::1]:7000/3?read_timeout=2&pool_size=5").unwrap();
        assert_eq!((options.username.as_str(), options.password.as_str()), ("me", "p@ss"));
        assert_eq!((options.host.as_str(), options.port, options.database), ("::1", 7000, 3));
        assert_eq!(options.read_timeout, Some(Duration::from_secs(2)));
        assert_eq!(options.write_timeout, options.read_timeout);
        assert_eq!((options.pool_size, options.pool_timeout), (5, Duration::from_secs(3)));
        let options = parse("rediss://").unwrap();
        assert_eq!((options.host.as_str(), options.port), ("localhost", 6379));
        assert!(options.tls.is_some());
        let options = parse("redis://:secret@h?db=4&read_timeout=-1&dial_timeout=10ms").unwrap();
        assert_eq!((options.database, options.read_timeout), (4, None));
        assert_eq!(options.dial_timeout, Duration::from_millis(10));
    }

    #[test]
    fn errors_of_urls_hold_no_password() {
        let mut errors = String::new();
        for text in [
            "localhost:6379",
            "https://me:secret@localhost:6379",
            "6379",
            "redis://me:secret@h:port",
            "redis://me:secret@h/zero",
            "redis://me:secret@h/0/1",
            "redis://me:secret@h?pool_size=many",
            "redis://me:secret@h?dial_timeout=soon",
            "redis://me:secret@h?b=1&a=2",
            "unix:///run/redis.sock",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
            errors += &format!("{error}\n");
        }
        expect![[r#"
            redis: invalid URL scheme: localhost
            redis: invalid URL scheme: https
            redis: invalid URL scheme: 
            parse: invalid port number
            redis: invalid database number: "zero"
            redis: invalid URL path: /0/1
            redis: invalid pool_size number: strconv.Atoi: parsing "many": invalid syntax
            redis: invalid dial_timeout duration: time: invalid duration "soon"
            redis: unexpected option: a, b
            gake reaches Redis by TCP, not by a Unix socket
        "#]]
        .assert_eq(&errors);
    }
}
