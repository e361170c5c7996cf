//! Memory of a user before its script is loaded.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // the helpers are tests too

use std::fs;

use gake_script::user::{Stacks, User};
use rquickjs::loader::{BuiltinLoader, BuiltinResolver};

/// Maximum bytes of a user. Without shared arenas and names it takes more than twice as many.
const USER_BYTES_MAX: usize = 72 << 10;

const PAGE_BYTES: usize = 4096;

/// Resident memory of the process, in bytes.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * PAGE_BYTES
}

#[test]
fn users_of_a_thread_share_memory() {
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
    // Freed memory is reused.
    drop(many);
    let again = users(USERS);
    assert!((resident() - before) / USERS < USER_BYTES_MAX, "{} bytes", resident() - before);
    drop((few, again));
}
