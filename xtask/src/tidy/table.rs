//! The rules as data: who may use whom, what stays where, and every exception.

/// A crate of the workspace, its level, and which of ours its code may use.
pub struct Room {
    /// The package's name.
    pub name: &'static str,
    /// Arrows point to a lower level.
    pub level: u8,
    /// The packages of ours it may depend on.
    pub may_use: &'static [&'static str],
    /// Packages of others that would break its promise, and the promise.
    pub strangers: &'static [&'static str],
}

/// The level table of ARCHITECTURE.md.
pub const ROOMS: &[Room] = &[
    Room {
        name: "gake-text",
        level: 0,
        may_use: &[],
        // Pure as well.
        strangers: &["tokio", "mio", "hyper", "socket2", "rustix", "libc", "clap"],
    },
    Room {
        name: "gake-core",
        level: 1,
        may_use: &["gake-text"],
        // Pure: no runtime, no sockets, no system calls.
        strangers: &["tokio", "mio", "hyper", "socket2", "rustix", "libc"],
    },
    // Pure text to text.
    Room {
        name: "gake-convert",
        level: 1,
        may_use: &["gake-text"],
        strangers: &["tokio", "mio", "hyper", "socket2", "rustix", "libc", "clap"],
    },
    // What is read has a bound, what is created follows no link.
    Room {
        name: "gake-files",
        level: 0,
        may_use: &[],
        strangers: &["tokio", "mio", "hyper", "socket2", "clap"],
    },
    // Pure text to text, too.
    Room {
        name: "gake-go",
        level: 0,
        may_use: &[],
        strangers: &["tokio", "mio", "hyper", "socket2", "rustix", "libc", "clap"],
    },
    Room {
        name: "gake-html",
        level: 0,
        may_use: &[],
        strangers: &["tokio", "mio", "hyper", "socket2", "rustix", "libc", "clap"],
    },
    Room {
        name: "gake-codec",
        level: 2,
        may_use: &["gake-core"],
        // Sans IO: bytes in, events out.
        strangers: &["tokio", "mio", "hyper", "socket2", "rustls", "rustix", "libc", "clap"],
    },
    Room {
        name: "gake-wire",
        level: 3,
        may_use: &["gake-codec", "gake-core", "gake-files"],
        strangers: &["hyper", "clap"],
    },
    Room {
        name: "gake-engine",
        level: 2,
        may_use: &["gake-core", "gake-files"],
        // The loop never names HTTP.
        strangers: &["http", "httparse", "hyper", "url", "rustls", "tokio-rustls", "clap"],
    },
    Room {
        name: "gake-judge",
        level: 2,
        may_use: &["gake-text", "gake-core"],
        // The judge never fires.
        strangers: &["tokio", "mio", "hyper", "socket2", "clap"],
    },
    Room {
        name: "gake-lab",
        level: 2,
        may_use: &["gake-text", "gake-core", "gake-files"],
        strangers: &["clap"],
    },
    // JavaScript alone: what scripts ask for is not its business.
    Room { name: "gake-script", level: 1, may_use: &[], strangers: &["clap"] },
    Room {
        name: "gake-report",
        level: 3,
        may_use: &["gake-text", "gake-core", "gake-files", "gake-judge"],
        strangers: &["clap"],
    },
    Room {
        name: "gake-sql",
        level: 4,
        may_use: &["gake-text", "gake-core", "gake-wire"],
        strangers: &["clap", "hyper"],
    },
    Room {
        name: "gake-users",
        level: 5,
        may_use: &["gake-lab", "gake-sql"],
        strangers: &["clap", "hyper"],
    },
    Room {
        name: "gake-watch",
        level: 5,
        may_use: &["gake-core", "gake-wire", "gake-sql"],
        strangers: &["clap", "hyper"],
    },
    Room {
        name: "gake-sinks",
        level: 4,
        may_use: &["gake-text", "gake-core", "gake-files", "gake-wire"],
        strangers: &["clap", "hyper"],
    },
    Room {
        name: "gake-shadow",
        level: 4,
        may_use: &[
            "gake-text",
            "gake-codec",
            "gake-core",
            "gake-files",
            "gake-wire",
            "gake-judge",
            "gake-script",
        ],
        strangers: &["clap"],
    },
    Room {
        name: "gake-k6",
        level: 4,
        may_use: &["gake-codec", "gake-core", "gake-go", "gake-html", "gake-wire", "gake-script"],
        strangers: &["clap"],
    },
    Room {
        name: "gake-run",
        level: 6,
        may_use: &[
            "gake-text",
            "gake-codec",
            "gake-core",
            "gake-files",
            "gake-wire",
            "gake-engine",
            "gake-judge",
            "gake-report",
            "gake-watch",
            "gake-sinks",
            "gake-k6",
        ],
        strangers: &["clap"],
    },
    Room {
        name: "gake-fleet",
        level: 7,
        may_use: &["gake-text", "gake-core", "gake-run"],
        strangers: &["clap"],
    },
    Room {
        name: "gake-session",
        level: 8,
        may_use: &[
            "gake-text",
            "gake-core",
            "gake-files",
            "gake-wire",
            "gake-engine",
            "gake-judge",
            "gake-report",
            "gake-run",
            "gake-k6",
            "gake-shadow",
            "gake-fleet",
            "gake-sinks",
            "gake-watch",
        ],
        strangers: &[],
    },
    // Data, and one runner: every number of an experiment is in its file.
    Room {
        name: "gake-experiments",
        level: 9,
        may_use: &[
            "gake-text",
            "gake-core",
            "gake-files",
            "gake-wire",
            "gake-judge",
            "gake-report",
            "gake-run",
            "gake-session",
            "gake-shadow",
            "gake-users",
        ],
        strangers: &["clap"],
    },
    Room {
        name: "gake-compat",
        level: 9,
        may_use: &[
            "gake-text",
            "gake-core",
            "gake-files",
            "gake-wire",
            "gake-engine",
            "gake-judge",
            "gake-report",
            "gake-sinks",
            "gake-k6",
            "gake-run",
            "gake-fleet",
            "gake-session",
        ],
        strangers: &["clap"],
    },
    Room {
        name: "gake",
        level: 10,
        may_use: &[
            "gake-compat",
            "gake-convert",
            "gake-text",
            "gake-session",
            "gake-experiments",
            "gake-users",
            "gake-core",
            "gake-files",
            "gake-wire",
            "gake-engine",
            "gake-judge",
            "gake-lab",
            "gake-report",
            "gake-run",
            "gake-script",
            "gake-k6",
            "gake-shadow",
            "gake-fleet",
            "gake-sinks",
            "gake-watch",
        ],
        strangers: &[],
    },
    // The tasks look at the product from outside.
    Room { name: "xtask", level: 10, may_use: &[], strangers: &[] },
];

