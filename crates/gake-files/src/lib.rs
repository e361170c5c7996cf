//! Files, read and created with care, and the tables of their descriptors.
//!
//! What is read has a bound, for a path may name `/dev/zero` or a disk image: see [`read()`]. What is
//! created is made anew and never through a link, for a folder may be open to others: see
//! [`create()`], [`append`] and [`replace`].

mod create;
mod read;
mod table;

pub use create::{Access, append, create, replace};
pub use read::{InputError, bounded, read, read_shared, read_to_string};
pub use table::{can_own_table, own_table, table_size};
