//! Columns as Go's `tabwriter` aligns them: two blanks after the widest cell, the last cell of a
//! line as it is.

/// Lines of cells, aligned.
pub(super) fn align(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (at, cell) in row.iter().take(row.len().saturating_sub(1)).enumerate() {
            let width = cell.chars().count() + 2;
            match widths.get_mut(at) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let Some((last, cells)) = row.split_last() else { continue };
        for (cell, &width) in cells.iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}"));
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}
