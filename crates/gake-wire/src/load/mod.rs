//! The requests of a load, and the work that fires them for a lane of the engine.

pub(crate) mod check;
pub(crate) mod factory;
pub(crate) mod fast;
pub(crate) mod feed;
pub(crate) mod idle;
pub(crate) mod inspect;
pub(crate) mod order;
pub(crate) mod packed_list;
pub(crate) mod packed_requests;
pub(crate) mod prepared_requests;
pub(crate) mod request_list;
pub(crate) mod stream;
pub(crate) mod trace;
pub(crate) mod work;
