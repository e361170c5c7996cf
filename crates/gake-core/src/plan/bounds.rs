//! Overflow and time-outs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds::{AsOptionalSeconds, AsSeconds};

/// What happens to an arrival that is due when every connection is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It waits, and its wait is part of its response time.
    #[default]
    Wait,
    /// It is dropped and counted.
    Drop,
    /// It waits in a bounded queue; when the queue is full, it is dropped and counted.
    Queue {
        /// Capacity of the queue, over all workers.
        waiting: usize,
    },
}

/// Time-outs of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeouts {
    /// For the connection, TLS included.
    #[serde(rename = "connect_s", with = "AsSeconds")]
    pub connect: Duration,
    /// From the write to the first byte of the response.
    #[serde(default, rename = "first_byte_s", with = "AsOptionalSeconds")]
    pub first_byte: Option<Duration>,
    /// For the whole request, connection included.
    #[serde(rename = "total_s", with = "AsSeconds")]
    pub total: Duration,
}

impl Default for Timeouts {
    /// 10 s for a connection, 30 s for a request.
    fn default() -> Self {
        let (connect, total) = (Duration::from_secs(10), Duration::from_secs(30));
        Self { connect, first_byte: None, total }
    }
}
