//! k6's own modules, created for each user.

mod browser;
mod data;
mod execution;
mod files;
mod grpc;
mod http;
mod k6;
mod metrics;
mod secrets;
mod timers;
mod websocket;

pub use browser::{METRICS as BROWSER_METRICS, NO_BROWSER};
pub(crate) use grpc::FRAMES as GRPC_FRAMES;
pub(crate) use http::{CookieJar, OpenedBinaries, request_headers, type_name, values_for};
pub(crate) use k6::seed_random;

use std::rc::Rc;

use gake_js::errors::go_error;
use gake_js::{crypto, encoding, html, streams, x509};
use gake_script::user::LazyList;
use rquickjs::{Ctx, Object};

use crate::test::Test;
use crate::user::vu::Vu;
use crate::version::K6Version;

/// The supported modules.
pub const NAMES: [&str; 19] = [
    "k6",
    "k6/browser",
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

/// The lazy properties of modules.
pub(crate) const LISTS: [&LazyList; 5] =
    [&http::LIST, &k6::LIST, &metrics::LIST, &http::RESPONSE_METHODS, &http::RESPONSE];

/// Modules that k6 removed, and its errors.
const REMOVED: [(&str, &str); 5] = [
    (
        "k6/experimental/browser",
        "k6/experimental/browser has been graduated, please use k6/browser instead.Please update your \
         imports to use k6/browser instead of k6/experimental/browser, For more information, see the \
         migration guide at the link: \
         https://grafana.com/docs/k6/latest/using-k6-browser/migrating-to-k6-v0-52/",
    ),
    (
        "k6/experimental/grpc",
        "k6/experimental/grpc has been graduated, please use k6/net/grpc instead. See \
         https://grafana.com/docs/k6/latest/javascript-api/k6-net-grpc/ for more information.",
    ),
    (
        "k6/experimental/timers",
        "k6/experimental/timers has been graduated, and it's now globally available as defined by \
         standard WebAPIs. You just need to remove the import.",
    ),
    (
        "k6/experimental/tracing",
        "k6/experimental/tracing has been removed. All of it functionality is available as pure \
         JavaScript module. More info available at the docs: \
         https://grafana.com/docs/k6/latest/javascript-api/jslib/http-instrumentation-tempo",
    ),
    (
        "k6/experimental/webcrypto",
        "k6/experimental/webcrypto has been graduated and it's now globally available as defined by \
         standard WebAPIs. You just need to remove the import.",
    ),
];

/// k6's warning for a module with a successor.
const OLD_WEBSOCKETS: &str = "k6/experimental/websockets is deprecated and will be removed in a future \
                              release. Please use k6/websockets instead.";

/// A module of k6 1.
const REDIS: &str = "k6/experimental/redis";

/// k6's error for it since 2.0.
const OLD_REDIS: &str = "k6/experimental/redis has been removed. Please migrate to the new version by \
                         changing your import to 'k6/x/redis'. Read more here: \
                         https://grafana.com/docs/k6/latest/javascript-api/k6-x-redis";

/// Whether a module is k6's own, supported or not.
#[must_use]
pub fn is_builtin(name: &str) -> bool {
    name == "k6" || name.starts_with("k6/")
}

/// Whether a module of k6 has named exports, of which one that it lacks is `null`. The others have
/// the properties of their default export.
pub(crate) fn has_names(name: &str) -> bool {
    !["k6/browser", "k6/html", "k6/http", "k6/ws", "k6/x/sse"].contains(&name)
}

/// Whether k6 has this module of its own, or had it, or the test has it as an extension.
pub(crate) fn is_known(test: &Test, name: &str) -> bool {
    let is_extension = || test.extensions.find(name, test.settings().version).is_some();
    NAMES.contains(&name) || name == REDIS || why_removed(test, name).is_some() || is_extension()
}

/// k6's error for a module that it removed.
pub(crate) fn why_removed(test: &Test, name: &str) -> Option<&'static str> {
    match name {
        REDIS if test.settings().version == K6Version::Two => Some(OLD_REDIS),
        _ => REMOVED.iter().find(|(module, _)| *module == name).map(|(_, why)| *why),
    }
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
        "k6/browser" => match vu.test.extensions.find(name, vu.test.settings().version) {
            Some(extension) => (extension.make)(ctx),
            None => browser::make(ctx, vu),
        },
        "k6/websockets" => websocket::websockets(ctx, vu),
        "k6/experimental/websockets" => {
            vu.test.warn_once(OLD_WEBSOCKETS);
            websocket::websockets(ctx, vu)
        }
        "k6/ws" => websocket::ws(ctx, vu),
        _ => match vu.test.extensions.find(name, vu.test.settings().version) {
            Some(extension) => (extension.make)(ctx),
            None => Err(go_error(ctx, &absent(&vu.test, name))),
        },
    }
}

fn absent(test: &Test, name: &str) -> String {
    why_removed(test, name).map_or_else(|| unknown(test, &[name]), str::to_owned)
}

/// The start of names of extensions.
const EXTENSION: &str = "k6/x/";

/// k6's error for unknown modules of its own; with an extension among them it names those that are
/// there.
pub(crate) fn unknown(test: &Test, names: &[&str]) -> String {
    let quoted = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let start = format!("unknown modules [{quoted}] were tried to be loaded, but couldn't");
    let known = test.extensions.names(EXTENSION);
    if names.iter().any(|name| name.starts_with(EXTENSION)) && !known.is_empty() {
        return format!("{start}: the extensions of this program are {}", known.join(", "));
    }
    format!(
        "{start} - this likely means automatic extension resolution is required or a custom k6 \
         binary with the required extensions"
    )
}
