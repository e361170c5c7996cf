//! Recorded arrivals: a list of due instants, four bytes each.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::{Nanos, SECOND};
use crate::seconds::AsSeconds;

/// Maximum arrivals of a trace: an hour at 27,000 a second, 425 MB.
pub const TRACE_ARRIVALS_MAX: usize = 100_000_000;

/// Arrivals of a block.
const BLOCK: usize = 64;

/// The due instants of recorded arrivals, scaled to the speed of the replay. Cheap to clone.
///
/// Instants are exact if 64 consecutive arrivals lie within 4.29 s; in a sparser trace they are
/// early by at most 2⁻³² of that time.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    #[serde(skip)]
    held: Arc<TraceInstants>,
    arrivals: u64,
    #[serde(rename = "length_s", with = "AsSeconds")]
    length: Nanos,
    peak: u64,
}

/// The instants, which only the firing side needs: they are not serialised.
#[derive(Debug, Default, PartialEq, Eq)]
struct TraceInstants {
    blocks: Vec<TraceBlock>,
    /// Time since the block's base, in units of 2^`shift` nanoseconds.
    offsets: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TraceBlock {
    base: Nanos,
    shift: u8,
}

/// The trace holds [`TRACE_ARRIVALS_MAX`] arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a trace holds at most {TRACE_ARRIVALS_MAX} arrivals; replay a slice of it")]
pub struct TraceFull;

/// Builds a trace from due instants in order.
#[derive(Debug)]
pub struct TraceBuilder {
    held: TraceInstants,
    /// The block that is not full yet.
    open: Vec<Nanos>,
    last: Nanos,
    speed: f64,
    /// The current second, and the arrivals due in it.
    second: (Nanos, u64),
    peak: u64,
}

impl TraceBuilder {
    /// An empty trace for a replay at `speed` times the recorded pace, above 0.
    #[must_use]
    pub fn new(speed: f64) -> Self {
        let open = Vec::with_capacity(BLOCK);
        Self { held: TraceInstants::default(), open, last: 0, speed, second: (0, 0), peak: 0 }
    }

    /// Number of arrivals so far.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        (self.held.offsets.len() + self.open.len()) as u64
    }

    /// When an arrival recorded `offset` after the start is due.
    #[must_use]
    pub fn due(&self, offset: Nanos) -> Nanos {
        // Exact below 2^53 ns, which is 104 days.
        if self.speed == 1.0 { offset } else { (offset as f64 / self.speed).round() as Nanos }
    }

    /// Adds an arrival recorded `offset` after the start; if it precedes the last one, it is due
    /// with it.
    ///
    /// # Errors
    /// When the trace is full.
    pub fn push(&mut self, offset: Nanos) -> Result<(), TraceFull> {
        if self.arrivals() as usize == TRACE_ARRIVALS_MAX {
            return Err(TraceFull);
        }
        self.last = self.due(offset).max(self.last);
        self.open.push(self.last);
        if self.open.len() == BLOCK {
            self.close_block();
        }
        let second = self.last / SECOND;
        self.second =
            if second == self.second.0 { (second, self.second.1 + 1) } else { (second, 1) };
        self.peak = self.peak.max(self.second.1);
        Ok(())
    }

    /// The trace. It ends `length` after its start, or, if that is unknown or too short, one mean
    /// gap after the last arrival.
    #[must_use]
    pub fn finish(mut self, length: Option<Nanos>) -> Trace {
        self.close_block();
        let arrivals = self.held.offsets.len() as u64;
        let gap = match arrivals {
            0 | 1 => SECOND,
            more => (self.last / (more - 1)).max(1),
        };
        let length = length.filter(|length| *length > self.last).unwrap_or(self.last + gap);
        self.held.blocks.shrink_to_fit();
        self.held.offsets.shrink_to_fit();
        let held = Arc::new(self.held);
        Trace { held, arrivals, length, peak: self.peak }
    }

    fn close_block(&mut self) {
        let (Some(&base), Some(&last)) = (self.open.first(), self.open.last()) else { return };
        let shift = (u64::BITS - (last - base).leading_zeros()).saturating_sub(u32::BITS);
        self.held.blocks.push(TraceBlock { base, shift: shift as u8 });
        self.held.offsets.extend(self.open.drain(..).map(|due| ((due - base) >> shift) as u32));
    }
}

impl Trace {
    /// A trace without its instants, for reports.
    #[must_use]
    pub fn described(arrivals: u64, length: Nanos, peak: u64) -> Self {
        Self { held: Arc::default(), arrivals, length, peak }
    }

    /// Number of arrivals.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Length of the replay.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.length
    }

    /// The peak number of arrivals due in one second.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// When an arrival is due.
    #[inline]
    #[must_use]
    pub fn due(&self, number: u64) -> Option<Nanos> {
        let number = usize::try_from(number).ok()?;
        let block = self.held.blocks.get(number / BLOCK)?;
        let offset = *self.held.offsets.get(number)?;
        Some(block.base + (u64::from(offset) << block.shift))
    }

    /// Number of arrivals due before `instant`.
    #[must_use]
    pub fn before(&self, instant: Nanos) -> u64 {
        let blocks = self.held.blocks.partition_point(|block| block.base < instant);
        let Some(last) = blocks.checked_sub(1) else { return 0 };
        let block = self.held.blocks[last];
        let start = last * BLOCK;
        let end = (start + BLOCK).min(self.held.offsets.len());
        let within = self.held.offsets[start..end]
            .partition_point(|offset| block.base + (u64::from(*offset) << block.shift) < instant);
        (start + within) as u64
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the instants: there may be millions.
        f.debug_struct("Trace")
            .field("arrivals", &self.arrivals)
            .field("length", &self.length)
            .field("peak", &self.peak)
            .finish_non_exhaustive()
    }
}
