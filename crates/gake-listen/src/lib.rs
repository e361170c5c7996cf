//! The HTTP/1 server of the live page, the admin service of the shadow proxy, the API of `gake as
//! k6` and the metrics page: one request per connection.
//!
//! Everyone who can connect may be hostile, so each connection is bounded in bytes and time, and no
//! kind of them can hold the places of another:
//!
//! - Until its request is complete, a connection is one of at most [`PENDING_MAX`]; the oldest is
//!   closed for a newcomer, and each after [`PATIENCE`].
//! - A response that fits the kernel's buffer is sent at once and holds no place. This is how
//!   controls get through.
//! - Of longer responses and event streams there are at most [`REPLIES_MAX`]. Each response and
//!   event must be read within [`PATIENCE`]. When all places are taken, a newcomer gets that of the
//!   oldest one that has had that long.
//!
//! One thread serves all of them. A request must name exactly one `Host`, which the site accepts: a
//! web page that has rebound its name to this machine sends that name.

mod reply;
mod request;
mod server;

pub use reply::{Events, NextEvent, Reply};
pub use request::Request;
pub use server::{PATIENCE, PENDING_MAX, REPLIES_MAX, Server, Site, listen};
