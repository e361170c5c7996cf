//! A script and how it is started.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::observe::Observed;

/// A script of `cases/`. Comments at its top say how it is started: `// args: -u 3`,
/// `// env: K6_VUS=3`.
#[derive(Debug)]
pub struct Case {
    /// Its path below `cases/`, without its ending.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
    /// Further arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6").join(name)
}

impl Case {
    /// Every case, by name; those alone whose names hold `GAKE_K6_CASES`, when it is set. Files that others import begin with `// part of`.
    pub fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        collect(&folder("cases"), "", &mut cases);
        if let Ok(part) = std::env::var("GAKE_K6_CASES") {
            cases.retain(|case| case.name.contains(&part));
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        cases
    }

    fn read(path: PathBuf, name: String) -> Option<Self> {
        let text = fs::read_to_string(&path).unwrap();
        if text.starts_with("// part of") {
            return None;
        }
        let words = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let pair = |text: &String| {
            let (name, value) = text.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        let (args, env) = (words("// args: "), words("// env: ").iter().map(pair).collect());
        Some(Self { name, path, text, args, env })
    }

    fn recorded_path(&self) -> PathBuf {
        folder("recorded").join(format!("{}.json", self.name))
    }

    /// What k6 made of it.
    pub fn recorded(&self) -> Observed {
        let path = self.recorded_path();
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; run cargo xtask k6 --record", self.name));
        serde_json::from_str(&text).unwrap()
    }

    /// Writes down what k6 made of it.
    pub fn record(&self, seen: &Observed) {
        let path = self.recorded_path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, serde_json::to_string_pretty(seen).unwrap() + "\n").unwrap();
    }
}

fn collect(folder: &Path, prefix: &str, cases: &mut Vec<Case>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let name = format!("{prefix}{stem}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), cases);
        } else if path.extension().is_some_and(|ending| ending == "js" || ending == "ts") {
            cases.extend(Case::read(path, name));
        }
    }
}
