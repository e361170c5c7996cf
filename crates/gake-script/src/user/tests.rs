//! Users on one thread.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rquickjs::function::Func;
use rquickjs::loader::{BuiltinLoader, BuiltinResolver};
use rquickjs::{CatchResultExt, Ctx, Function};

use super::*;

/// A future that is pending a number of times, and counts drops.
struct DelayedFuture {
    left: u32,
    dropped: Rc<Cell<u32>>,
}

impl Drop for DelayedFuture {
    fn drop(&mut self) {
        self.dropped.set(self.dropped.get() + 1);
    }
}

impl DelayedFuture {
    async fn done(mut self) -> u32 {
        poll_fn(|cx| {
            if self.left == 0 {
                return Poll::Ready(());
            }
            self.left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        7
    }
}

fn user() -> (User, Rc<Cell<u32>>) {
    let user =
        User::new(&Stacks::new(), 64 << 20, BuiltinResolver::default(), BuiltinLoader::default())
            .unwrap();
    let dropped = Rc::new(Cell::new(0));
    let counted = Rc::clone(&dropped);
    user.with(|ctx| {
        let later = move |ctx: Ctx<'_>, times: u32| {
            let later = DelayedFuture { left: times, dropped: Rc::clone(&counted) };
            wait(later.done()).map_err(|why| throw_wait_error(&ctx, why))
        };
        ctx.globals().set("later", Func::from(later)).unwrap();
        // Trigger the first call of the interrupt handler; the next is far away.
        ctx.eval::<(), _>("for (let i = 9; i--;);").unwrap();
    });
    (user, dropped)
}

/// Evaluates a text in a fiber.
fn evaluate<'a>(user: &'a User, text: &'a str) -> Fiber<'a, Result<String, String>> {
    let run = move |ctx: &Ctx<'_>| {
        add_builtins(ctx, Builtins::named_in(text)).unwrap();
        let value = ctx.eval::<rquickjs::Coerced<String>, _>(text).catch(ctx);
        value.map(|text| text.0).map_err(|error| error.to_string())
    };
    user.run(run).unwrap()
}

/// Polls a fiber to its end; also returns how often it was pending.
fn finish<T>(fiber: impl Future<Output = T>) -> (T, usize) {
    let mut fiber = pin!(fiber);
    let mut cx = Context::from_waker(Waker::noop());
    let mut pending = 0;
    loop {
        match fiber.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return (value, pending),
            Poll::Pending => pending += 1,
        }
    }
}

#[test]
fn a_synchronous_call_waits_for_a_future() {
    let (user, _) = user();
    let (value, pending) = finish(evaluate(&user, "later(3) + later(2)"));
    assert_eq!((value.as_deref(), pending), (Ok("14"), 5));
}

#[test]
fn users_wait_side_by_side() {
    let users: Vec<_> = (0..200).map(|_| user().0).collect();
    let texts: Vec<_> = (0..200)
        .map(|n| format!("function f(d) {{ return d ? f(d - 1) + later(1) : {n} }}; f(20)"))
        .collect();
    let mut fibers: Vec<_> =
        users.iter().zip(&texts).map(|(user, text)| Box::pin(evaluate(user, text))).collect();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..20 {
        assert!(fibers.iter_mut().all(|fiber| fiber.as_mut().poll(&mut cx).is_pending()));
    }
    for (n, fiber) in fibers.into_iter().enumerate() {
        assert_eq!(finish(fiber).0, Ok((n + 140).to_string()));
    }
}

#[test]
fn a_dropped_fiber_ends_and_scripts_cannot_catch_it() {
    let (user, dropped) = user();
    let text = "try { later(1000) } catch (e) { globalThis.caught = 1 } finally { later(1000) }";
    let mut fiber = Box::pin(evaluate(&user, text));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(fiber.as_mut().poll(&mut cx).is_pending());
    drop(fiber);
    assert_eq!(dropped.get(), 1, "the awaited future is dropped");
    let (value, _) = finish(evaluate(&user, "typeof caught + later(1)"));
    assert_eq!(value, Ok("undefined7".to_owned()), "the user can be used again");
}

