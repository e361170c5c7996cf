//! The pool with a fake transport of any capacity: one slot as in HTTP/1.1, or many.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Context;

use gake_core::clock::Nanos;

use super::*;
use crate::client::transport::IdleState;
use crate::net::scratch::Scratch;

/// A transport whose capacity the test sets.
struct FakeTransport {
    name: u32,
    capacity: Rc<Cell<usize>>,
}

impl Transport for FakeTransport {
    fn capacity(&self) -> usize {
        self.capacity.get()
    }

    fn idle_state(&self, _: Nanos, _: &Scratch) -> IdleState {
        IdleState::Usable
    }
}

fn pool(open: usize) -> Rc<ConnectionPool<FakeTransport>> {
    Rc::new(ConnectionPool::new(
        PoolBounds { open, idle: usize::MAX, idle_per_origin: usize::MAX },
        1,
    ))
}

fn open(
    pool: &Rc<ConnectionPool<FakeTransport>>,
    origin: u32,
    name: u32,
    capacity: usize,
) -> Option<ConnectionSlot<'_, FakeTransport>> {
    open_shared(pool, origin, name, &Rc::new(Cell::new(capacity)))
}

fn open_shared<'a>(
    pool: &'a Rc<ConnectionPool<FakeTransport>>,
    origin: u32,
    name: u32,
    capacity: &Rc<Cell<usize>>,
) -> Option<ConnectionSlot<'a, FakeTransport>> {
    let permit = pool.permit(origin)?;
    Some(pool.admit(FakeTransport { name, capacity: Rc::clone(capacity) }, origin, permit))
}

