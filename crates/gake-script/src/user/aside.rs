//! Native work of seconds that cannot be interrupted, on threads of its own.

use std::future::poll_fn;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use rquickjs::Ctx;

use super::fiber::{WaitError, is_late, wait};
use super::throw_wait_error;

/// Threads of the process for such work. More of it queues.
const THREADS: usize = 2;

/// How often a script outside of a fiber looks for its deadline.
const LOOK: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce() + Send>;

/// The result of a job, and the task that waits for it.
struct Pending<T> {
    state: Mutex<(Option<T>, Option<Waker>)>,
    done: Condvar,
}

/// Runs `work` on another thread: the script waits, its worker continues. If the script has to end
/// meanwhile, the result is dropped; work that has not begun is not begun.
///
/// # Errors
/// When the script must end; scripts cannot catch it.
pub fn aside<T: Send + 'static>(
    ctx: &Ctx<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> rquickjs::Result<T> {
    let pending = Arc::new(Pending { state: Mutex::new((None, None)), done: Condvar::new() });
    let shared = Arc::downgrade(&pending);
    let job = move || {
        if shared.strong_count() == 0 {
            return;
        }
        let made = work();
        let Some(pending) = shared.upgrade() else { return };
        let mut state = lock(&pending.state);
        state.0 = Some(made);
        state.1.take().into_iter().for_each(Waker::wake);
        pending.done.notify_one();
    };
    if !send(Box::new(job)) {
        return Err(throw_wait_error(ctx, WaitError::Outside));
    }
    let result = poll_fn(|cx| {
        let mut state = lock(&pending.state);
        match state.0.take() {
            Some(made) => Poll::Ready(made),
            None => {
                state.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    });
    match wait(result) {
        Err(WaitError::Outside) => {
            let mut state = lock(&pending.state);
            loop {
                match state.0.take() {
                    Some(made) => return Ok(made),
                    None if is_late() => return Err(throw_wait_error(ctx, WaitError::Ended)),
                    None => {
                        let waited = pending.done.wait_timeout(state, LOOK);
                        state = waited.unwrap_or_else(PoisonError::into_inner).0;
                    }
                }
            }
        }
        waited => waited.map_err(|why| throw_wait_error(ctx, why)),
    }
}

/// As [`aside`], if the work is on more than `bound` bytes; less is done at once.
///
/// # Errors
/// When the script must end; scripts cannot catch it.
pub fn aside_above<T: Send + 'static>(
    ctx: &Ctx<'_>,
    bound: usize,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> rquickjs::Result<T> {
    if bytes > bound { aside(ctx, work) } else { Ok(work()) }
}

/// Queues a job. Returns whether there is a thread for it.
fn send(job: Job) -> bool {
    static QUEUE: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..THREADS {
            let jobs = Arc::clone(&receiver);
            // Without any thread the receiver is dropped, and sending fails.
            let name = "gake-native".to_owned();
            let _ = std::thread::Builder::new().name(name).spawn(move || run(&jobs));
        }
        Mutex::new(sender)
    });
    lock(queue).send(job).is_ok()
}

fn run(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = lock(jobs).recv();
        let Ok(job) = job else { return };
        job();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