#[test]
fn a_busy_fiber_yields_and_can_be_dropped() {
    let (user, _) = user();
    let mut fiber = Box::pin(evaluate(&user, "for (;;) {}"));
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        assert!(fiber.as_mut().poll(&mut cx).is_pending());
    }
    drop(fiber);
    assert_eq!(finish(evaluate(&user, "1 + 1")).0, Ok("2".to_owned()));
}

#[cfg(patched_quickjs)]
#[test]
fn a_fiber_that_fills_memory_yields() {
    let (user, _) = user();
    let text = "let n = 0; for (let i = 0; i < 40; i++) n += new Array(65536).fill(i).length; n";
    // Forty steps of a megabyte each, far below the steps between interrupts.
    let (value, pending) = finish(evaluate(&user, text));
    assert_eq!(value.as_deref(), Ok("2621440"));
    assert!(pending >= 20, "{pending}");
}

#[test]
fn endless_recursion_throws() {
    let (user, _) = user();
    for text in ["function f() { f() }; f()", "const a = []; a.toString = () => `${a}`; `${a}`"] {
        let error = finish(evaluate(&user, text)).0.unwrap_err();
        assert!(error.contains("call stack size exceeded"), "{error}");
    }
    assert_eq!(finish(evaluate(&user, "later(1)")).0, Ok("7".to_owned()));
}

#[test]
fn memory_is_bounded() {
    let (user, _) = user();
    let text = "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))";
    let error = finish(evaluate(&user, text)).0.unwrap_err();
    assert!(error.contains("out of memory"), "{error}");
}

#[test]
fn waits_fail_outside_a_fiber() {
    let (user, _) = user();
    let error = user.with(|ctx| ctx.eval::<u32, _>("later(1)").catch(ctx).unwrap_err().to_string());
    assert!(error.contains("this call cannot wait here"), "{error}");
}

#[test]
fn tasks_progress_while_the_script_waits() {
    let (user, _) = user();
    let tasks = Rc::new(Tasks::default());
    let seen = Rc::new(RefCell::new(Vec::new()));
    for (name, times) in [("slow", 5), ("quick", 2)] {
        let later = DelayedFuture { left: times, dropped: Rc::default() };
        let seen = Rc::clone(&seen);
        tasks.add(async move {
            later.done().await;
            Box::new(move |ctx: &Ctx<'_>| {
                let same: Function<'_> = ctx.eval("(x) => x")?;
                seen.borrow_mut().push(same.call::<_, String>((name,))?);
                Ok(())
            }) as Completion
        });
    }
    let driven = {
        let tasks = Rc::clone(&tasks);
        user.run(move |ctx| tasks.drive(ctx, || false, |error| panic!("{error}"))).unwrap()
    };
    assert_eq!(finish(driven).0, Ok(()));
    assert_eq!(*seen.borrow(), ["quick", "slow"]);
}

#[test]
fn a_long_wait_frees_unused_stack() {
    let (user, dropped) = user();
    user.with(|ctx| {
        let dropped = Rc::clone(&dropped);
        let pause = move |ctx: Ctx<'_>, times: u32| {
            let later = DelayedFuture { left: times, dropped: Rc::clone(&dropped) };
            wait_long(later.done()).map_err(|why| throw_wait_error(&ctx, why))
        };
        ctx.globals().set("pause", Func::from(pause)).unwrap();
    });
    let text = "function deep(n) { return n ? deep(n - 1) + 1 : 0 }
        function within(n) { return n ? within(n - 1) : deep(300) + pause(3) + deep(300) }
        within(5) + pause(1) + within(50)";
    let (value, pending) = finish(evaluate(&user, text));
    assert_eq!((value.as_deref(), pending), (Ok("1221"), 7));
}

