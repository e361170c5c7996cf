//! One scripted user, and what it notes for the record.

pub mod book;
pub mod clock;
mod console;
mod exports;
mod globals;
pub(crate) mod loader;
pub mod notes;
pub mod requests;
pub mod script_user;
mod syntax;
pub mod vu;

use gake_script::user::LazyList;

/// Makes the properties known that are made when a script looks them up: before the first user.
pub(crate) fn share_lists() {
    let own: [&'static LazyList; 2] = [&globals::LIST, &console::LIST];
    let lists: Vec<&'static LazyList> = own.into_iter().chain(crate::modules::LISTS).collect();
    gake_script::user::share_lists(&lists);
}
