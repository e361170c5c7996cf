//! Files, read and created with care.
//!
//! What is read has a bound, for a path may name `/dev/zero` or a disk image: see [`read`]. What is
//! created is made anew and never through a link, for a folder may be open to others: see
//! [`create`] and [`replace`].

mod create;
mod read;

pub use create::{Access, create, replace};
pub use read::{InputError, bounded, read, read_to_string};