#[test]
fn samples_are_stack_traces() {
    let (user, _) = user();
    let stacks = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&stacks);
    user.sample(move |stack| seen.borrow_mut().push(stack.to_owned()));
    let text = "function busy() { let n = 0; for (let i = 0; i < 60_000; i++) n++; return n }
        String(busy())";
    user.shift_samples(5);
    assert_eq!(finish(evaluate(&user, text)).0.as_deref(), Ok("60000"));
    let stacks = stacks.take();
    // An iteration of the loop is two branches.
    assert!((11..=13).contains(&stacks.len()), "one in {SAMPLE_STEPS} steps: {stacks:?}");
    let busy = stacks.iter().filter(|stack| stack.contains("at busy ")).count();
    assert!(busy >= stacks.len() - 1, "{stacks:?}");
}

#[test]
fn a_replaced_error_does_not_break_sampling() {
    let (user, _) = user();
    user.sample(|_| ());
    let text = "globalThis.Error = function () { for (let i = 0; i < 30_000; i++); throw 1 };
        let n = 0; for (let i = 0; i < 60_000; i++) n++; String(n)";
    assert_eq!(finish(evaluate(&user, text)).0.as_deref(), Ok("60000"));
}

#[test]
fn builtins_are_installed_when_a_text_names_them() {
    let text =
        "var names = ['Date', 'Map', 'Set', 'WeakMap', 'ArrayBuffer', 'Uint8Array', 'DataView',
            'Atomics', 'WeakRef', 'FinalizationRegistry', 'DOMException', 'atob', 'performance'];
        var missing = names.filter((name) => !(name in globalThis));
        [missing.length, new Map([[1, 2]]).get(1), [...new Set([1, 1])].length,
         Uint8Array.from([1, 2]).buffer.byteLength, new Date(0).getTime(), atob(btoa('a')),
         typeof performance.now(), Object.prototype.toString.call(new DataView(new ArrayBuffer(1)))]
            .join()";
    let (user, _) = user();
    assert_eq!(finish(evaluate(&user, "typeof Map")).0.as_deref(), Ok("function"));
    let expected = Ok("0,2,1,2,0,a,number,[object DataView]");
    assert_eq!(finish(evaluate(&user, text)).0.as_deref(), expected);
    assert_eq!(finish(evaluate(&user, text)).0.as_deref(), expected, "installed once");
    let lean = self::user().0;
    let length = lean.with(|ctx| {
        add_builtins(ctx, Builtins::BUFFERS).unwrap();
        let bytes = rquickjs::ArrayBuffer::new(ctx.clone(), vec![1_u8, 2]).unwrap();
        ctx.globals().set("bytes", bytes).unwrap();
        ctx.eval::<u32, _>("bytes.byteLength").unwrap()
    });
    assert_eq!(length, 2);
}

/// Creates and deletes names and symbols; uses shared names as values, keys and weak keys.
const BUSY: &str = "(() => {
    globalThis.turns = (globalThis.turns ?? 0) + 1;
    globalThis.names ??= {};
    for (let i = 0; i < 40; i++) names[`${me}_${turns}_${i}`] = Symbol(`s${i}`);
    for (let i = 0; i < 40; i += 2) delete names[`${me}_${turns}_${i}`];
    let text = '';
    for (const key in { toString: 1, length: 2, [`own${me}`]: 3 }) text += key;
    const weak = new WeakMap([[Symbol.iterator, text], [{}, 1]]);
    const ring = { weak }; ring.ring = ring;
    try { null.x } catch (error) { text += error.constructor.name }
    return [weak.get(Symbol.iterator), text, Object.keys(names).length].join(' ');
})()";

