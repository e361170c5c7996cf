//! The ledger: accounts for every request at every shadow.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The outcome of a request at one shadow. Every request ends in exactly one category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Category {
    /// A hook did not select the shadow.
    Unselected,
    /// The selecting hook failed or timed out, and only the master got the request.
    SelectFailed,
    /// Not sampled.
    SampledOut,
    /// The method may not be copied.
    Unsafe,
    /// A rule denies the path.
    Denied,
    /// A protocol upgrade (WebSocket), which goes to the master only.
    Upgrade,
    /// The body exceeds the limit.
    Oversize,
    /// The request was incomplete: the client disconnected, or the master responded before its end.
    Aborted,
    /// The kill switch was on.
    Killed,
    /// The queue was full, by count or bytes.
    ShedQueue,
    /// The rate limit was reached.
    ShedRate,
    /// The circuit breaker was open.
    ShedBreaker,
    /// The hook that changes the copy failed or timed out.
    MungeFailed,
    /// Sent on the client's path, in a race.
    Raced,
    /// A complete response, whatever the status.
    Ok,
    /// A response with a body over the limit, not read to its end.
    Cut,
    /// No complete response in time.
    Timeout,
    /// No connection, or an incomplete response.
    ConnErr,
    /// Queued or running when the proxy ended.
    Unfinished,
}

impl Category {
    /// All categories, in the order of the ledger.
    pub const ALL: [Self; 19] = [
        Self::Unselected,
        Self::SelectFailed,
        Self::SampledOut,
        Self::Unsafe,
        Self::Denied,
        Self::Upgrade,
        Self::Oversize,
        Self::Aborted,
        Self::Killed,
        Self::ShedQueue,
        Self::ShedRate,
        Self::ShedBreaker,
        Self::MungeFailed,
        Self::Raced,
        Self::Ok,
        Self::Cut,
        Self::Timeout,
        Self::ConnErr,
        Self::Unfinished,
    ];

    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unselected => "unselected",
            Self::SelectFailed => "select_failed",
            Self::SampledOut => "sampled_out",
            Self::Unsafe => "unsafe",
            Self::Denied => "denied",
            Self::Upgrade => "upgrade",
            Self::Oversize => "oversize",
            Self::Aborted => "aborted",
            Self::Killed => "killed",
            Self::ShedQueue => "shed_queue",
            Self::ShedRate => "shed_rate",
            Self::ShedBreaker => "shed_breaker",
            Self::MungeFailed => "munge_failed",
            Self::Raced => "raced",
            Self::Ok => "ok",
            Self::Cut => "cut",
            Self::Timeout => "timeout",
            Self::ConnErr => "conn_err",
            Self::Unfinished => "unfinished",
        }
    }
}

/// One thread's counts, on its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LedgerPage {
    received: AtomicU64,
    in_flight: AtomicI64,
    categories: [AtomicU64; Category::ALL.len()],
    /// Responses by the first digit of the status.
    classes: [AtomicU64; 6],
    bytes_in: AtomicU64,
}

impl LedgerPage {
    /// Counts a request without a copy.
    pub(crate) fn settle(&self, category: Category) {
        self.received.fetch_add(1, Relaxed);
        self.categories[category as usize].fetch_add(1, Relaxed);
    }

    /// Counts a request whose copy is in flight.
    pub(crate) fn start(&self) {
        self.received.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Counts the end of a copy.
    pub(crate) fn end(&self, category: Category) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.categories[category as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn record_response(&self, status: u16, bytes: u64) {
        self.classes[usize::from(status / 100).min(5)].fetch_add(1, Relaxed);
        self.bytes_in.fetch_add(bytes, Relaxed);
    }
}

/// A snapshot of a shadow's ledger.
///
/// received = sum of all categories + in flight. The identity is exact at rest; counts taken while
/// requests are running are not one consistent snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// The shadow's name.
    pub name: Arc<str>,
    /// Requests received by the proxy.
    pub received: u64,
    /// Queued and running copies.
    pub in_flight: i64,
    categories: [u64; Category::ALL.len()],
    /// Responses by the first digit of the status; 0 for invalid ones.
    pub classes: [u64; 6],
    /// Bytes of response bodies read.
    pub bytes_in: u64,
}

impl Ledger {
    pub(crate) fn read<'a>(name: Arc<str>, pages: impl Iterator<Item = &'a LedgerPage>) -> Self {
        let mut ledger = Self {
            name,
            received: 0,
            in_flight: 0,
            categories: [0; Category::ALL.len()],
            classes: [0; 6],
            bytes_in: 0,
        };
        for page in pages {
            ledger.received += page.received.load(Relaxed);
            ledger.in_flight += page.in_flight.load(Relaxed);
            ledger.bytes_in += page.bytes_in.load(Relaxed);
            for (sum, count) in ledger.categories.iter_mut().zip(&page.categories) {
                *sum += count.load(Relaxed);
            }
            for (sum, count) in ledger.classes.iter_mut().zip(&page.classes) {
                *sum += count.load(Relaxed);
            }
        }
        ledger
    }

    /// The requests in a category.
    #[must_use]
    pub fn count(&self, category: Category) -> u64 {
        self.categories[category as usize]
    }

    /// Shed requests: queue, rate and breaker.
    #[must_use]
    pub fn shed(&self) -> u64 {
        [Category::ShedQueue, Category::ShedRate, Category::ShedBreaker]
            .iter()
            .map(|category| self.count(*category))
            .sum()
    }

    /// Copies sent and finished.
    #[must_use]
    pub fn sent(&self) -> u64 {
        [Category::Ok, Category::Cut, Category::Timeout, Category::ConnErr]
            .iter()
            .map(|category| self.count(*category))
            .sum()
    }

    /// received − sum of all categories − in flight: 0 unless requests were lost.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let settled: u64 = self.categories.iter().sum();
        self.received as i64 - settled as i64 - self.in_flight
    }
}

impl fmt::Display for Ledger {
    /// One line with all counts other than 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} received", self.name, self.received)?;
        for category in Category::ALL {
            let count = self.count(category);
            if count > 0 {
                write!(f, ", {count} {}", category.name())?;
            }
        }
        if self.in_flight != 0 {
            write!(f, ", {} in flight", self.in_flight)?;
        }
        match self.balance() {
            0 => Ok(()),
            lost => write!(f, " ({lost} unaccounted for)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_indexed_and_the_ledger_balances() {
        let pages = [LedgerPage::default(), LedgerPage::default()];
        for (index, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, index);
            pages[0].settle(category);
            pages[0].start();
            // One thread starts a copy, the other ends it.
            pages[1].end(category);
        }
        pages[0].start();
        let ledger = Ledger::read("s".into(), pages.iter());
        assert_eq!((ledger.received, ledger.in_flight, ledger.balance()), (39, 1, 0));
        assert_eq!(ledger.count(Category::Ok), 2);
        assert_eq!((ledger.shed(), ledger.sent()), (6, 8));
    }

    #[test]
    fn a_ledger_displays_counts_other_than_zero() {
        let page = LedgerPage::default();
        page.settle(Category::Unsafe);
        page.start();
        let ledger = Ledger::read("new".into(), std::iter::once(&page));
        expect_test::expect!["new: 2 received, 1 unsafe, 1 in flight"]
            .assert_eq(&ledger.to_string());
    }
}
