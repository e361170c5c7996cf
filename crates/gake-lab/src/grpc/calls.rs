//! The gRPC methods.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use prost::Message;

use super::encoded;
use super::frames::Frames;
use super::messages::{EchoReply, EchoRequest, HealthReply, HealthRequest, ReflectionRequest};
use super::reflection;
use super::replies::{CallStatus, MessageStream, Replies};
use crate::timer::Timer;

/// `ServingStatus.SERVING`, the only health that is reported.
const SERVING: i32 = 1;

/// Services with a known health; the empty name is the server's.
const HEALTHY: [&str; 3] = ["", "gake.lab.v1.Echo", "grpc.health.v1.Health"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Say,
    Repeat,
    Collect,
    Chat,
    Health,
    Reflect,
}

impl Method {
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

    /// Whether one request message gets one reply.
    pub(super) const fn is_unary(self) -> bool {
        matches!(self, Self::Say | Self::Health)
    }

    /// The reply to a unary call, or its failure, and the additional delay.
    pub(super) fn unary(
        self,
        message: &Bytes,
    ) -> Result<(Duration, Bytes), (Duration, CallStatus)> {
        if self == Self::Health {
            let request: HealthRequest =
                read(message).map_err(|status| (Duration::ZERO, status))?;
            return match HEALTHY.contains(&request.service.as_str()) {
                true => Ok((Duration::ZERO, encoded(&HealthReply { status: SERVING }))),
                false => {
                    Err((Duration::ZERO, CallStatus::new(CallStatus::NOT_FOUND, "unknown service")))
                }
            };
        }
        let request: EchoRequest = read(message).map_err(|status| (Duration::ZERO, status))?;
        let delay = Duration::from_millis(request.delay_ms.into());
        match end(&request) {
            Some(status) => Err((delay, status)),
            None => Ok((delay, encoded(&EchoReply { text: request.text, number: 1 }))),
        }
    }

    /// The replies to a stream of messages.
    pub(super) fn stream(self, frames: Frames, timer: Arc<Timer>) -> Replies {
        Replies::new(match self {
            Self::Repeat => repeat(frames, timer),
            Self::Collect => stream::once(collect(frames)).boxed(),
            Self::Reflect => reply_to_each(frames, |message, _| {
                let request: ReflectionRequest = read(message)?;
                Ok(encoded(&reflection::reply(request)))
            }),
            Self::Chat | Self::Say | Self::Health => reply_to_each(frames, |message, number| {
                let request: EchoRequest = read(message)?;
                match end(&request) {
                    Some(status) => Err(status),
                    None => Ok(encoded(&EchoReply { text: request.text, number })),
                }
            }),
        })
    }
}

fn read<M: Message + Default>(message: &Bytes) -> Result<M, CallStatus> {
    M::decode(message.clone())
        .map_err(|error| CallStatus::new(CallStatus::INVALID_ARGUMENT, error.to_string()))
}

/// The failure status that a request demands.
fn end(request: &EchoRequest) -> Option<CallStatus> {
    (request.status != 0).then(|| CallStatus::new(request.status, "as asked"))
}

/// A reply to each message, without delay.
fn reply_to_each(
    frames: Frames,
    reply: impl Fn(&Bytes, u32) -> Result<Bytes, CallStatus> + Send + Copy + 'static,
) -> MessageStream {
    let replies = stream::unfold(Some((frames, 1)), move |state| async move {
        let (mut frames, number) = state?;
        let result = match frames.next().await {
            Ok(None) => return None,
            Ok(Some(message)) => reply(&message, number),
            Err(status) => Err(status),
        };
        let next = result.is_ok().then_some((frames, number.saturating_add(1)));
        Some((result, next))
    });
    replies.boxed()
}

/// All texts in one reply.
async fn collect(mut frames: Frames) -> Result<Bytes, CallStatus> {
    let mut reply = EchoReply::default();
    while let Some(message) = frames.next().await? {
        let request: EchoRequest = read(&message)?;
        if let Some(status) = end(&request) {
            return Err(status);
        }
        reply.text.push_str(&request.text);
        reply.number += 1;
    }
    Ok(encoded(&reply))
}

/// The requested number of replies, at fixed intervals.
fn repeat(mut frames: Frames, timer: Arc<Timer>) -> MessageStream {
    let begun = async move {
        let request: Result<EchoRequest, CallStatus> = match frames.only().await {
            Ok(message) => read(&message),
            Err(status) => Err(status),
        };
        match request {
            Err(status) => stream::iter([Err(status)]).boxed(),
            Ok(request) => repeated(request, timer),
        }
    };
    stream::once(begun).flatten().boxed()
}

fn repeated(request: EchoRequest, timer: Arc<Timer>) -> MessageStream {
    let (start, every) = (Instant::now(), Duration::from_millis(request.every_ms.into()));
    let ending = stream::iter(end(&request).map(Err));
    let replies = stream::iter(1..=request.count).then(move |number| {
        let (timer, text) = (Arc::clone(&timer), request.text.clone());
        async move {
            if !every.is_zero() && number > 1 {
                timer.sleep_until(start + every * (number - 1)).await;
            }
            Ok(encoded(&EchoReply { text, number }))
        }
    });
    replies.chain(ending).boxed()
}
