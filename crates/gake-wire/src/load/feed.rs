//! The requests of a load: known beforehand, or made during the run.

use std::fmt::Debug;
use std::pin::Pin;

use crate::client::request::HttpRequest;

/// One of the requests of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedRequest {
    /// What is sent.
    pub request: HttpRequest,
    /// The name under which it is reported; method and path by default.
    pub label: Option<String>,
    /// How often it is sent, relative to the others.
    pub weight: u32,
}

impl From<HttpRequest> for WeightedRequest {
    /// The request without a name of its own, with the weight 1.
    fn from(request: HttpRequest) -> Self {
        Self { request, label: None, weight: 1 }
    }
}

/// Makes requests during the run: each can differ, and they can run out. All workers share it.
pub trait Feed: Debug + Send + Sync {
    /// The request of the arrival with this number; `None` when there are no more. Waiting for it
    /// is part of the response time.
    fn next(&self, number: u64) -> NextRequest<'_>;
}

/// The next request of a [`Feed`], once it is known; its weight has no meaning.
pub type NextRequest<'a> = Pin<Box<dyn Future<Output = Option<WeightedRequest>> + Send + 'a>>;
