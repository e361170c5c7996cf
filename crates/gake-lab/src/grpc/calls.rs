//! The methods.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use prost::Message;

use super::encoded;
use super::frames::Frames;
use super::messages::{EchoReply, EchoRequest, HealthReply, HealthRequest, ReflectionRequest};
use super::reflection;
use super::replies::{Messages, Replies, Status};
use crate::timer::Timer;

/// The health that is always reported.
const SERVING: i32 = 1;

/// Services whose health is known; the empty name is that of the server.
const HEALTHY: [&str; 3] = ["", "gake.lab.v1.Echo", "grpc.health.v1.Health"];

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Say,
    Repeat,
    Collect,
    Chat,
    Health,
    Reflect,
}

impl Call {
    /// The method at a path.
    pub(super) fn named(path: &str) -> Option<Self> {
        Some(match path {
            "/gake.lab.v1.Echo/Say" => Self::Say,
            "/gake.lab.v1.Echo/Repeat" => Self::Repeat,
            "/gake.lab.v1.Echo/Collect" => Self::Collect,
            "/gake.lab.v1.Echo/Chat" => Self::Chat,
            "/grpc.health.v1.Health/Check" => Self::Health,
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => Self::Reflect,
            _ => return None,
        })
    }

    /// Whether one message is answered by one.
    pub(super) const fn is_unary(self) -> bool {
        matches!(self, Self::Say | Self::Health)
    }

    /// The reply to the message of a unary call, or its failure, and the time that it takes more.
    pub(super) fn unary(self, message: &Bytes) -> Result<(Duration, Bytes), (Duration, Status)> {
        if self == Self::Health {
            let asked: HealthRequest = read(message).map_err(|status| (Duration::ZERO, status))?;
            return match HEALTHY.contains(&asked.service.as_str()) {
                true => Ok((Duration::ZERO, encoded(&HealthReply { status: SERVING }))),
                false => Err((Duration::ZERO, Status::new(Status::NOT_FOUND, "unknown service"))),
            };
        }
        let asked: EchoRequest = read(message).map_err(|status| (Duration::ZERO, status))?;
        let delay = Duration::from_millis(asked.delay_ms.into());
        match end(&asked) {
            Some(status) => Err((delay, status)),
            None => Ok((delay, encoded(&EchoReply { text: asked.text, number: 1 }))),
        }
    }

    /// The replies to the messages of a stream.
    pub(super) fn stream(self, frames: Frames, timer: Arc<Timer>) -> Replies {
        Replies::new(match self {
            Self::Repeat => repeat(frames, timer),
            Self::Collect => stream::once(collect(frames)).boxed(),
            Self::Reflect => answered(frames, |message, _| {
                let asked: ReflectionRequest = read(message)?;
                Ok(encoded(&reflection::answer(asked)))
            }),
            Self::Chat | Self::Say | Self::Health => answered(frames, |message, number| {
                let asked: EchoRequest = read(message)?;
                match end(&asked) {
                    Some(status) => Err(status),
                    None => Ok(encoded(&EchoReply { text: asked.text, number })),
                }
            }),
        })
    }
}

fn read<M: Message + Default>(message: &Bytes) -> Result<M, Status> {
    M::decode(message.clone())
        .map_err(|error| Status::new(Status::INVALID_ARGUMENT, error.to_string()))
}

/// The failure that a question asks for.
fn end(asked: &EchoRequest) -> Option<Status> {
    (asked.status != 0).then(|| Status::new(asked.status, "as asked"))
}

/// A reply to each message, at once.
fn answered(
    frames: Frames,
    reply: impl Fn(&Bytes, u32) -> Result<Bytes, Status> + Send + Copy + 'static,
) -> Messages {
    let replies = stream::unfold(Some((frames, 1)), move |state| async move {
        let (mut frames, number) = state?;
        let answer = match frames.next().await {
            Ok(None) => return None,
            Ok(Some(message)) => reply(&message, number),
            Err(status) => Err(status),
        };
        let next = answer.is_ok().then_some((frames, number.saturating_add(1)));
        Some((answer, next))
    });
    replies.boxed()
}

/// All texts in one reply.
async fn collect(mut frames: Frames) -> Result<Bytes, Status> {
    let mut reply = EchoReply::default();
    while let Some(message) = frames.next().await? {
        let asked: EchoRequest = read(&message)?;
        if let Some(status) = end(&asked) {
            return Err(status);
        }
        reply.text.push_str(&asked.text);
        reply.number += 1;
    }
    Ok(encoded(&reply))
}

/// As many replies as were asked for, on a grid of instants.
fn repeat(mut frames: Frames, timer: Arc<Timer>) -> Messages {
    let begun = async move {
        let asked: Result<EchoRequest, Status> = match frames.only().await {
            Ok(message) => read(&message),
            Err(status) => Err(status),
        };
        match asked {
            Err(status) => stream::iter([Err(status)]).boxed(),
            Ok(asked) => repeated(asked, timer),
        }
    };
    stream::once(begun).flatten().boxed()
}

fn repeated(asked: EchoRequest, timer: Arc<Timer>) -> Messages {
    let (start, every) = (Instant::now(), Duration::from_millis(asked.every_ms.into()));
    let ending = stream::iter(end(&asked).map(Err));
    let replies = stream::iter(1..=asked.count).then(move |number| {
        let (timer, text) = (Arc::clone(&timer), asked.text.clone());
        async move {
            if !every.is_zero() && number > 1 {
                timer.sleep_until(start + every * (number - 1)).await;
            }
            Ok(encoded(&EchoReply { text, number }))
        }
    });
    replies.chain(ending).boxed()
}
