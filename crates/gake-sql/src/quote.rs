//! Text literals in statements.

use crate::dsn::SqlKind;

/// A text as an SQL expression, in hexadecimal digits: no content and no setting of the server can
/// end it early.
pub fn quoted(kind: SqlKind, text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
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
