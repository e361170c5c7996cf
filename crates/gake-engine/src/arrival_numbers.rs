//! Numbers of arrivals of a closed load, taken by users as they start iterations.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gake_core::Load;
use gake_core::plan::Plan;
use gake_core::schedule::Slice;

/// Numbers shared by all workers of a process.
#[derive(Debug)]
pub(crate) struct SharedNumbers {
    /// The process's slice of the load.
    slice: Slice,
    /// Their number, if bounded.
    total: Option<u64>,
    next: AtomicU64,
    /// How many were taken after the warm-up, if bounded.
    measured: AtomicU64,
}

impl SharedNumbers {
    pub(crate) fn new(plan: &Plan, slice: Slice) -> Self {
        let slice = slice.among(plan.lanes()).unwrap_or(slice);
        let total = total(plan).map(|total| slice.count_u64(total));
        Self { slice, total, next: AtomicU64::new(0), measured: AtomicU64::new(0) }
    }

    fn take(&self, is_measured: bool) -> Option<u64> {
        if let Some(total) = self.total
            && is_measured
            && self.measured.fetch_add(1, Relaxed) >= total
        {
            return None;
        }
        Some(self.slice.number_u64(self.next.fetch_add(1, Relaxed)))
    }
}

/// Total iterations of all processes, if bounded.
fn total(plan: &Plan) -> Option<u64> {
    match plan.load.one() {
        Some(Load::Shared { iterations, .. }) => Some(*iterations),
        _ => plan.requests,
    }
}

/// Numbers of one worker's arrivals.
pub(crate) enum ArrivalNumbers {
    /// An equal number for each user, without communication.
    Own(WorkerNumbers),
    /// First come, first served, over all workers.
    Shared(Arc<SharedNumbers>),
}

/// Numbers of the users of one worker: the first of each user, then the second of each, and so on.
pub(crate) struct WorkerNumbers {
    /// The worker's slice of the users.
    slice: Slice,
    /// Number of users of all workers.
    users: u64,
    /// Number of users of this worker.
    own_users: u64,
    /// The worker's user whose number is next.
    user: Cell<u64>,
    /// The total of numbers in previous rounds.
    before: Cell<u64>,
    /// Numbers left after the warm-up, if bounded.
    left: Option<Cell<u64>>,
}

impl WorkerNumbers {
    fn new(plan: &Plan, slice: Slice) -> Self {
        let users = plan.load.users().unwrap_or(1).max(1);
        let own_users = slice.count(users) as u64;
        let left = total(plan).map(|total| {
            let rest = (total % users as u64) as usize;
            Cell::new(total / users as u64 * own_users + slice.count(rest) as u64)
        });
        Self {
            slice,
            users: users as u64,
            own_users,
            user: Cell::new(0),
            before: Cell::new(0),
            left,
        }
    }

    fn take(&self, is_measured: bool) -> Option<u64> {
        if let Some(left) = &self.left
            && is_measured
        {
            left.set(left.get().checked_sub(1)?);
        }
        let (user, before) = (self.user.get(), self.before.get());
        if user + 1 < self.own_users {
            self.user.set(user + 1);
        } else {
            self.user.set(0);
            self.before.set(before.saturating_add(self.users));
        }
        Some(before.saturating_add(self.slice.number_u64(user)))
    }
}

impl ArrivalNumbers {
    /// The numbers of the worker with `slice` of a load. With `in_order`, numbers are in the order
    /// in which arrivals begin, over all workers.
    pub(crate) fn new(
        plan: &Plan,
        slice: Slice,
        common: &Arc<SharedNumbers>,
        in_order: bool,
    ) -> Self {
        match in_order {
            true => Self::Shared(Arc::clone(common)),
            false => Self::Own(WorkerNumbers::new(plan, slice)),
        }
    }

    /// The next number, if there is one. `is_measured`: after the warm-up.
    pub(crate) fn take(&self, is_measured: bool) -> Option<u64> {
        match self {
            Self::Own(own) => own.take(is_measured),
            Self::Shared(common) => common.take(is_measured),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plan(load: Load, requests: Option<u64>) -> Plan {
        let mut plan = Plan::new("http://127.0.0.1:1/", load);
        plan.requests = requests;
        plan
    }

    fn workers(plan: &Plan, slice: Slice, in_order: bool) -> [ArrivalNumbers; 2] {
        let common = Arc::new(SharedNumbers::new(plan, slice));
        [0, 1].map(|worker| {
            let part = slice.inner(Slice::new(worker, 2));
            ArrivalNumbers::new(plan, part, &common, in_order)
        })
    }

    /// The numbers of two workers, of which the first takes twice as often.
    fn taken(plan: &Plan, slice: Slice, in_order: bool) -> [Vec<u64>; 2] {
        let workers = workers(plan, slice, in_order);
        let mut taken = [Vec::new(), Vec::new()];
        for turn in 0..3_000 {
            let worker = usize::from(turn % 3 == 2);
            taken[worker].extend(workers[worker].take(true));
        }
        taken
    }

    #[test]
    fn a_faster_worker_makes_more_shared_iterations() {
        let shared = plan(Load::Shared { users: 3, iterations: 30 }, None);
        let [fast, slow] = taken(&shared, Slice::WHOLE, true);
        assert_eq!((fast.len(), slow.len()), (20, 10));
        let mut all = [fast, slow].concat();
        all.sort_unstable();
        assert_eq!(all, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn the_warm_up_does_not_count_towards_the_bound() {
        let loads = [Load::Shared { users: 3, iterations: 30 }, Load::closed(3)];
        for (load, in_order) in loads.into_iter().zip([true, false]) {
            let plan = plan(load, (!in_order).then_some(30));
            let workers = workers(&plan, Slice::WHOLE, in_order);
            let mut all: Vec<_> = (0..10).flat_map(|_| workers[0].take(false)).collect();
            assert_eq!(all.len(), 10);
            let measured: Vec<_> = workers
                .iter()
                .flat_map(|worker| std::iter::from_fn(|| worker.take(true)))
                .collect();
            assert_eq!(measured.len(), 30);
            all.extend(measured);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 40, "no number twice");
        }
    }

    #[test]
    fn unbounded_numbers_in_order_have_no_gaps() {
        let closed = Load::Closed { users: 4, think: Duration::ZERO };
        let [fast, slow] = taken(&plan(closed, None), Slice::new(1, 2), true);
        assert_eq!((&fast[..3], &slow[..2]), (&[1, 3, 7][..], &[5, 11][..]));
    }

    #[test]
    fn without_order_each_user_has_the_same_number_of_arrivals() {
        for (users, total) in [(3, 30), (3, 31), (3, 32), (5, 1_000), (1, 7), (7, 3)] {
            let closed = Load::Closed { users, think: Duration::ZERO };
            let [first, second] = taken(&plan(closed, Some(total)), Slice::WHOLE, false);
            let own = [users.div_ceil(2), users / 2];
            for (taken, own) in [(&first, own[0]), (&second, own[1])] {
                let least = total as usize / users * own;
                assert!((least..=least + own).contains(&taken.len()), "{users}");
            }
            let mut all = [first, second].concat();
            all.sort_unstable();
            assert_eq!(all, (0..total).collect::<Vec<_>>(), "{users}");
        }
    }
}
