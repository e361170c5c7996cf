//! The rules as data: who may use whom, what stays where, and every exception.

use std::sync::LazyLock;

/// A crate of the workspace, its level, and which of ours its code may use.
pub struct Room {
    /// The package's name.
    pub name: &'static str,
    /// Arrows point to a lower level.
    pub level: u8,
    /// The packages of ours it may depend on.
    pub may_use: Vec<&'static str>,
    /// Packages of others that would break its promise.
    pub strangers: Vec<&'static str>,
}

/// The level table.
pub static ROOMS: LazyLock<Vec<Room>> = LazyLock::new(|| rooms(include_str!("crates.txt")));

/// Reads the table; what is not in its form is left out, and then missing.
pub fn rooms(text: &'static str) -> Vec<Room> {
    let words = |text: &'static str| text.split_whitespace().collect();
    let room = |line: &'static str| {
        let (head, rest) = line.split_once(':')?;
        let (name, level) = head.split_once(' ')?;
        let (ours, others) = rest.split_once('|').unwrap_or((rest, ""));
        let (may_use, strangers) = (words(ours), words(others));
        Some(Room { name, level: level.parse().ok()?, may_use, strangers })
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(room).collect()
}

/// The test fixtures: anyone's dev-dependencies.
pub const FIXTURES: [&str; 2] = ["gake-lab", "gake-testkit"];

/// A file is split before it reaches this many lines, its tests not counted.
pub const FILE_LINES_MAX: usize = 500;
/// The budget of a file: a warning.
pub const FILE_LINES_BUDGET: usize = 400;

/// Words that have their place.
pub struct Words {
    /// The rule's name.
    pub rule: &'static str,
    /// What is looked for, outside of comments, strings and tests.
    pub words: &'static str,
    /// Paths the rule covers, by prefix; empty: all.
    pub within: &'static [&'static str],
    /// Paths the rule leaves alone, by prefix.
    pub except: &'static [&'static str],
    /// The reason, shown in the complaint.
    pub why: &'static str,
}

/// Where words may not stand.
pub const WORDS: &[Words] = &[
    Words {
        rule: "process-door",
        words: "println! eprintln! print! eprint! process::exit env::args env::args_os env::var \
                env::vars env::var_os io::stdin io::stdout io::stderr",
        within: &[],
        except: &[
            "crates/gake/",
            "crates/gake-session/",
            "crates/gake-testkit/",
            "crates/gake-run/examples/",
            "bench/",
            "packaging/",
            "xtask/",
        ],
        why: "only the session and the binary see argv, environment, stdio and exit",
    },
    Words {
        rule: "stream-door",
        words: "println! eprintln! print! eprint! dbg! io::stdout io::stderr stdout() stderr() \
                print() ProgressBar MultiProgress set_hook",
        within: &["crates/gake/", "crates/gake-session/"],
        except: &["crates/gake-session/src/console.rs", "crates/gake-session/src/status_line.rs"],
        why: "what is printed goes through `Console`, which shows controls as escapes",
    },
    Words {
        rule: "foreign-text",
        words: "raw_text",
        within: &["crates/"],
        except: &["crates/gake-text/src/foreign.rs", "crates/gake-shadow/src/compare/"],
        why: "people are shown `Foreign` text by its `Display`, which escapes controls",
    },
    Words {
        rule: "native-functions",
        words: "Func::from Func::new Function::new",
        within: &["crates/gake-js/", "crates/gake-k6/"],
        except: &["crates/gake-js/src/native.rs"],
        why: "`named` gives functions of scripts the name by which the watchdog reports them",
    },
    Words {
        rule: "clock",
        words: "Instant::now SystemTime::now Timestamp::now Zoned::now",
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
        words: "Instant::now SystemTime::now tokio::time thread::sleep",
        within: &["crates/gake-wire/"],
        except: &[],
        why: "the client reads time, and waits, only by the clock it is given",
    },
];
