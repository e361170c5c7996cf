//! The database of a history.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use gake_files::Access;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};

use super::{HistoryEntry, Revision};
use crate::exit::Failure;

const FILE: &str = "history.db";

/// The schema version, in `user_version`.
const VERSION: i64 = 1;

/// How long to wait for another process's lock.
const BUSY: Duration = Duration::from_secs(10);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started_unix_ns INTEGER NOT NULL,
        target TEXT NOT NULL,
        plan TEXT NOT NULL,
        commit_hash TEXT,
        branch TEXT,
        verdict TEXT NOT NULL,
        missed INTEGER NOT NULL,
        due INTEGER NOT NULL,
        ok INTEGER NOT NULL,
        goodput REAL NOT NULL,
        p50_ns INTEGER,
        p99_ns INTEGER,
        capacity REAL,
        capacity_low REAL,
        capacity_high REAL,
        file TEXT,
        text TEXT
    ) STRICT;
    CREATE TABLE IF NOT EXISTS baselines (
        name TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (id)
    ) STRICT;
    PRAGMA user_version = 1;
";

const COLUMNS: &str = "id, started_unix_ns, target, plan, commit_hash, branch, verdict, missed, \
                       due, ok, goodput, p50_ns, p99_ns, capacity, capacity_low, capacity_high, \
                       file, text";

/// An open history.
#[derive(Debug)]
pub struct HistoryStore(Connection);

impl HistoryStore {
    /// Opens the history in a folder, or creates it.
    ///
    /// # Errors
    /// When it cannot be opened, or a newer gake wrote it.
    pub fn create(folder: &Path) -> Result<Self, Failure> {
        // Targets and plans are private.
        gake_files::create_folder(folder)
            .map_err(|error| Failure::could_not(format!("{}: {error}", folder.display())))?;
        // Git need not list the runs of a project. A folder without the file works as well.
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            let _ = gake_files::create(&ignore, Access::Owner)
                .and_then(|mut file| file.write_all(b"*\n"));
        }
        // SQLite would create it for everyone, in a folder that may have existed before.
        gake_files::append(&folder.join(FILE), Access::Owner)
            .map_err(|error| Failure::could_not(format!("{}: {error}", folder.display())))?;
        Self::open_with(folder, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens the history in a folder.
    ///
    /// # Errors
    /// When there is none, and as [`HistoryStore::create`].
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        if !folder.join(FILE).exists() {
            return Err(Failure::could_not(format!(
                "there is no history in {}: `gake run --save` adds a run to it",
                folder.display()
            )));
        }
        Self::open_with(folder, OpenFlags::empty())
    }