fn is_over(wait: Pin<&mut impl Future<Output = ()>>) -> bool {
    wait.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_connection_has_one_slot_or_many() {
    for capacity in [1, 3, 100] {
        let pool = pool(1);
        let mut slots = vec![open(&pool, 0, 7, capacity).unwrap()];
        while let Some(slot) = pool.take(0) {
            slots.push(slot);
        }
        assert_eq!(slots.len(), capacity);
        assert!(pool.permit(0).is_none() && pool.take(1).is_none());
        slots.pop();
        assert_eq!(pool.take(0).unwrap().name, 7);
    }
}

#[test]
fn lanes_share_connections() {
    // Five lanes on two connections of two slots: one waits for the first free slot.
    let pool = pool(2);
    let mut slots = vec![open(&pool, 0, 0, 2).unwrap(), pool.take(0).unwrap()];
    slots.extend([open(&pool, 0, 1, 2).unwrap(), pool.take(0).unwrap()]);
    assert!(pool.take(0).is_none() && pool.permit(0).is_none());
    let mut ticket = None;
    let mut wait = pin!(pool.wait(0, &mut ticket));
    assert!(!is_over(wait.as_mut()) && pool.has_waiters(0) && !pool.has_waiters(1));
    slots.remove(1);
    assert!(is_over(wait.as_mut()) && !pool.has_waiters(0));
    assert_eq!(pool.take(0).unwrap().name, 0);
}

#[test]
fn waiters_are_served_fifo() {
    let pool = pool(1);
    let slot = open(&pool, 0, 0, 1).unwrap();
    let mut tickets = [None; 3];
    let [first, second, third] = &mut tickets;
    let mut first = Box::pin(pool.wait(0, first));
    let mut second = pin!(pool.wait(0, second));
    let mut third = pin!(pool.wait(0, third));
    assert!(![is_over(first.as_mut()), is_over(second.as_mut()), is_over(third.as_mut())][0]);
    drop(slot);
    assert!(!is_over(third.as_mut()) && !is_over(second.as_mut()));
    // The first was woken and gives up: the second is woken.
    drop(first);
    assert!(!is_over(third.as_mut()) && is_over(second.as_mut()));
    // Without a slot, the second keeps its position before the third.
    let slot = pool.take(0).unwrap();
    assert!(!is_over(third.as_mut()));
    drop(slot);
    assert!(is_over(third.as_mut()));
}

#[test]
fn waiting_again_keeps_the_position() {
    let pool = pool(1);
    let slot = open(&pool, 0, 0, 1).unwrap();
    let (mut early, mut late) = (None, None);
    assert!(!is_over(pin!(pool.wait(0, &mut early))));
    let mut late_waits = pin!(pool.wait(0, &mut late));
    assert!(!is_over(late_waits.as_mut()));
    let mut early_waits = pin!(pool.wait(0, &mut early));
    assert!(!is_over(early_waits.as_mut()));
    drop(slot);
    assert!(!is_over(late_waits) && is_over(early_waits));
}

#[test]
fn a_connection_with_many_slots_wakes_many() {
    let pool = pool(1);
    let permit = pool.permit(0).unwrap();
    let mut tickets = [None; 3];
    let [a, b, c] = &mut tickets;
    let mut waits =
        [Box::pin(pool.wait(0, a)), Box::pin(pool.wait(0, b)), Box::pin(pool.wait(0, c))];
    assert!(waits.iter_mut().all(|wait| !is_over(wait.as_mut())));
    // The new connection has three slots, of which its opener takes one.
    let capacity = Rc::new(Cell::new(3));
    let mut slots = vec![pool.admit(FakeTransport { name: 0, capacity }, 0, permit)];
    let mut over = 0;
    for wait in &mut waits {
        if is_over(wait.as_mut()) {
            over += 1;
            slots.extend(pool.take(0));
        }
    }
    assert_eq!((over, slots.len()), (2, 3));
}

#[test]
fn a_connection_without_capacity_is_not_used() {
    let pool = pool(1);
    let capacity = Rc::new(Cell::new(2));
    let first = open_shared(&pool, 0, 0, &capacity).unwrap();
    // As after a GOAWAY: live exchanges may end.
    capacity.set(0);
    assert!(pool.take(0).is_none() && pool.permit(0).is_none());
    let mut ticket = None;
    let mut wait = pin!(pool.wait(0, &mut ticket));
    assert!(!is_over(wait.as_mut()));
    drop(first);
    assert!(is_over(wait.as_mut()));
    assert!(pool.take(0).is_none() && pool.permit(0).is_some());
}

#[test]
fn an_idle_connection_is_evicted_for_another_origin() {
    let pool = pool(3);
    let slots = [(0, 0), (1, 1), (1, 2)].map(|(to, name)| open(&pool, to, name, 1).unwrap());
    assert!(pool.permit(2).is_none());
    drop(slots);
    // The longest idle connection of the origin with the most.
    drop(open(&pool, 2, 3, 1).unwrap());
    assert_eq!(pool.take(1).unwrap().name, 2);
    assert_eq!(pool.take(0).unwrap().name, 0);
    assert_eq!(pool.take(2).unwrap().name, 3);
}

#[test]
fn an_idle_connection_wakes_a_waiter_for_another_origin() {
    let pool = pool(1);
    let slot = open(&pool, 0, 0, 1).unwrap();
    let mut ticket = None;
    let mut wait = pin!(pool.wait(1, &mut ticket));
    assert!(!is_over(wait.as_mut()));
    drop(slot);
    assert!(is_over(wait));
    assert_eq!(open(&pool, 1, 1, 1).unwrap().name, 1);
}

#[test]
fn an_unused_permit_passes_to_the_next_waiter() {
    let pool = pool(1);
    let permit = pool.permit(0).unwrap();
    let mut ticket = None;
    let mut wait = pin!(pool.wait(0, &mut ticket));
    assert!(!is_over(wait.as_mut()));
    drop(permit);
    assert!(is_over(wait) && pool.permit(0).is_some());
}

#[test]
fn idle_connections_are_bounded() {
    let bounds = |idle, idle_per_origin| PoolBounds { open: usize::MAX, idle, idle_per_origin };
    let fill = |bounds: PoolBounds| {
        let pool = &Rc::new(ConnectionPool::new(bounds, 1));
        let to = [0, 0, 0, 1].into_iter().zip(0..);
        drop(to.map(|(to, name)| open(pool, to, name, 1).unwrap()).collect::<Vec<_>>());
        [0, 1].map(|to| {
            let slots: Vec<_> = std::iter::from_fn(|| pool.take(to)).collect();
            slots.iter().map(|slot| slot.name).collect()
        })
    };
    let kept: [Vec<_>; 2] = fill(bounds(usize::MAX, 2));
    assert_eq!(kept, [vec![1, 0], vec![3]]);
    let kept: [Vec<_>; 2] = fill(bounds(2, usize::MAX));
    assert_eq!(kept, [vec![2], vec![3]]);
}
