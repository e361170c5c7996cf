//! A page of text: lines, paint, wrapping.

use gake_text::foreign;

use super::Style;

/// Where what belongs to a heading begins.
pub(crate) const INDENT: usize = 14;

/// Columns below which a sum of counts may not fit on a line.
const NARROW: usize = 72;

/// What stands between the figures of a line.
const BETWEEN: &str = "   ";

/// What a piece of text is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Good,
    Warn,
    Bad,
    Heading,
    Quiet,
    Bar,
    Plain,
}

impl Paint {
    /// The SGR parameters (ECMA-48) of this paint.
    fn code(self) -> &'static str {
        match self {
            Self::Good => "1;32",
            Self::Warn => "1;33",
            Self::Bad => "1;31",
            Self::Heading => "1",
            Self::Quiet => "2",
            Self::Bar => "36",
            Self::Plain => "",
        }
    }
}

/// A page in the making.
#[derive(Debug)]
pub(crate) struct Page {
    style: Style,
    text: String,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    /// Columns of a line.
    pub(crate) fn width(&self) -> usize {
        self.style.width
    }

    /// What stands in a sum of counts: on a narrow page it may go on below.
    pub(crate) fn plus(&self) -> &'static str {
        if self.style.width < NARROW { "   + " } else { " + " }
    }

    /// Whether the plan is told.
    pub(crate) fn has_plan(&self) -> bool {
        self.style.plan
    }

    /// Lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The page, each line without blanks at its end.
    pub(crate) fn text(&self) -> String {
        let lines = self.text.trim_end().lines();
        lines.flat_map(|line| [line.trim_end(), "\n"]).collect()
    }

    /// The text in its colour, when there are colours. Pad before painting: colours have no width.
    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.style.colour || paint == Paint::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", paint.code())
    }

    /// One line, whatever is in a name that stands in it: no label can look like a line of ours.
    pub(crate) fn line(&mut self, line: &str) {
        let coloured = self.style.colour;
        let line = if coloured { foreign::coloured_line(line) } else { foreign::line(line) };
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// An empty line between sections; never two.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A line that starts with a heading. Where the page is too narrow for it, what three blanks
    /// separate goes on the next line.
    pub(crate) fn headed(&mut self, heading: &str, rest: &str) {
        let mut line = self.paint(Paint::Heading, &format!("{heading:<INDENT$}"));
        let mut column = INDENT;
        for (i, part) in rest.split(BETWEEN).enumerate() {
            let width = visible(part);
            if i > 0 && column + BETWEEN.len() + width > self.style.width && column > INDENT {
                self.line(&line);
                line = " ".repeat(INDENT);
                column = INDENT;
            } else if i > 0 {
                line.push_str(BETWEEN);
                column += BETWEEN.len();
            }
            line.push_str(part);
            column += width;
        }
        self.line(&line);
    }

    /// Text wrapped at the page's width, every line indented; the first starts with `mark`, which
    /// stands in the indent.
    pub(crate) fn wrapped(&mut self, indent: usize, mark: &str, paint: Paint, text: &str) {
        let mut lead = format!("{mark:<indent$}");
        let width = self.style.width.saturating_sub(indent).max(20);
        for part in wrap(&foreign::lines(text), width) {
            let part = self.paint(paint, &part);
            self.line(&format!("{lead}{part}"));
            lead = " ".repeat(indent);
        }
    }
}

/// Columns of a text, colours aside.
fn visible(text: &str) -> usize {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().chars().count();
    let after = |piece: &str| piece.split_once('m').map_or(0, |(_, text)| text.chars().count());
    first + pieces.map(after).sum::<usize>()
}

/// Breaks a text at blanks so that each line has `width` characters at most, longer words aside.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Cuts a text of others to `width` characters, with an ellipsis.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = foreign::line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
