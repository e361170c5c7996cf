//! The colours of the summary.

/// The style of a text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextStyle {
    Title,
    Passed,
    Failed,
    Source,
    Dots,
    Value,
    Extra,
    LegacyDots,
    LegacyExtra,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) is_coloured: bool,
}

impl Palette {
    pub(super) fn paint(self, look: TextStyle, text: &str) -> String {
        let code = match look {
            TextStyle::Title => "1",
            TextStyle::Passed => "32",
            TextStyle::Failed => "31",
            TextStyle::Source => "37",
            TextStyle::Dots => "2;37",
            TextStyle::Value => "36",
            TextStyle::Extra => "2;36",
            TextStyle::LegacyDots => "2",
            TextStyle::LegacyExtra => "36;2",
        };
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn mark(self, passed: bool) -> String {
        match passed {
            true => self.paint(TextStyle::Passed, "✓"),
            false => self.paint(TextStyle::Failed, "✗"),
        }
    }
}
