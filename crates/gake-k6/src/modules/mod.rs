//! k6's own modules, made for one user.

mod crypto;
mod crypto_subtle;
mod data;
mod encoding;
mod execution;
mod files;
mod grpc;
mod html;
mod http;
mod k6;
mod metrics;
mod secrets;
mod streams;
mod timers;
mod value;
mod websocket;
mod x509;

pub(crate) use crypto::random;
pub(crate) use crypto_subtle::make as subtle;
pub(crate) use k6::seed_random;
pub(crate) use http::type_name;
pub(crate) use value::{buffer, bytes, evaluate, given, shown, truthy};

use std::rc::Rc;

use gake_script::user::LazyList;
use rquickjs::{Ctx, Object};

use crate::errors::go_error;
use crate::user::vu::Vu;

/// The supported modules.
pub const NAMES: [&str; 18] = [
    "k6",
    "k6/crypto",
    "k6/crypto/x509",
    "k6/data",
    "k6/encoding",
    "k6/execution",
    "k6/experimental/csv",
    "k6/experimental/fs",
    "k6/experimental/streams",
    "k6/experimental/websockets",
    "k6/html",
    "k6/http",
    "k6/metrics",
    "k6/net/grpc",
    "k6/secrets",
    "k6/timers",
    "k6/websockets",
    "k6/ws",
];

/// The properties of modules that are made when a script looks them up.
pub(crate) const LISTS: [&LazyList; 5] =
    [&http::LIST, &k6::LIST, &metrics::LIST, &http::RESPONSE_METHODS, &http::RESPONSE];

/// Modules of k6 that are not there, and why.
const ABSENT: &[(&str, &str)] = &[
    ("k6/browser", "gake drives no browser"),
    ("k6/experimental/browser", "gake drives no browser"),
    ("k6/experimental/redis", "Redis is not there"),
];

/// Whether a module of this name is k6's, supported or not.
#[must_use]
pub fn is_builtin(name: &str) -> bool {
    name == "k6" || name.starts_with("k6/")
}

/// The exports of a module of k6.
///
/// # Errors
/// When it is not supported.
pub fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>, name: &str) -> rquickjs::Result<Object<'js>> {
    match name {
        "k6" => k6::make(ctx),
        "k6/crypto" => crypto::make(ctx),
        "k6/crypto/x509" => x509::make(ctx),
        "k6/data" => data::make(ctx, vu),
        "k6/encoding" => encoding::make(ctx),
        "k6/execution" => execution::make(ctx, vu),
        "k6/experimental/csv" => files::make(ctx, vu, "csv"),
        "k6/experimental/fs" => files::make(ctx, vu, "fs"),
        "k6/experimental/streams" => streams::make(ctx),
        "k6/html" => html::make(ctx),
        "k6/http" => http::make(ctx),
        "k6/metrics" => metrics::make(ctx),
        "k6/net/grpc" => grpc::make(ctx, vu),
        "k6/secrets" => secrets::make(ctx, vu),
        "k6/timers" => timers::make(ctx),
        "k6/websockets" | "k6/experimental/websockets" => websocket::websockets(ctx, vu),
        "k6/ws" => websocket::ws(ctx, vu),
        _ => Err(go_error(ctx, &absent(name))),
    }
}

fn absent(name: &str) -> String {
    let known = ABSENT.iter().find(|(module, _)| *module == name);
    let why = known.map_or("it is not there", |(_, why)| why);
    format!("cannot import {name:?}: {why}; there are {}", NAMES.join(", "))
}
