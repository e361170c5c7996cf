//! Work that runs beside the workers without delaying them.

#![expect(
    unsafe_code,
    reason = "sched_setscheduler and sched_getscheduler of the calling thread: rustix has neither"
)]

use std::num::NonZeroU64;

use gake_core::plan::Plan;

/// Whether work that accompanies a run of `plan` belongs in the background: when the plan has an
/// open loop, whose arrivals nothing may delay.
#[must_use]
pub fn belongs_in_background(plan: &Plan) -> bool {
    plan.scenarios().iter().any(|scenario| scenario.load.is_open())
}

/// Does work that accompanies a run of `plan`: in the background when the plan has an open loop,
/// whose arrivals nothing may delay; on this thread when every loop is closed, so that it keeps up
/// with what the users produce.
pub fn beside<T: Send>(plan: &Plan, work: impl FnOnce() -> T + Send) -> T {
    if belongs_in_background(plan) { in_background(work) } else { work() }
}

/// Does work on a thread of the lowest scheduling class, and waits for it. Threads that it
/// starts have that class too: a worker that has something to do always runs before them, and
/// background work that starves on a saturated machine catches up later.
///
/// The work is done even if no thread can be started or the system has no such class.
pub fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let mut result = None;
    std::thread::scope(|scope| {
        let (work, result) = (&mut work, &mut result);
        let started = std::thread::Builder::new().name("gake-beside".to_owned()).spawn_scoped(
            scope,
            move || {
                lower_class();
                *result = work.take().map(|work| work());
            },
        );
        drop(started);
    });
    result.unwrap_or_else(|| match work {
        Some(work) => work(),
        None => unreachable!("a scope ends with the panic of its thread"),
    })
}

/// Puts the calling thread, and what it starts from now on, into the lowest scheduling class:
/// SCHED_IDLE, else SCHED_BATCH. There is no way back without privileges.
pub fn lower_class() {
    // The kernel's `struct sched_param`. By the system call itself: musl's function refuses.
    let priority: libc::c_int = 0;
    for class in [libc::SCHED_IDLE, libc::SCHED_BATCH] {
        // SAFETY: the pointer is to a value that outlives the call, which only reads it; 0 is the
        // calling thread.
        let set =
            unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, class, &raw const priority) };
        if set == 0 {
            break;
        }
    }
    // Nobody waits for it to the microsecond, and wake-ups that come together cost less.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(50_000));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scheduling policy of the calling thread.
    fn class() -> i32 {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn what_runs_in_the_background_and_what_it_starts_is_of_the_lowest_class() {
        let before = class();
        let text = "borrowed".to_owned();
        let classes = in_background(|| {
            assert_eq!(text, "borrowed");
            (class(), std::thread::spawn(class).join().unwrap())
        });
        assert_eq!(classes, (libc::SCHED_IDLE, libc::SCHED_IDLE));
        assert_eq!(class(), before, "the caller stays what it was");
    }
}
