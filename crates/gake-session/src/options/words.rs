//! Splitting a command line into words.

/// Splits `line` into words as a shell does: at blanks; `'...'` is literal; in `"..."` and
/// outside quotes `\\` makes the next character literal. No variables, no patterns.
///
/// # Errors
/// When a quote or a `\\` is left open.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                let next = chars.next().ok_or_else(|| format!("{line:?} ends in a \\"))?;
                word.get_or_insert_default().push(next);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("the {open} in {line:?} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell() {
        let line = r#" run  http://h/ -H 'A: b "c"' --data "{\"k\": 1}" x\ y '' "#;
        let expected = ["run", "http://h/", "-H", "A: b \"c\"", "--data", "{\"k\": 1}", "x y", ""];
        assert_eq!(words(line).unwrap(), expected);
        assert!(words("a 'b").is_err() && words("a\\").is_err());
    }
}
