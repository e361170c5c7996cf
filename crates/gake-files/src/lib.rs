//! Files, descriptor tables, and the memory of the machine.
//!
//! Reading is bounded, since a path may be `/dev/zero` or a disk image: [`read()`]. Files are never
//! created through links, since a folder may be writable by others: [`create()`], [`append`],
//! [`replace`].

mod create;
mod memory;
mod read;
mod table;

pub use create::{Access, append, create, create_folder, replace};
pub use memory::memory;
pub use read::{InputError, bounded, read, read_shared, read_to_string};
pub use table::{can_own_table, own_table, table_size};
