//! Where `unsafe` stands, and why: every block of it is in the list, and the list has no more.

use super::Complaint;
use super::source::Source;

const RULE: &str = "unsafe";

/// A file with `unsafe` in it.
pub struct Unsafe {
    /// The file.
    pub path: &'static str,
    /// How often the word stands in its code.
    pub count: usize,
    /// What cannot be done without it.
    pub why: &'static str,
}

/// Compares the files with the list.
pub fn check(sources: &[Source], list: &[Unsafe]) -> Vec<Complaint> {
    let complaint = |path: &str, message: String| Complaint {
        place: path.to_owned(),
        rule: RULE,
        message,
        warning: false,
    };
    let mut complaints = Vec::new();
    for source in sources {
        let (name, count) = (source.name(), source.find_all("unsafe").count());
        let listed = list.iter().find(|entry| entry.path == name).map_or(0, |entry| entry.count);
        if count != listed {
            complaints.push(complaint(
                &name,
                format!(
                    "`unsafe` {count} times, {listed} in the list (xtask/src/tidy/unsafe_list.rs): \
                     it says why each is needed"
                ),
            ));
        }
    }
    let gone = list.iter().filter(|entry| !sources.iter().any(|s| s.name() == entry.path));
    complaints.extend(
        gone.map(|entry| complaint(entry.path, format!("is listed ({}) and gone", entry.why))),
    );
    complaints
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_list_is_held_to() {
        let text = "// unsafe\nfn a() { \"unsafe\"; unsafe {} }\n#[cfg(test)]\nmod t { unsafe fn b() {} }\n";
        let sources = [Source::new(Path::new("crates/x/src/a.rs"), text.to_owned())];
        let entry = |path, count| Unsafe { path, count, why: "a reason" };
        assert_eq!(check(&sources, &[entry("crates/x/src/a.rs", 2)]), []);
        assert_eq!(check(&sources, &[entry("crates/x/src/a.rs", 1)]).len(), 1);
        assert_eq!(check(&sources, &[entry("crates/x/src/a.rs", 3)]).len(), 1);
        assert_eq!(check(&sources, &[]).len(), 1);
        assert_eq!(check(&[], &[entry("crates/x/src/a.rs", 2)]).len(), 1);
    }
}
