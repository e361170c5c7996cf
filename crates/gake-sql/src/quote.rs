//! Text as a part of a statement.

use std::fmt::Write as _;

use crate::dsn::SqlKind;

/// A text as an expression of SQL. Its bytes are hexadecimal digits, so that nothing in it, and no
/// setting of the server, can end it early.
pub fn quoted(kind: SqlKind, text: &str) -> String {
    let digits = text.bytes().fold(String::new(), |mut digits, byte| {
        // A string takes whatever is written.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    match kind {
        SqlKind::MySql => format!("CONVERT(X'{digits}' USING utf8mb4)"),
        SqlKind::Postgres => format!("convert_from(decode('{digits}','hex'),'UTF8')"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_statement() {
        let hostile = "'; DROP TABLE users; -- \\";
        for kind in [SqlKind::MySql, SqlKind::Postgres] {
            let quoted = quoted(kind, hostile);
            assert!(!quoted.contains("DROP") && !quoted.contains('\\'), "{quoted}");
        }
        assert_eq!(quoted(SqlKind::MySql, "é"), "CONVERT(X'c3a9' USING utf8mb4)");
    }
}
