//! The routes: from a URI to the planned response.

pub(crate) mod echo;
mod params;
pub(crate) mod settings;

use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, Uri};

use crate::abort::Abort;
use crate::draws::Draws;
use params::{BadParam, Params};

/// The text of `/`: the list of routes.
pub const HELP: &str = "\
The lab: a target server whose behaviour is known.

  /fast                       a short text at once
  /slow?min=100ms&max=500ms   after a random delay, every one equally likely
  /delay/20ms                 after this delay
  /echo                       the request as JSON
  /status/503                 this status
  /bytes/1000000              a body of N bytes
  /stream/10?every=10ms       N chunks, one at each interval
  /events?n=10&every=100ms    N server-sent events, one at each interval
  /error?rate=0.1&code=503    this status, this often; else 200
  /reset?after=100            a TCP reset, without a response or after N bytes of it
  /close?after=100            the same with an orderly close
  /hang                       no response, ever
  /users                      with a database: POST a user, GET /users/1, GET /users/count, DELETE
  /ws?delay=20ms              a WebSocket that sends every message back

  grpc://.../gake.lab.v1.Echo/Say   gRPC: Say, Repeat, Collect and Chat, the standard health
                              check, and reflection

  /metrics                    counters, as Prometheus text
  /config                     the settings in force, as JSON
  /stall?for=1s               stops the whole server for this long
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Help,
    Fast,
    Slow,
    Delay,
    Echo,
    Status,
    Bytes,
    Stream,
    Events,
    Error,
    Reset,
    Close,
    Hang,
    Users,
    WebSocket,
    Grpc,
    Metrics,
    Config,
    Stall,
    Other,
}

impl Route {
    pub(crate) const COUNT: usize = Route::ALL.len();

    /// In the order of the discriminants.
    pub(crate) const ALL: [Route; 20] = [
        Route::Help,
        Route::Fast,
        Route::Slow,
        Route::Delay,
        Route::Echo,
        Route::Status,
        Route::Bytes,
        Route::Stream,
        Route::Events,
        Route::Error,
        Route::Reset,
        Route::Close,
        Route::Hang,
        Route::Users,
        Route::WebSocket,
        Route::Grpc,
        Route::Metrics,
        Route::Config,
        Route::Stall,
        Route::Other,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Route::Help => "/",
            Route::Fast => "/fast",
            Route::Slow => "/slow",
            Route::Delay => "/delay",
            Route::Echo => "/echo",
            Route::Status => "/status",
            Route::Bytes => "/bytes",
            Route::Stream => "/stream",
            Route::Events => "/events",
            Route::Error => "/error",
            Route::Reset => "/reset",
            Route::Close => "/close",
            Route::Hang => "/hang",
            Route::Users => "/users",
            Route::WebSocket => "/ws",
            Route::Grpc => "grpc",
            Route::Metrics => "/metrics",
            Route::Config => "/config",
            Route::Stall => "/stall",
            Route::Other => "other",
        }
    }

    pub(crate) fn of(path: &str) -> Route {
        if path == "/fast" {
            return Route::Fast;
        }
        let rest_at = path.get(1..).and_then(|tail| tail.find('/')).map(|at| at + 1);
        let takes_rest = [Route::Delay, Route::Status, Route::Bytes, Route::Stream, Route::Users];
        let (first, has_rest) = match rest_at {
            Some(at) => (&path[..at], true),
            None => (path, false),
        };
        let named = Route::ALL.into_iter().find(|route| route.name() == first);
        named.filter(|route| !has_rest || takes_rest.contains(route)).unwrap_or(Route::Other)
    }

    /// The lab's own routes, which its request counts exclude.
    pub(crate) fn is_control(self) -> bool {
        matches!(self, Route::Metrics | Route::Config | Route::Stall)
    }
}

/// The response that a request demands.
#[derive(Debug)]
pub(crate) enum ResponsePlan {
    Fast,
    Text(StatusCode, Bytes),
    Echo,
    Bytes(u64),
    /// Server-sent events or lines.
    Chunks {
        count: u64,
        every: Duration,
        are_events: bool,
    },
    /// Abort the connection before the response or after this number of body bytes.
    Abort {
        how: Abort,
        after: Option<u64>,
    },
    Hang,
    Users,
}

impl ResponsePlan {
    pub(crate) fn bad(bad: &BadParam) -> ResponsePlan {
        ResponsePlan::Text(StatusCode::BAD_REQUEST, Bytes::from(format!("{bad}\n")))
    }
}

