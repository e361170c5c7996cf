//! Compares texts line by line.
//!
//! The path of a line is the line with numbers masked, so that a page with a time of day has one
//! differing field, whatever the time.

use gake_text::redact::Redacted;

use super::field::{DifferenceKind, Differences};

/// Lines of each text that are compared.
const LINES_MAX: usize = 5_000;

/// Cells of the alignment table. Larger differences are compared in order.
const CELLS_MAX: usize = 250_000;

/// Both are redacted as a whole: a key, or a password below its name, has several lines.
pub(super) fn compare(expected: &str, actual: &str, out: &mut Differences<'_>) {
    let redactor = out.redactor;
    let all = |text: &str| redactor.text(text).each_line().take(LINES_MAX).collect::<Vec<_>>();
    let (expected, actual) = (all(expected), all(actual));
    let shortest = expected.len().min(actual.len());
    let start = (0..shortest).take_while(|&at| expected[at] == actual[at]).count();
    let same_end =
        |back: &usize| expected[expected.len() - 1 - back] == actual[actual.len() - 1 - back];
    let end = (0..shortest - start).take_while(same_end).count();
    let left = &expected[start..expected.len() - end];
    let right = &actual[start..actual.len() - end];
    let mut hunk = Hunk::default();
    for step in align(left, right) {
        match step {
            Step::Both => hunk.close(out),
            Step::Left(at) => hunk.removed.push(&left[at]),
            Step::Right(at) => hunk.added.push(&right[at]),
        }
    }
    hunk.close(out);
}

/// Consecutive replaced lines.
#[derive(Default)]
struct Hunk<'a> {
    removed: Vec<&'a Redacted>,
    added: Vec<&'a Redacted>,
}

impl Hunk<'_> {
    fn close(&mut self, out: &mut Differences<'_>) {
        let pairs = self.removed.len().min(self.added.len());
        for (removed, added) in self.removed.iter().zip(&self.added) {
            note(removed, DifferenceKind::Value, removed, added, out);
        }
        for removed in &self.removed[pairs..] {
            note(removed, DifferenceKind::Missing, removed, &Redacted::plain("nothing"), out);
        }
        for added in &self.added[pairs..] {
            note(added, DifferenceKind::Added, &Redacted::plain("nothing"), added, out);
        }
        self.removed.clear();
        self.added.clear();
    }
}

fn note(
    line: &str,
    kind: DifferenceKind,
    expected: &Redacted,
    actual: &Redacted,
    out: &mut Differences<'_>,
) {
    let path = format!("line {:?}", masked(line.trim()));
    out.note(&path, kind, || (expected.trimmed(), actual.trimmed()));
}

/// Replaces words with digits by `#`.
fn masked(line: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in line.chars().chain([' ']) {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        let number = word.contains(|c: char| c.is_ascii_digit());
        out.push_str(if number { "#" } else { &word });
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}

enum Step {
    Both,
    Left(usize),
    Right(usize),
}

/// The steps of the longest common subsequence, by dynamic programming.
fn align(left: &[Redacted], right: &[Redacted]) -> Vec<Step> {
    let (rows, columns) = (left.len(), right.len());
    if rows * columns > CELLS_MAX {
        return (0..rows).map(Step::Left).chain((0..columns).map(Step::Right)).collect();
    }
    let mut longest = vec![0u32; (rows + 1) * (columns + 1)];
    let cell = |row: usize, column: usize| row * (columns + 1) + column;
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            longest[cell(row, column)] = if left[row] == right[column] {
                longest[cell(row + 1, column + 1)] + 1
            } else {
                longest[cell(row + 1, column)].max(longest[cell(row, column + 1)])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut steps = Vec::with_capacity(rows + columns);
    while row < rows || column < columns {
        let equal = row < rows && column < columns && left[row] == right[column];
        if equal {
            steps.push(Step::Both);
            (row, column) = (row + 1, column + 1);
        } else if column == columns
            || (row < rows && longest[cell(row + 1, column)] >= longest[cell(row, column + 1)])
        {
            steps.push(Step::Left(row));
            row += 1;
        } else {
            steps.push(Step::Right(column));
            column += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::rules::Tolerances;
    use super::*;

    fn found(expected: &str, actual: &str) -> Vec<String> {
        let redactor = gake_text::redact::Redactor::off();
        let mut out = Differences::new(Tolerances::default(), &redactor);
        compare(expected, actual, &mut out);
        out.fields.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_changing_line_has_one_path() {
        let page =
            |time: &str, user: &str| format!("<h1>Hello</h1>\n<p>at {time}</p>\n<b>{user}</b>\n");
        let line = "line \"<p>at #:#</p>\" value";
        assert_eq!(found(&page("10:01", "x"), &page("10:02", "x")), [line]);
        assert_eq!(
            found(&page("10:01", "x"), &page("11:59", "y")),
            ["line \"<b>x</b>\" value", line]
        );
        assert!(found(&page("1", "x"), &page("1", "x")).is_empty());
    }

    #[test]
    fn added_and_missing_lines_are_found() {
        assert_eq!(found("a\nb\nc", "a\nc"), ["line \"b\" missing"]);
        assert_eq!(found("a\nc", "a\nb\nc"), ["line \"b\" added"]);
        assert_eq!(found("", "a"), ["line \"a\" added"]);
        assert_eq!(found("a\nb\nc\nd", "b\nx\nd"), ["line \"a\" missing", "line \"c\" value"]);
    }

    #[test]
    fn secrets_of_several_lines_are_hidden() {
        use gake_text::redact::{Redactor, SecretNames};
        let redactor = Redactor::new([7; 16], SecretNames::default());
        let text = |secret: &str| {
            format!(
                "-----BEGIN PRIVATE KEY-----\n{secret}A\n{secret}B\n-----END PRIVATE KEY-----\n\
                 password=\n{secret}C\ntoken: |\n  {secret}D\n\
                 <password>\n  {secret}E\n</password>\n<password><v>{secret}F</v></password>\n"
            )
        };
        let mut out = Differences::new(Tolerances::default(), &redactor);
        compare(&text("hunter2"), &text("correcthorse"), &mut out);
        assert!(!out.fields.is_empty());
        let shown = format!("{:?}", out.fields);
        assert!(!shown.contains("hunter2") && !shown.contains("correcthorse"), "{shown}");
    }

    #[test]
    fn huge_differences_are_bounded() {
        let many = |c: char| (0..10_000).map(|n| format!("{c}{n}\n")).collect::<String>();
        let redactor = gake_text::redact::Redactor::off();
        let mut out = Differences::new(Tolerances::default(), &redactor);
        compare(&many('a'), &many('b'), &mut out);
        assert_eq!(out.fields.len(), 1);
    }
}
