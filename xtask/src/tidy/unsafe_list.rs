//! Every `unsafe`, with its reason. The promise that each block keeps stands beside it (`SAFETY:`,
//! which clippy demands); here is why it cannot be done without.

use super::unsafety::Unsafe;

/// By file.
pub const UNSAFE: &[Unsafe] = &[
    // The product.
    Unsafe {
        path: "crates/gake-engine/src/background.rs",
        count: 2,
        why: "sched_setscheduler and sched_getscheduler of the calling thread: rustix has neither",
    },
    Unsafe {
        path: "crates/gake-engine/src/start.rs",
        count: 1,
        why: "own_table of the thread that starts workers with a descriptor table each",
    },
    Unsafe {
        path: "crates/gake-engine/src/worker_tables.rs",
        count: 1,
        why: "own_table of a worker",
    },
    Unsafe {
        path: "crates/gake-engine/src/timer.rs",
        count: 1,
        why: "AsyncFd::register of a timerfd, which is unsafe as the descriptor must stay the same one",
    },
    Unsafe {
        path: "crates/gake-files/src/table.rs",
        count: 4,
        why: "unshare of the descriptor table: a number means another file in another table, which \
              the caller must promise to keep apart",
    },
    Unsafe {
        path: "crates/gake-k6/src/modules/crypto.rs",
        count: 1,
        why: "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime",
    },
    Unsafe {
        path: "crates/gake-k6/src/modules/http/cookies.rs",
        count: 1,
        why: "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime",
    },
    Unsafe {
        path: "crates/gake-k6/src/modules/http/expected.rs",
        count: 1,
        why: "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime",
    },
    Unsafe {
        path: "crates/gake-k6/src/modules/http/response.rs",
        count: 1,
        why: "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime",
    },
    Unsafe {
        path: "crates/gake-k6/src/modules/metrics.rs",
        count: 1,
        why: "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime",
    },
    Unsafe {
        path: "crates/gake-k6/src/modules/value.rs",
        count: 2,
        why: "the bytes of a script's buffer are lent by QuickJS, and copied at once",
    },
    Unsafe {
        path: "crates/gake-k6/src/user/loader.rs",
        count: 1,
        why: "rquickjs's JsLifetime of what a context keeps: unsafe to implement",
    },
    Unsafe {
        path: "crates/gake-k6/src/user/vu.rs",
        count: 1,
        why: "rquickjs's JsLifetime of what a context keeps: unsafe to implement",
    },
    Unsafe {
        path: "crates/gake-lab/src/serve.rs",
        count: 1,
        why: "ioctl TIOCOUTQ, the bytes not yet acknowledged: no library has it",
    },
    Unsafe {
        path: "crates/gake-lab/src/thread.rs",
        count: 1,
        why: "own_table of a thread that accepts and serves connections by itself",
    },
    Unsafe {
        path: "crates/gake-lab/src/readable.rs",
        count: 1,
        why: "AsyncFd::register of a listening socket, for the same reason as the engine's timer",
    },
    Unsafe {
        path: "crates/gake-script/src/user/fiber.rs",
        count: 4,
        why: "a coroutine outlives every lifetime for the compiler: its function and its switch are lent \
              to it, and it lends what it waits for",
    },
    Unsafe {
        path: "crates/gake-script/src/user/json.rs",
        count: 6,
        why: "QuickJS calls it for the words about a text that is not JSON: rquickjs does not \
              know it",
    },
    Unsafe {
        path: "crates/gake-script/src/user/lazy.rs",
        count: 11,
        why: "calls of and from QuickJS for properties that are made when they are looked up: \
              rquickjs does not know them",
    },
    Unsafe {
        path: "crates/gake-script/src/user/mod.rs",
        count: 2,
        why: "JS_UpdateStackTop and JS_SetUncatchableError: rquickjs has neither for one runtime a user",
    },
    Unsafe {
        path: "crates/gake-script/src/user/builtins.rs",
        count: 3,
        why: "QuickJS adds parts of the language to a context that exists; rquickjs only to a new one",
    },
    Unsafe {
        path: "crates/gake-script/src/user/sample.rs",
        count: 1,
        why: "the context in its interrupt handler, which rquickjs gives no context",
    },
    Unsafe {
        path: "crates/gake-script/src/user/stack.rs",
        count: 8,
        why: "stacks in one mapping without guard pages, because a process may run out of mappings",
    },
    Unsafe {
        path: "crates/gake-script/src/value.rs",
        count: 1,
        why: "the bytes of a script's typed array are lent by QuickJS, and copied at once",
    },
    Unsafe {
        path: "crates/gake-shadow/src/mirror/thread.rs",
        count: 1,
        why: "sched_setscheduler of the calling thread: rustix does not have it",
    },
    Unsafe {
        path: "crates/gake-wire/src/net/sockopt.rs",
        count: 3,
        why: "getsockopt TCP_INFO, and options that socket2 does not have",
    },
    // The tasks, which measure processes from outside.
    Unsafe {
        path: "xtask/src/bench/clock.rs",
        count: 1,
        why: "clock_gettime as the peers read it",
    },
    Unsafe {
        path: "xtask/src/bench/process.rs",
        count: 12,
        why: "affinity between fork and exec, wait4 with rusage, pidfd, memfd",
    },
    Unsafe {
        path: "xtask/src/bench/recorder.rs",
        count: 5,
        why: "a bare epoll loop, whose own lateness is known",
    },
    Unsafe {
        path: "xtask/src/bench/shadow/bad.rs",
        count: 2,
        why: "setpriority, and socket options of servers that misbehave",
    },
    Unsafe {
        path: "xtask/src/bench/sinks/receivers.rs",
        count: 1,
        why: "sched_setscheduler of the receivers' threads, which shall delay nobody",
    },
    Unsafe { path: "xtask/src/debian.rs", count: 1, why: "geteuid" },
    // Tests.
    Unsafe { path: "crates/gake-core/tests/hostile.rs", count: 5, why: "an allocator that counts" },
    Unsafe {
        path: "crates/gake-engine/tests/allocations.rs",
        count: 7,
        why: "an allocator that counts",
    },
    Unsafe {
        path: "crates/gake-engine/tests/memory.rs",
        count: 5,
        why: "an allocator that counts",
    },
    Unsafe { path: "crates/gake-lab/tests/memory.rs", count: 5, why: "an allocator that counts" },
    Unsafe {
        path: "crates/gake-shadow/tests/memory.rs",
        count: 5,
        why: "an allocator that counts",
    },
    Unsafe {
        path: "crates/gake-wire/tests/wire/connecting.rs",
        count: 2,
        why: "ioctl SIOCSIFFLAGS: the loopback of a network namespace is brought up",
    },
    Unsafe {
        path: "crates/gake-wire/tests/wire/economy.rs",
        count: 5,
        why: "an allocator that counts",
    },
    Unsafe {
        path: "crates/gake/tests/run/bad_input.rs",
        count: 2,
        why: "a limit on the size of files, set between fork and exec",
    },
    Unsafe {
        path: "crates/gake/tests/run/escapes.rs",
        count: 2,
        why: "openpty: what gake shows on a terminal",
    },
];
