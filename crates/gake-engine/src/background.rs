//! Background work that does not delay the workers.

#![expect(
    unsafe_code,
    reason = "sched_setscheduler and sched_getscheduler of the calling thread: rustix has neither"
)]

use std::num::NonZeroU64;

use gake_core::plan::Plan;

/// Whether work during a run of `plan` belongs in the background: nothing may delay the arrivals of
/// an open loop.
#[must_use]
pub fn belongs_in_background(plan: &Plan) -> bool {
    plan.scenarios().iter().any(|scenario| scenario.load.is_open())
}

/// Does work during a run of `plan`: in the background if there is an open loop, whose arrivals
/// nothing may delay; else on this thread, so that it keeps up with the users.
pub fn beside<T: Send>(plan: &Plan, work: impl FnOnce() -> T + Send) -> T {
    if belongs_in_background(plan) { in_background(work) } else { work() }
}

/// Does work on a thread of the lowest scheduling class, which its threads inherit, and waits for
/// it. Runnable workers always preempt it; on a saturated machine it catches up later.
///
/// Falls back to this thread if no thread can be started, and to the normal class if there is no
/// lower one.
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

/// Puts the calling thread, and threads that it starts from now on, into the lowest scheduling
/// class: SCHED_IDLE, else SCHED_BATCH. Irreversible without privileges.
pub fn lower_class() {
    // `struct sched_param`. A raw system call, since musl's wrapper fails.
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
    // Coalesced wake-ups cost less, and this work is not urgent.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(50_000));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class() -> i32 {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn background_threads_have_the_lowest_class() {
        let before = class();
        let text = "borrowed".to_owned();
        let classes = in_background(|| {
            assert_eq!(text, "borrowed");
            (class(), std::thread::spawn(class).join().unwrap())
        });
        assert_eq!(classes, (libc::SCHED_IDLE, libc::SCHED_IDLE));
        assert_eq!(class(), before, "the caller keeps its class");
    }
}