/// The test fixture: anyone's dev-dependency.
pub const FIXTURE: &str = "gake-lab";

/// A file is split before it reaches this many lines, its tests not counted.
pub const FILE_LINES_MAX: usize = 500;
/// The budget of a file: a warning.
pub const FILE_LINES_BUDGET: usize = 400;
/// A function is split before it reaches this many lines.
pub const FUNCTION_LINES_MAX: usize = 100;
/// The budget of a function: a warning.
pub const FUNCTION_LINES_BUDGET: usize = 70;

/// Words that have their place.
pub struct Words {
    /// The rule's name.
    pub rule: &'static str,
    /// What is looked for, outside of comments, strings and tests.
    pub words: &'static [&'static str],
    /// Paths the rule covers, by prefix; empty: all.
    pub within: &'static [&'static str],
    /// Paths the rule leaves alone, by prefix.
    pub except: &'static [&'static str],
    /// The reason, for whoever meets it.
    pub why: &'static str,
}

/// Where words may not stand.
pub const WORDS: &[Words] = &[
    Words {
        rule: "process-door",
        words: &[
            "println!",
            "eprintln!",
            "print!",
            "eprint!",
            "process::exit",
            "env::args",
            "env::args_os",
            "env::var",
            "env::vars",
            "env::var_os",
            "io::stdin",
            "io::stdout",
            "io::stderr",
        ],
        within: &[],
        except: &["crates/gake/", "crates/gake-session/", "xtask/"],
        why: "only the session and the binary see argv, environment, stdio and exit",
    },
    Words {
        rule: "stream-door",
        words: &[
            "println!",
            "eprintln!",
            "print!",
            "eprint!",
            "dbg!",
            "io::stdout",
            "io::stderr",
            "stdout()",
            "stderr()",
            // What writes to them by itself.
            "print()",
            "ProgressBar",
            "MultiProgress",
            "set_hook",
        ],
        within: &["crates/gake/", "crates/gake-session/"],
        except: &["crates/gake-session/src/console.rs", "crates/gake-session/src/status_line.rs"],
        why: "what is printed goes through `Console`, which shows controls as escapes",
    },
    Words {
        rule: "foreign-text",
        words: &["raw_text"],
        within: &["crates/"],
        except: &["crates/gake-text/src/foreign.rs", "crates/gake-shadow/src/compare/"],
        why: "people are shown `Foreign` text by its `Display`, which escapes controls",
    },
    Words {
        rule: "clock",
        words: &["Instant::now", "SystemTime::now", "Timestamp::now", "Zoned::now"],
        within: &[
            "crates/gake-core/",
            "crates/gake-text/",
            "crates/gake-judge/",
            "crates/gake-report/",
        ],
        except: &[],
        why: "time is a parameter here",
    },
    Words {
        rule: "clock",
        words: &["Instant::now", "SystemTime::now", "tokio::time", "thread::sleep"],
        within: &["crates/gake-wire/"],
        except: &[],
        why: "the client reads time, and waits, only by the clock it is given",
    },
];

/// Crates whose files still import each other in circles, with the reason. One that is no longer
/// needed is an error too.
pub const WITH_CIRCLES: &[(&str, &str)] =
    &[("gake-session", "the console knows failures, and failures are shown on it")];

/// An exception to a rule, with its reason.
pub struct Allowed {
    /// The file.
    pub path: &'static str,
    /// The rule it may break.
    pub rule: &'static str,
    /// Why.
    pub why: &'static str,
}

/// Every exception. One that is no longer needed is an error too.
pub const ALLOWED: &[Allowed] = &[
    Allowed {
        path: "crates/gake-run/examples/search.rs",
        rule: "process-door",
        why: "an example is a program",
    },
    Allowed {
        path: "crates/gake-run/examples/two_loads.rs",
        rule: "process-door",
        why: "an example is a program",
    },
];
