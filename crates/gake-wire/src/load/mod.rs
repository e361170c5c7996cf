//! What a load sends, and the work that fires it for a lane of the loop.

pub(crate) mod check;
pub(crate) mod factory;
pub(crate) mod feed;
pub(crate) mod idle;
pub(crate) mod inspect;
pub(crate) mod order;
pub(crate) mod parts;
pub(crate) mod trace;
pub(crate) mod wire;
pub(crate) mod work;