#[test]
fn error_classes_are_created_lazily_and_invisibly() {
    for (text, expected) in [
        // Thrown before it is named, and vice versa.
        ("let e; try { null.x } catch (caught) { e = caught } e.constructor === TypeError", "true"),
        (
            "const T = TypeError; try { null.x } catch (e) { e instanceof T && e instanceof Error }",
            "true",
        ),
        ("delete globalThis.RangeError; try { new Array(-1) } catch (e) { e.name }", "RangeError"),
        (
            "globalThis.RangeError = 1; try { new Array(-1) } catch (e) { `${e.name} ${RangeError}` }",
            "RangeError 1",
        ),
        (
            "try { null.x } catch (e) { delete globalThis.TypeError; e.constructor.name }",
            "TypeError",
        ),
        (
            "class Mine extends SyntaxError {} `${new Mine('m')} ${new Mine() instanceof SyntaxError}`",
            "SyntaxError: m true",
        ),
        ("Object.getPrototypeOf(URIError) === Error && URIError.length === 1", "true"),
        ("AggregateError.length + new AggregateError([1], 'a').errors.length", "3"),
        ("Object.getOwnPropertyNames(globalThis).filter((n) => n.endsWith('Error')).length", "10"),
        ("Object.keys(globalThis).some((n) => n.endsWith('Error'))", "false"),
        (
            "JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, 'EvalError')['enumerable'])",
            "false",
        ),
        (
            "EvalError.prototype.name + EvalError.prototype.message + ('EvalError' in globalThis)",
            "EvalErrortrue",
        ),
    ] {
        let (user, _) = user();
        assert_eq!(finish(evaluate(&user, text)).0.unwrap(), expected, "{text}");
    }
}

#[test]
fn users_of_a_thread_come_and_go() {
    const USERS: usize = 12;
    let stacks = Stacks::new();
    let mut users: Vec<Option<(User, u64)>> = (0..USERS).map(|_| None).collect();
    let mut random = 7_u64;
    for step in 0..1_500_u64 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let index = (random >> 33) as usize % USERS;
        if step % 97 == 96 {
            users.fill_with(|| None);
        }
        if random >> 60 == 0 {
            users[index] = None;
        }
        let (user, turns) = users[index].get_or_insert_with(|| {
            let (resolver, loader) = (BuiltinResolver::default(), BuiltinLoader::default());
            let user = User::new(&stacks, 64 << 20, resolver, loader).unwrap();
            user.with(|ctx| {
                add_builtins(ctx, Builtins::ALL).unwrap();
                ctx.globals().set("me", index).unwrap();
            });
            (user, 0)
        });
        *turns += 1;
        let result = user.with(|ctx| {
            if random >> 61 == 1 {
                ctx.run_gc();
            }
            ctx.eval::<String, _>(BUSY).unwrap()
        });
        let names = format!("toStringlengthown{index}");
        assert_eq!(result, format!("{names} {names}TypeError {}", *turns * 20), "step {step}");
    }
}

#[test]
fn a_charge_counts_within_the_heap_and_shrinks() {
    let (user, _) = user();
    user.with(|ctx| {
        let mut held = HeapCharge::new(ctx, 10 << 20).unwrap();
        assert!(held.resize(60 << 20) && !held.grow(10 << 20));
        assert!(ctx.eval::<usize, _>("'x'.repeat(10 << 20).length").is_err());
        drop(ctx.catch());
        assert!(held.resize(0) && held.grow(1) && held.resize(STEPS) && !held.grow(usize::MAX));
        assert_eq!(ctx.eval::<usize, _>("'x'.repeat(20 << 20).length").unwrap(), 20 << 20);
        assert!(HeapCharge::new(ctx, usize::MAX - 1).is_err());
        drop(ctx.catch());
    });
}

/// Between the sizes of blocks.
const STEPS: usize = (1 << 20) + 1;

#[test]
fn work_on_another_thread_is_awaited_in_and_outside_of_fibers() {
    let (user, _) = user();
    let caller = std::thread::current().id();
    let elsewhere = move |ctx: &Ctx<'_>| {
        aside(ctx, move || std::thread::current().id() != caller).unwrap_or(false)
    };
    assert!(user.with(elsewhere));
    let late = std::time::Instant::now();
    let endless =
        |ctx: &Ctx<'_>| aside(ctx, || std::thread::sleep(std::time::Duration::from_secs(1)));
    assert!(user.with(|ctx| within(late, || endless(ctx)).is_err()), "its deadline has passed");
    let mut fiber = pin!(user.run(elsewhere).unwrap());
    let mut cx = Context::from_waker(Waker::noop());
    let made = loop {
        match fiber.as_mut().poll(&mut cx) {
            Poll::Ready(made) => break made,
            Poll::Pending => std::thread::yield_now(),
        }
    };
    assert!(made);
}
