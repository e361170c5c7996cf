//! One clock for the bench and its recorder: CLOCK_MONOTONIC, the same in every process.

#![expect(unsafe_code, reason = "clock_gettime as the peers read it")]

/// Nanoseconds since the machine's start.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
