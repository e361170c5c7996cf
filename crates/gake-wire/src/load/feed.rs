//! The requests of a load: prepared before the run, or made during it.

use std::fmt::Debug;
use std::pin::Pin;

use crate::client::request::{HttpRequest, PreparedRequest};

/// One of the requests of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedRequest {
    /// The request.
    pub request: HttpRequest,
    /// The name in reports; method and path by default.
    pub label: Option<String>,
    /// Its frequency relative to the other requests.
    pub weight: u32,
}

impl From<HttpRequest> for WeightedRequest {
    /// Without a label, with the weight 1.
    fn from(request: HttpRequest) -> Self {
        Self { request, label: None, weight: 1 }
    }
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct LabelledRequest {
    pub(crate) request: PreparedRequest,
    /// The number of its label.
    pub(crate) label: u16,
}

/// Makes requests during the run, possibly a finite number. Shared by all workers.
pub trait RequestFeed: Debug + Send + Sync {
    /// The request of the arrival with this number; `None` at the end. Waiting for it is part of the
    /// response time.
    fn next(&self, number: u64) -> NextRequest<'_>;
}

/// The next request of a [`RequestFeed`]; its weight is ignored.
pub type NextRequest<'a> = Pin<Box<dyn Future<Output = Option<WeightedRequest>> + Send + 'a>>;
