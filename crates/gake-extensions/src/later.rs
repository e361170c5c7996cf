//! Results that scripts get later: promises, and waits with a time limit.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use gake_core::clock::{Clock, nanos};
use gake_js::errors::go_value;
use gake_k6::user::vu::Vu;
use gake_script::user::Completion;
use rquickjs::{Ctx, Persistent, Promise, Value};

/// Why a promise is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// An error of Go, by its message.
    Error(String),
    /// An error of Go with fields: its text, and each field with its value.
    Fields(String, Vec<(&'static str, serde_json::Value)>),
    /// The script's heap is full.
    NoMemory,
}

/// A promise for the result of a future that runs beside the script.
pub(crate) fn promise<'js, T: 'static>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    future: impl Future<Output = Result<T, Rejection>> + 'static,
    shown: impl for<'a> FnOnce(&Ctx<'a>, T) -> rquickjs::Result<Value<'a>> + 'static,
) -> rquickjs::Result<Promise<'js>> {
    vu.room_for_task(ctx)?;
    let (promise, resolve, reject) = ctx.promise()?;
    let (resolve, reject) = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
    vu.tasks.add(async move {
        let result = future.await;
        Box::new(move |ctx: &Ctx<'_>| {
            let value = match result {
                Ok(value) => shown(ctx, value),
                Err(rejection) => Err(rejection.throw(ctx)),
            };
            match value {
                Ok(value) => resolve.restore(ctx)?.call((value,)),
                Err(_) => reject.restore(ctx)?.call((ctx.catch(),)),
            }
        }) as Completion
    });
    Ok(promise)
}

/// A promise that is rejected already.
pub(crate) fn rejected<'js>(
    ctx: &Ctx<'js>,
    rejection: &Rejection,
) -> rquickjs::Result<Promise<'js>> {
    let (promise, _, reject) = ctx.promise()?;
    let _ = rejection.throw(ctx);
    reject.call::<_, ()>((ctx.catch(),))?;
    Ok(promise)
}

impl Rejection {
    /// Throws it, as Go's errors are thrown by value: not an `Error`.
    fn throw(&self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self {
            Self::NoMemory => gake_script::user::throw_out_of_memory(ctx),
            Self::Error(message) => thrown(ctx, go_value(ctx, message)),
            Self::Fields(message, fields) => thrown(ctx, go_struct(ctx, message, fields)),
        }
    }
}

fn thrown<'js>(ctx: &Ctx<'js>, error: rquickjs::Result<Value<'js>>) -> rquickjs::Error {
    match error {
        Ok(error) => ctx.throw(error),
        Err(error) => error,
    }
}

/// An error of Go with these fields.
pub(crate) fn go_struct<'js>(
    ctx: &Ctx<'js>,
    message: &str,
    fields: &[(&'static str, serde_json::Value)],
) -> rquickjs::Result<Value<'js>> {
    let error = go_value(ctx, message)?;
    if let Some(object) = error.as_object() {
        for (name, value) in fields {
            object.set(*name, ctx.json_parse(value.to_string())?)?;
        }
    }
    Ok(error)
}

/// The output of a future, unless it takes longer than `limit`.
pub(crate) async fn within<F: Future>(vu: &Vu, limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let until = vu.now().saturating_add(nanos(limit));
    let mut sleep = pin!(vu.clock.sleep_until(until));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Waits for `pause`.
pub(crate) async fn sleep(vu: &Vu, pause: Duration) {
    vu.clock.sleep_until(vu.now().saturating_add(nanos(pause))).await;
}
