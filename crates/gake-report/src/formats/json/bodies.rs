//! Bodies of failed answers in JSON.

use gake_core::record::{FailedBodies, FailedBody};
use serde::Serialize;

/// The most frequent bodies of failed answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FailedBodiesForm {
    /// Each with its count, the most frequent first. Times and ids do not tell bodies apart.
    bodies: Vec<FailedBodyForm>,
    /// Failed answers with further bodies, which are not told apart.
    others: u64,
}

/// One body, and how often it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailedBodyForm {
    /// The status of the answers.
    status: u16,
    /// Their number.
    count: u64,
    /// The start of the first of the bodies, secrets hidden.
    text: String,
}

impl FailedBodiesForm {
    /// `None` when there are none.
    pub(crate) fn new(bodies: &FailedBodies) -> Option<Self> {
        let form = |body: &FailedBody| FailedBodyForm {
            status: body.status,
            count: body.count,
            text: body.text.clone(),
        };
        let told = bodies.by_count().into_iter().map(form).collect();
        (!bodies.is_empty()).then(|| Self { bodies: told, others: bodies.others() })
    }
}
