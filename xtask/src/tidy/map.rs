//! ARCHITECTURE.md against the sources: the picture of the crates, and the files it names. The
//! contents of the documentation against its pages.

use std::path::Path;

use super::Complaint;
use super::source::Source;
use super::table::Room;

const BEGIN: &str = "<!-- crates: drawn by `GAKE_BLESS=1 cargo xtask tidy` -->\n";
const END: &str = "<!-- /crates -->";

/// Crates that no product depends on.
const TOOLS: [&str; 3] = ["gake-bench", "gake-packaging", "gake-testkit"];

/// The crates by level, from the binary down.
fn picture(rooms: &[Room]) -> String {
    let mut levels: Vec<(u8, Vec<&str>)> = Vec::new();
    let is_product = |room: &&Room| room.name.starts_with("gake") && !TOOLS.contains(&room.name);
    for room in rooms.iter().filter(is_product) {
        let name = room.name.strip_prefix("gake-").unwrap_or(room.name);
        match levels.iter_mut().find(|(level, _)| *level == room.level) {
            Some((_, names)) => names.push(name),
            None => levels.push((room.level, vec![name])),
        }
    }
    levels.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    let rows: Vec<String> = levels.iter().map(|(_, names)| names.join("   ")).collect();
    let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("    {}{row}", " ".repeat((width - row.len()) / 2)))
        .collect();
    format!("\n{}\n\n", rows.join("\n"))
}

/// The page with the picture that the table gives.
pub fn drawn(text: &str, rooms: &[Room]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", picture(rooms)))
}

/// What is wrong with the page.
pub fn check(text: &str, rooms: &[Room], sources: &[Source]) -> Vec<Complaint> {
    let complaint = |line: usize, message: String| {
        Complaint::error(format!("ARCHITECTURE.md:{line}"), "map", message)
    };
    let mut complaints = Vec::new();
    if drawn(text, rooms).as_deref() != Some(text) {
        let message = "the picture is not the table's: GAKE_BLESS=1 cargo xtask tidy draws it";
        complaints.push(complaint(1, message.to_owned()));
    }
    for (number, line) in text.lines().enumerate() {
        let quoted = line.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"));
        for path in quoted.filter(|path| !path.contains(['*', ' '])) {
            if !sources.iter().any(|source| source.path.ends_with(Path::new(path))) {
                complaints.push(complaint(number + 1, format!("there is no file {path}")));
            }
        }
    }
    complaints
}

/// Pages of docs/ that its contents do not list.
pub fn unlisted(documents: &[(String, String)]) -> Vec<Complaint> {
    let contents = documents.iter().find(|(path, _)| path == "docs/SUMMARY.md");
    let contents = contents.map(|(_, text)| text.as_str()).unwrap_or_default();
    let pages = documents.iter().filter_map(|(path, _)| path.strip_prefix("docs/"));
    let unlisted =
        pages.filter(|page| *page != "SUMMARY.md" && !contents.contains(&format!("({page})")));
    let complaint = |page: &str| {
        Complaint::error(format!("docs/{page}"), "contents", "is not in docs/SUMMARY.md")
    };
    unlisted.map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::table::rooms;

    #[test]
    fn the_picture_and_the_files_are_checked() {
        let rooms = rooms("gake-text 0:\ngake-core 1: gake-text\ngake-html 0:\nxtask 2:\n");
        let page = format!("a\n{BEGIN}{END}\n`src/lib.rs` and `none.rs`\n");
        let drawn = drawn(&page, &rooms).unwrap();
        assert!(drawn.contains("\n       core\n    text   html\n"), "{drawn}");
        let sources = [Source::new(Path::new("crates/gake-core/src/lib.rs"), String::new())];
        let found = |text: &str| {
            check(text, &rooms, &sources).into_iter().map(|one| one.message).collect::<Vec<_>>()
        };
        assert_eq!(found(&drawn), ["there is no file none.rs"]);
        assert_eq!(found(&page).len(), 2);
    }
}
