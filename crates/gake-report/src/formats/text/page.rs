//! A page of text: lines, colours, wrapping.

use gake_text::foreign;

use super::Style;

/// The column after a heading.
pub(crate) const INDENT: usize = 14;

/// Pages narrower than this may break a sum of counts.
const NARROW: usize = 72;

/// Separates the figures of a line.
const BETWEEN: &str = "   ";

/// The role of a text, for its colour.
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

/// A page under construction.
#[derive(Debug)]
pub(crate) struct TextPage {
    style: Style,
    text: String,
}

impl TextPage {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    pub(crate) fn width(&self) -> usize {
        self.style.width
    }

    /// The sign in a sum of counts; on a narrow page the sum may continue on the next line.
    pub(crate) fn plus(&self) -> &'static str {
        if self.style.width < NARROW { "   + " } else { " + " }
    }

    pub(crate) fn has_plan(&self) -> bool {
        self.style.plan
    }

    /// The number of lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The page without trailing spaces.
    pub(crate) fn text(&self) -> String {
        let lines = self.text.trim_end().lines();
        lines.flat_map(|line| [line.trim_end(), "\n"]).collect()
    }

    /// The text in its colour, if colours are on. Pad before painting: escapes have no width.
    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.style.colour || paint == Paint::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", paint.code())
    }

    /// Adds a single line: control characters in a name cannot start another one.
    pub(crate) fn line(&mut self, line: &str) {
        let coloured = self.style.colour;
        let line = if coloured { foreign::coloured_line(line) } else { foreign::line(line) };
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// An empty line between sections; never two in a row.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A line that starts with a heading. On a page too narrow for it, it breaks at three spaces.
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

    /// Text wrapped at the page's width, with every line indented; `mark` is in the first line's
    /// indent.
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

/// The width of a text without colours.
fn visible(text: &str) -> usize {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().chars().count();
    let after = |piece: &str| piece.split_once('m').map_or(0, |(_, text)| text.chars().count());
    first + pieces.map(after).sum::<usize>()
}

/// Breaks a text at spaces into lines of at most `width` characters, except for longer words.
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

/// Shortens a text to `width` characters, with an ellipsis.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = foreign::line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
