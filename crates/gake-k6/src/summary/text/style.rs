//! Colours of the summary, or none.

/// How a piece of text looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
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

/// Whether there are colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) is_coloured: bool,
}

impl Style {
    /// The text in its look.
    pub(super) fn paint(self, look: Look, text: &str) -> String {
        let code = match look {
            Look::Title => "1",
            Look::Passed => "32",
            Look::Failed => "31",
            Look::Source => "37",
            Look::Dots => "2;37",
            Look::Value => "36",
            Look::Extra => "2;36",
            Look::LegacyDots => "2",
            Look::LegacyExtra => "36;2",
        };
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A mark for what passed or failed.
    pub(super) fn mark(self, passed: bool) -> String {
        match passed {
            true => self.paint(Look::Passed, "✓"),
            false => self.paint(Look::Failed, "✗"),
        }
    }
}
