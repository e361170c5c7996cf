//! Bodies of failed responses in JSON.

use gake_core::record::{FailedBodies, FailedBody};
use serde::Serialize;

/// The most frequent bodies of failed responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FailedBodiesJson {
    /// Each with its count, the most frequent first. Times and ids do not distinguish bodies.
    bodies: Vec<FailedBodyJson>,
    /// Failed responses with further bodies.
    others: u64,
}

/// One body and its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailedBodyJson {
    /// The status of the responses.
    status: u16,
    count: u64,
    /// The start of the first such body, with secrets hidden.
    text: String,
}

impl FailedBodiesJson {
    /// `None` when there are none.
    pub(crate) fn new(bodies: &FailedBodies) -> Option<Self> {
        let form = |body: &FailedBody| FailedBodyJson {
            status: body.status,
            count: body.count,
            text: body.text.clone(),
        };
        let listed = bodies.by_count().into_iter().map(form).collect();
        (!bodies.is_empty()).then(|| Self { bodies: listed, others: bodies.others() })
    }
}
