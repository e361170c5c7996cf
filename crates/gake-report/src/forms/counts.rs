//! Counts, as the run file has them.

use gake_core::record::Counts;
use serde::{Deserialize, Serialize};

/// Every count. One that a file does not have is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CountsForm {
    sent: u64,
    written: u64,
    ok: u64,
    failed: u64,
    unfinished: u64,
    dropped: u64,
    bytes_in: u64,
    body_bytes: u64,
    bytes_out: u64,
    opened: u64,
    stale_reconnects: u64,
    excess: u64,
    retransmits: u64,
    idle_lost: u64,
    idle_failed: u64,
    redirects: u64,
}

impl From<&Counts> for CountsForm {
    fn from(counts: &Counts) -> Self {
        let Counts {
            sent,
            written,
            ok,
            failed,
            unfinished,
            dropped,
            bytes_in,
            body_bytes,
            bytes_out,
            opened,
            stale_reconnects,
            excess,
            retransmits,
            idle_lost,
            idle_failed,
            redirects,
        } = *counts;
        Self {
            sent,
            written,
            ok,
            failed,
            unfinished,
            dropped,
            bytes_in,
            body_bytes,
            bytes_out,
            opened,
            stale_reconnects,
            excess,
            retransmits,
            idle_lost,
            idle_failed,
            redirects,
        }
    }
}

impl From<CountsForm> for Counts {
    fn from(form: CountsForm) -> Self {
        let CountsForm {
            sent,
            written,
            ok,
            failed,
            unfinished,
            dropped,
            bytes_in,
            body_bytes,
            bytes_out,
            opened,
            stale_reconnects,
            excess,
            retransmits,
            idle_lost,
            idle_failed,
            redirects,
        } = form;
        Self {
            sent,
            written,
            ok,
            failed,
            unfinished,
            dropped,
            bytes_in,
            body_bytes,
            bytes_out,
            opened,
            stale_reconnects,
            excess,
            retransmits,
            idle_lost,
            idle_failed,
            redirects,
        }
    }
}