    fn open_with(folder: &Path, flags: OpenFlags) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let open = || {
            let database = Connection::open_with_flags(&path, flags)?;
            database.busy_timeout(BUSY)?;
            // Triggers and functions in a foreign file must not run.
            database.pragma_update(None, "trusted_schema", false)?;
            let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version == 0 {
                database.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT;"))?;
            }
            Ok((database, version))
        };
        let (database, version) = open().map_err(|error| of(&path, &error))?;
        if version > VERSION {
            return Err(Failure::could_not(format!(
                "{} was written by a newer gake (version {version}; this one knows {VERSION})",
                path.display()
            )));
        }
        Ok(Self(database))
    }

    /// Adds an entry and returns its number.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn add(&self, entry: &HistoryEntry) -> Result<i64, Failure> {
        let [p50, p99] = entry.times.map_or([None; 2], |times| times.map(|ns| Some(whole(ns))));
        let [capacity, low, high] = entry.capacity.map_or([None; 3], |found| found.map(Some));
        let sql = "INSERT INTO runs (started_unix_ns, target, plan, commit_hash, branch, verdict, \
                   missed, due, ok, goodput, p50_ns, p99_ns, capacity, capacity_low, \
                   capacity_high, file, text) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
                   ?17)";
        let Revision { commit, branch } = &entry.revision;
        let values = params![
            whole(entry.started_unix_ns),
            entry.target,
            entry.plan,
            commit,
            branch,
            entry.verdict,
            whole(entry.missed),
            whole(entry.due),
            whole(entry.ok),
            entry.goodput,
            p50,
            p99,
            capacity,
            low,
            high,
            entry.file,
            entry.text,
        ];
        self.0.execute(sql, values).map_err(failed)?;
        Ok(self.0.last_insert_rowid())
    }

    /// The newest entries, the newest last, at most `most`; only for `target` if there is one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn newest(&self, target: Option<&str>, most: u32) -> Result<Vec<HistoryEntry>, Failure> {
        let sql = format!(
            "SELECT {COLUMNS} FROM runs WHERE ?1 IS NULL OR target = ?1 ORDER BY id DESC LIMIT ?2"
        );
        let read = || {
            let mut statement = self.0.prepare(&sql)?;
            let rows = statement.query_map(params![target, most], entry)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut entries = read().map_err(failed)?;
        entries.reverse();
        Ok(entries)
    }

    /// The entry with this number, the `last` one, or a baseline.
    ///
    /// # Errors
    /// When there is no such entry.
    pub fn named(&self, name: &str) -> Result<HistoryEntry, Failure> {
        let found = match name.trim_start_matches('#').parse::<i64>() {
            Ok(id) => self.one("id = ?1", params![id]),
            Err(_) if name == "last" => self.one("id = (SELECT MAX(id) FROM runs)", params![]),
            Err(_) => self.one("id = (SELECT run FROM baselines WHERE name = ?1)", params![name]),
        };
        found.map_err(failed)?.ok_or_else(|| {
            Failure::could_not(format!(
                "the history has no run {name:?}: a number of `gake history list`, last, or a \
                 name given by `gake history baseline NAME`"
            ))
        })
    }

    fn one(&self, which: &str, values: impl Params) -> rusqlite::Result<Option<HistoryEntry>> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE {which}");
        self.0.query_row(&sql, values, entry).optional()
    }

    /// Makes an entry the baseline of this name, in place of any earlier one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn set_baseline(&self, name: &str, id: i64) -> Result<(), Failure> {
        let sql = "INSERT INTO baselines (name, run) VALUES (?1, ?2) \
                   ON CONFLICT (name) DO UPDATE SET run = excluded.run";
        self.0.execute(sql, params![name, id]).map(drop).map_err(failed)
    }

    /// All baselines: name, and number of the entry.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn baselines(&self) -> Result<Vec<(String, i64)>, Failure> {
        let read = || {
            let mut statement = self.0.prepare("SELECT name, run FROM baselines ORDER BY name")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(failed)
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<HistoryEntry> {
    let count = |at: usize| row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or(0));
    let time = |at: usize| row.get::<_, Option<i64>>(at).map(|n| n.and_then(|n| n.try_into().ok()));
    let times: [Option<u64>; 2] = [time(11)?, time(12)?];
    let capacity: [Option<f64>; 3] = [row.get(13)?, row.get(14)?, row.get(15)?];
    Ok(HistoryEntry {
        id: row.get(0)?,
        started_unix_ns: count(1)?,
        target: row.get(2)?,
        plan: row.get(3)?,
        revision: Revision { commit: row.get(4)?, branch: row.get(5)? },
        verdict: row.get(6)?,
        missed: count(7)?,
        due: count(8)?,
        ok: count(9)?,
        goodput: row.get(10)?,
        times: times[0].zip(times[1]).map(|(p50, p99)| [p50, p99]),
        capacity: match capacity {
            [Some(capacity), Some(low), Some(high)] => Some([capacity, low, high]),
            _ => None,
        },
        file: row.get::<_, Option<String>>(16)?.filter(|name| !name.contains('/')),
        text: row.get(17)?,
    })
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn of(path: &Path, error: &rusqlite::Error) -> Failure {
    Failure::could_not(format!("{}: {error}", path.display()))
}

fn failed(error: rusqlite::Error) -> Failure {
    Failure::could_not(format!("the history: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn run(target: &str, p99: u64) -> HistoryEntry {
        HistoryEntry {
            id: 0,
            started_unix_ns: 1_760_000_000_000_000_000,
            target: target.to_owned(),
            plan: "a plan".to_owned(),
            revision: Revision { commit: Some("abc+".to_owned()), branch: None },
            verdict: "valid".to_owned(),
            missed: 0,
            due: 10,
            ok: 9,
            goodput: 4.5,
            times: Some([1, p99]),
            capacity: None,
            file: Some("a.hlog".to_owned()),
            text: None,
        }
    }

    #[test]
    fn entries_are_found_by_number_name_and_target() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join(".gake");
        assert!(HistoryStore::open(&folder).is_err());
        let store = HistoryStore::create(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let ids: Vec<_> =
            [run("a", 1), run("b", 2), run("a", 3)].iter().map(|e| store.add(e).unwrap()).collect();
        store.set_baseline("main", ids[1]).unwrap();
        store.set_baseline("main", ids[0]).unwrap();
        drop(store);
        let store = HistoryStore::open(&folder).unwrap();
        assert_eq!(store.named("main").unwrap(), HistoryEntry { id: ids[0], ..run("a", 1) });
        assert_eq!(store.named("last").unwrap().id, ids[2]);
        assert_eq!(store.named(&ids[1].to_string()).unwrap().target, "b");
        assert!(store.named("other").is_err() && store.named("99").is_err());
        let newest = |target, most| {
            let entries = store.newest(target, most).unwrap();
            entries.iter().map(|entry| entry.id).collect::<Vec<_>>()
        };
        assert_eq!(newest(None, 2), ids[1..]);
        assert_eq!(newest(Some("a"), 9), [ids[0], ids[2]]);
        assert_eq!(store.baselines().unwrap(), [("main".to_owned(), ids[0])]);
    }

    #[test]
    fn a_path_in_the_database_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = HistoryStore::create(folder.path()).unwrap();
        let entry = HistoryEntry { file: Some("../../secret".to_owned()), ..run("a", 1) };
        let id = store.add(&entry).unwrap();
        assert_eq!(store.named(&id.to_string()).unwrap().file, None);
    }

    #[test]
    fn a_file_that_is_not_a_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "this is not a database, whatever its name is")
            .unwrap();
        assert!(HistoryStore::open(folder.path()).is_err());
    }
}
