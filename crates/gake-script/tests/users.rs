//! What a user takes of memory, before its script.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // the helpers are tests too

use std::fs;

use gake_script::user::{Stacks, User};
use rquickjs::loader::{BuiltinLoader, BuiltinResolver};

/// Bytes of a user at most. With arenas and names of its own it takes more than twice as many.
const USER_BYTES_MAX: usize = 72 << 10;

const PAGE_BYTES: usize = 4096;

/// Bytes of memory that the process has.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * PAGE_BYTES
}

#[test]
fn users_of_a_thread_share_what_they_do_not_use() {
    const USERS: usize = 1_000;
    let stacks = Stacks::new();
    let users = |count: usize| -> Vec<User> {
        let user = |_| {
            let (resolver, loader) = (BuiltinResolver::default(), BuiltinLoader::default());
            User::new(&stacks, 64 << 20, resolver, loader).unwrap()
        };
        (0..count).map(user).collect()
    };
    let few = users(50);
    let before = resident();
    let many = users(USERS);
    let each = (resident() - before) / USERS;
    assert!(each < USER_BYTES_MAX, "{each} bytes");
    // What users leave is used again by others.
    drop(many);
    let again = users(USERS);
    assert!((resident() - before) / USERS < USER_BYTES_MAX, "{} bytes", resident() - before);
    drop((few, again));
}
