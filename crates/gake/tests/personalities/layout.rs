//! Two texts with the same layout: the same lines, values apart.

/// The lines with every figure as `#`, every run of blanks inside as one, and no bars.
pub fn layout(text: &str) -> Vec<String> {
    text.lines().map(line).collect()
}

fn line(line: &str) -> String {
    let mut out = String::new();
    let mut in_figure = false;
    // A padded NaN is a figure too.
    for c in line.replace(" NaN", "0").replace('■', "").chars() {
        let figure = c.is_ascii_digit() || (in_figure && c == '.');
        match (figure, in_figure) {
            (true, false) => out.push('#'),
            (true, true) => {}
            (false, _) if c == ' ' && out.ends_with(' ') && !out.trim().is_empty() => {}
            (false, _) => out.push(c),
        }
        in_figure = figure;
    }
    out
}

#[test]
fn only_values_are_masked() {
    assert_eq!(line("  0.004 [137]\t|■■"), "  # [#]\t|");
    assert_eq!(line("Connect:        0    0   0.1"), "Connect: # # #");
    assert_eq!(line("Average:\t NaN secs"), line("Average:\t0.1 secs"));
    assert_ne!(line("a: 1"), line("b: 1"));
}
