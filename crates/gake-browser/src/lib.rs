//! The module `k6/browser`: scripts drive an installed Chromium by its DevTools protocol.
//!
//! All users of a process share one Chromium, in which each user has contexts of its own. Its
//! protocol is spoken over a pipe, which no other process can open. The API that scripts see is
//! JavaScript (`js/`) on a few native functions ([`module`]).

#![deny(unsafe_code)]

mod browser;
mod inbox;
mod launch;
mod module;
mod pipe;
mod remote;
mod routes;
mod websocket_proxy;

use gake_k6::extension::Extension;

/// The module.
pub static BROWSER: Extension = Extension { name: "k6/browser", make: module::make, version: None };