/// Parses a request URI into a delay and a plan.
pub(crate) fn plan(
    route: Route,
    uri: &Uri,
    draws: &Draws,
) -> Result<(Duration, ResponsePlan), BadParam> {
    let params = Params::of(uri);
    let at_once = |plan| Ok((Duration::ZERO, plan));
    match route {
        Route::Help => {
            at_once(ResponsePlan::Text(StatusCode::OK, Bytes::from_static(HELP.as_bytes())))
        }
        Route::Fast => at_once(ResponsePlan::Fast),
        Route::Slow => Ok((slow_delay(&params, draws)?, ResponsePlan::Fast)),
        Route::Delay => Ok((params.path_duration("/delay/20ms")?, ResponsePlan::Fast)),
        Route::Echo => at_once(ResponsePlan::Echo),
        Route::Status => at_once(status(params.path_status()?)),
        Route::Bytes => at_once(ResponsePlan::Bytes(params.path_count("/bytes/1000")?)),
        Route::Stream => {
            let count = params.path_count("/stream/10")?;
            let every = params.duration("every")?.unwrap_or_default();
            at_once(ResponsePlan::Chunks { count, every, are_events: false })
        }
        Route::Events => {
            let count = params.count("n")?.unwrap_or(10);
            let every = params.duration("every")?.unwrap_or_default();
            at_once(ResponsePlan::Chunks { count, every, are_events: true })
        }
        Route::Error => at_once(error(&params, draws)?),
        Route::Reset => {
            at_once(ResponsePlan::Abort { how: Abort::Reset, after: params.count("after")? })
        }
        Route::Close => {
            at_once(ResponsePlan::Abort { how: Abort::Close, after: params.count("after")? })
        }
        Route::Hang => at_once(ResponsePlan::Hang),
        Route::Users => at_once(ResponsePlan::Users),
        Route::WebSocket => {
            let text = Bytes::from_static(b"this is a WebSocket: ask for the upgrade\n");
            at_once(ResponsePlan::Text(StatusCode::UPGRADE_REQUIRED, text))
        }
        // Handled elsewhere.
        Route::Grpc | Route::Metrics | Route::Config | Route::Stall | Route::Other => {
            let text = Bytes::from_static(b"no such route: / lists what there is\n");
            at_once(ResponsePlan::Text(StatusCode::NOT_FOUND, text))
        }
    }
}

/// The delay of `/ws` per message.
pub(crate) fn message_delay(uri: &Uri) -> Result<Duration, BadParam> {
    Ok(Params::of(uri).duration("delay")?.unwrap_or_default())
}

/// The length of a `/stall`, 1 s by default.
pub(crate) fn stall_length(uri: &Uri) -> Result<Duration, BadParam> {
    Ok(Params::of(uri).duration("for")?.unwrap_or(Duration::from_secs(1)))
}

fn slow_delay(params: &Params<'_>, draws: &Draws) -> Result<Duration, BadParam> {
    let min = params.duration("min")?.unwrap_or(Duration::from_millis(100));
    let max = params.duration("max")?;
    // A minimum alone may exceed the default maximum.
    let max = max.unwrap_or(Duration::from_millis(500).max(min));
    if min > max {
        return Err(BadParam::new("min must not be longer than max"));
    }
    Ok(min + (max - min).mul_f64(draws.next().unit()))
}

fn error(params: &Params<'_>, draws: &Draws) -> Result<ResponsePlan, BadParam> {
    let rate = params.fraction("rate")?.unwrap_or(1.0);
    let code = params.status("code")?.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    Ok(if draws.next().unit() < rate { status(code) } else { ResponsePlan::Fast })
}

fn status(code: StatusCode) -> ResponsePlan {
    let is_bodiless = matches!(code.as_u16(), 204 | 205 | 304);
    let reason = code.canonical_reason().unwrap_or("no name");
    let text = if is_bodiless { String::new() } else { format!("{} {reason}\n", code.as_u16()) };
    ResponsePlan::Text(code, Bytes::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_routes() {
        for (index, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, index);
            if route != Route::Other {
                assert_eq!(Route::of(route.name()), route);
            }
        }
        for (path, route) in [
            ("/delay/20ms", Route::Delay),
            ("/delay/a/b", Route::Delay),
            ("/bytes/", Route::Bytes),
            ("/fast/x", Route::Other),
            ("/fastest", Route::Other),
            ("//", Route::Other),
            ("", Route::Other),
            ("*", Route::Other),
            ("other", Route::Other),
            ("/é/x", Route::Other),
            ("é", Route::Other),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }

    #[test]
    fn errors_come_as_often_as_asked() {
        let draws = Draws::new(5, 2);
        let uri: Uri = "/error?rate=0.1&code=500".parse().unwrap();
        let is_error =
            |_: &u32| matches!(plan(Route::Error, &uri, &draws), Ok((_, ResponsePlan::Text(..))));
        let errors = (0..20_000).filter(is_error).count();
        assert!((1_800..2_200).contains(&errors), "{errors}");
    }

    #[test]
    fn slow_keeps_to_its_range() {
        let draws = Draws::new(5, 2);
        let uri: Uri = "/slow?min=10&max=20ms".parse().unwrap();
        for _ in 0..1000 {
            let (delay, _) = plan(Route::Slow, &uri, &draws).unwrap();
            assert!((Duration::from_millis(10)..=Duration::from_millis(20)).contains(&delay));
        }
    }
}
