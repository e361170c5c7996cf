//! Extensions of k6, built in: modules that scripts import by `k6/x/...`.
//!
//! Each folder is one module: its calls, options and errors are those that the extension documents.
//! Their connections are opened by [`gake_k6::user::dial`], so block lists, `hosts` and `dns` hold
//! for them. No call blocks its worker's thread.

#![forbid(unsafe_code)]

mod dns;
mod faker;
mod later;
mod redis;
mod sql;
mod sse;
mod tcp;

use gake_k6::extension::Extension;
use gake_k6::version::K6Version;

/// All extensions.
pub static EXTENSIONS: &[Extension] = &[
    Extension { name: "k6/x/dns", make: dns::make, version: None },
    Extension { name: "k6/x/faker", make: faker::make, version: None },
    Extension { name: "k6/x/redis", make: redis::make, version: None },
    // k6 2.0 removed it.
    Extension { name: "k6/experimental/redis", make: redis::make, version: Some(K6Version::One) },
    Extension { name: "k6/x/sse", make: sse::make, version: None },
    Extension { name: "k6/x/sql", make: sql::make, version: None },
    Extension { name: "k6/x/sql/driver/mysql", make: sql::make_mysql, version: None },
    Extension { name: "k6/x/sql/driver/postgres", make: sql::make_postgres, version: None },
    Extension { name: "k6/x/sql/driver/sqlite3", make: sql::make_sqlite, version: None },
    Extension { name: "k6/x/tcp", make: tcp::make, version: None },
];
