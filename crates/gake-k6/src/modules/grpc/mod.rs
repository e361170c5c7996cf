//! The module `k6/net/grpc`.
//!
//! `client.js` has the classes; definitions, connections, calls and samples are native.

mod address;
mod call;
mod client;
mod connection;
mod params;
mod reader;
mod status;
mod stream;
mod tags;

use gake_js::native::named;
use std::rc::Rc;

use gake_core::record::GrpcStatus;
use gake_js::errors::fail;
use gake_js::value::evaluate_as;
use gake_script::user::bound;
use rquickjs::{Ctx, Function, Object};

use self::client::GrpcClient;
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// Creates the module from native functions.
const CLIENT: &str = include_str!("client.js");

/// The states of a health check, in k6's spelling.
const HEALTH: [(&str, u32); 4] = [
    ("HealthCheckUnknown", 0),
    ("HealthCheckServing", 1),
    ("HealthCheckNotServing", 2),
    ("HealthCheckServiceUnkown", 3),
];

/// The file of the module's frames in stacks.
pub(crate) const FRAMES: &str = "k6/net/grpc";

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("fail", named("grpc", "fail", fail))?;
    let bind = |ctx: Ctx<'js>, handler: Function<'js>| bound(&ctx, handler);
    native.set("bind", named("grpc", "bind", bind))?;
    let user = Rc::clone(vu);
    let warn = move |text: String| user.test.log(LogLevel::Warning, &text, &[]);
    native.set("warn", named("grpc", "warn", warn))?;
    let user = Rc::clone(vu);
    let client = move |ctx: Ctx<'js>| GrpcClient::new(&user).shown(&ctx);
    native.set("client", named("grpc", "client", client))?;
    let make: Function<'js> = evaluate_as(ctx, CLIENT, FRAMES)?;
    let module: Object<'js> = make.call((native,))?;
    for (status, name) in GrpcStatus::all() {
        module.set(constant(name), status.number())?;
    }
    for (name, number) in HEALTH {
        module.set(name, number)?;
    }
    Ok(module)
}

/// k6's name of a status: `StatusInvalidArgument`.
fn constant(name: &str) -> String {
    match name {
        "OK" => return "StatusOK".to_owned(),
        "CANCELLED" => return "StatusCanceled".to_owned(),
        _ => {}
    }
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        format!("{first}{}", rest.to_ascii_lowercase())
    };
    format!("Status{}", name.split('_').map(word).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_named_as_in_k6() {
        let names: Vec<_> = GrpcStatus::all().map(|(_, name)| constant(name)).collect();
        assert_eq!(
            names[..5],
            [
                "StatusOK",
                "StatusCanceled",
                "StatusUnknown",
                "StatusInvalidArgument",
                "StatusDeadlineExceeded",
            ]
        );
        assert_eq!(names[16], "StatusUnauthenticated");
    }
}
