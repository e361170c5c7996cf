//! What became of every request at every shadow, and that it adds up.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// What became of a request at one shadow: exactly one of these, in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Category {
    /// A hook did not choose the shadow.
    Unselected,
    /// The hook that chooses failed or took too long, and the master alone got the request.
    SelectFailed,
    /// The percentage left it out.
    SampledOut,
    /// Its method may change something and is not among those that may be copied.
    Unsafe,
    /// A rule forbids its path.
    Denied,
    /// It asks for another protocol (WebSocket), and went to the master alone.
    Upgrade,
    /// Its body is over the limit.
    Oversize,
    /// The client did not send all of it or left before the master was asked, or the master
    /// answered before it had.
    Aborted,
    /// The kill switch was on.
    Killed,
    /// The queue was full, by count or by bytes.
    ShedQueue,
    /// The rate cap was reached.
    ShedRate,
    /// The circuit breaker was open.
    ShedBreaker,
    /// A hook that changes the copy failed or took too long; it was not sent as it was.
    MungeFailed,
    /// It was sent on the client's path, in a race.
    Raced,
    /// Answered, whatever the status.
    Ok,
    /// Answered with a body over the limit, which was not read to its end.
    Cut,
    /// No whole answer in time.
    Timeout,
    /// No connection, or no whole answer.
    ConnErr,
    /// It was waiting or under way when the proxy ended.
    Unfinished,
}

impl Category {
    /// All of them, in the order of the ledger.
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

/// One thread's part of a shadow's ledger, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LedgerPage {
    received: AtomicU64,
    in_flight: AtomicI64,
    categories: [AtomicU64; Category::ALL.len()],
    /// Answers by the first digit of their status.
    classes: [AtomicU64; 6],
    bytes_in: AtomicU64,
}

impl LedgerPage {
    /// A request that is settled at once.
    pub(crate) fn settle(&self, category: Category) {
        self.received.fetch_add(1, Relaxed);
        self.categories[category as usize].fetch_add(1, Relaxed);
    }

    /// A request whose copy is on its way.
    pub(crate) fn start(&self) {
        self.received.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// What became of a copy that was on its way.
    pub(crate) fn end(&self, category: Category) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.categories[category as usize].fetch_add(1, Relaxed);
    }

    /// Takes note of an answer's status and of the bytes of its body.
    pub(crate) fn record_response(&self, status: u16, bytes: u64) {
        self.classes[usize::from(status / 100).min(5)].fetch_add(1, Relaxed);
        self.bytes_in.fetch_add(bytes, Relaxed);
    }
}

/// A shadow's ledger at one moment.
///
/// received = the sum of all categories + in flight. Counts that are read while requests are under
/// way are read one after the other, and may miss what happens in between; at rest the identity is
/// exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// The shadow.
    pub name: Arc<str>,
    /// Requests that the proxy received.
    pub received: u64,
    /// Copies that wait or are under way.
    pub in_flight: i64,
    categories: [u64; Category::ALL.len()],
    /// Answers by the first digit of their status, 0 for none of HTTP's.
    pub classes: [u64; 6],
    /// Bytes of answers' bodies that were read.
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

    /// How many requests ended so.
    #[must_use]
    pub fn count(&self, category: Category) -> u64 {
        self.categories[category as usize]
    }

    /// What was shed: queue, rate and breaker together.
    #[must_use]
    pub fn shed(&self) -> u64 {
        [Category::ShedQueue, Category::ShedRate, Category::ShedBreaker]
            .iter()
            .map(|category| self.count(*category))
            .sum()
    }

    /// Copies that were sent and have ended.
    #[must_use]
    pub fn sent(&self) -> u64 {
        [Category::Ok, Category::Cut, Category::Timeout, Category::ConnErr]
            .iter()
            .map(|category| self.count(*category))
            .sum()
    }

    /// received − the sum of all categories − in flight: 0, or something was lost.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let settled: u64 = self.categories.iter().sum();
        self.received as i64 - settled as i64 - self.in_flight
    }
}

impl fmt::Display for Ledger {
    /// One line: everything that is not 0.
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
    fn every_category_has_its_place_and_the_ledger_adds_up() {
        let pages = [LedgerPage::default(), LedgerPage::default()];
        for (place, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, place);
            pages[0].settle(category);
            pages[0].start();
            // The other thread ends what this one started.
            pages[1].end(category);
        }
        pages[0].start();
        let ledger = Ledger::read("s".into(), pages.iter());
        assert_eq!((ledger.received, ledger.in_flight, ledger.balance()), (39, 1, 0));
        assert_eq!(ledger.count(Category::Ok), 2);
        assert_eq!((ledger.shed(), ledger.sent()), (6, 8));
    }

    #[test]
    fn a_ledger_shows_what_there_is() {
        let page = LedgerPage::default();
        page.settle(Category::Unsafe);
        page.start();
        let ledger = Ledger::read("new".into(), std::iter::once(&page));
        assert_eq!(ledger.to_string(), "new: 2 received, 1 unsafe, 1 in flight");
    }
}
