//! The confusion matrix: true causes against what was said first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Over the true causes.
const HEAD: &str = "true cause";

/// What was said of one cause, and how often.
#[derive(Default)]
struct Row {
    cause: String,
    first: BTreeMap<String, u32>,
    /// What was blamed although it is healthy.
    blamed: BTreeMap<String, u32>,
    runs: u32,
    right: u32,
    /// Runs in which something healthy was blamed.
    wrong: u32,
    /// What it needs and is not available.
    lacks: Option<String>,
}

/// All causes, in the order in which they were measured.
#[derive(Default)]
pub struct Matrix {
    rows: Vec<Row>,
}

impl Matrix {
    /// Reads the lines that the test `causes::matrix` writes.
    pub fn of(lines: &str) -> Self {
        let mut matrix = Self::default();
        for line in lines.lines() {
            let fields: Vec<_> = line.split('\t').collect();
            match fields[..] {
                [cause, "needs", what] => matrix.row(cause).lacks = Some(what.to_owned()),
                [cause, first, right, blamed, ..] => {
                    let row = matrix.row(cause);
                    *row.first.entry(first.to_owned()).or_default() += 1;
                    row.runs += 1;
                    row.right += u32::from(right == "true");
                    row.wrong += u32::from(!blamed.is_empty());
                    for id in blamed.split(',').filter(|id| !id.is_empty()) {
                        *row.blamed.entry(id.to_owned()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        matrix
    }

    fn row(&mut self, cause: &str) -> &mut Row {
        let at = self.rows.iter().position(|row| row.cause == cause).unwrap_or_else(|| {
            self.rows.push(Row { cause: cause.to_owned(), ..Row::default() });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As Markdown: a row each, and the sums.
    pub fn table(&self) -> String {
        let mut text = "| true cause | said first | right | healthy, and blamed |\n\
                        | --- | --- | ---: | --- |\n"
            .to_owned();
        let (mut runs, mut right, mut wrong) = (0, 0, 0);
        for row in &self.rows {
            let cells = match &row.lacks {
                Some(what) => format!("not measured: needs {what} | |"),
                None => {
                    let (first, blamed) = (list(&row.first), list(&row.blamed));
                    format!("{first} | {} of {} | {blamed}", row.right, row.runs)
                }
            };
            let _ = writeln!(text, "| {} | {} |", row.cause, cells.trim_end());
            (runs, right, wrong) = (runs + row.runs, right + row.right, wrong + row.wrong);
        }
        let _ = writeln!(
            text,
            "\nThe first finding is right in {}; something healthy is blamed in {}.",
            share(right, runs),
            share(wrong, runs)
        );
        text
    }

    /// As text: true causes down, first findings across.
    pub fn confusion(&self) -> String {
        let said: BTreeSet<_> = self.rows.iter().flat_map(|row| row.first.keys()).collect();
        let causes = self.rows.iter().map(|row| row.cause.len());
        let wide = causes.chain([HEAD.len()]).max().unwrap_or(0);
        let mut text = format!("{HEAD:wide$}");
        for column in 1..=said.len() {
            let _ = write!(text, " {column:>3}");
        }
        text.push('\n');
        for row in self.rows.iter().filter(|row| row.lacks.is_none()) {
            let _ = write!(text, "{:wide$}", row.cause);
            for id in &said {
                let count = row.first.get(*id).map_or(".".to_owned(), u32::to_string);
                let _ = write!(text, " {count:>3}");
            }
            text.push('\n');
        }
        for (column, id) in said.iter().enumerate() {
            let _ = writeln!(text, "{:>3} {id}", column + 1);
        }
        text
    }
}

/// `` `target_cpu` × 2, `run_delay` × 1 ``, the most frequent first.
fn list(counts: &BTreeMap<String, u32>) -> String {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let counts: Vec<_> = counts.iter().map(|(id, count)| format!("`{id}` × {count}")).collect();
    counts.join(", ")
}

/// `9 of 10 runs (90.0 %)`.
fn share(part: u32, of: u32) -> String {
    let percent = f64::from(part) * 100.0 / f64::from(of.max(1));
    format!("{part} of {of} runs ({percent:.1} %)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "CPU\ttarget_cpu\ttrue\t\t{}\nnone\tnone\ttrue\t\t{}\n\
        CPU\trun_delay\tfalse\trun_delay,client_ports\t{}\nloss\tneeds\ttc\n\
        CPU\ttarget_cpu\ttrue\tclient_ports\t{}\n";

    #[test]
    fn refusals_are_counted_by_cause() {
        let expected = "| true cause | said first | right | healthy, and blamed |\n\
            | --- | --- | ---: | --- |\n\
            | CPU | `target_cpu` × 2, `run_delay` × 1 | 2 of 3 | `client_ports` × 2, `run_delay` × 1 |\n\
            | none | `none` × 1 | 1 of 1 | |\n\
            | loss | not measured: needs tc | | |\n\
            \nThe first finding is right in 3 of 4 runs (75.0 %); something healthy is blamed in \
            2 of 4 runs (50.0 %).\n";
        assert_eq!(Matrix::of(LINES).table(), expected);
    }

    #[test]
    fn causes_go_down_and_findings_across() {
        let expected = "true cause   1   2   3\n\
                        CPU          .   1   2\n\
                        none         1   .   .\n  \
                        1 none\n  2 run_delay\n  3 target_cpu\n";
        assert_eq!(Matrix::of(LINES).confusion(), expected);
    }
}
