//! Losses of a conversion, by kind.

/// Most details named by a warning.
const DETAILS_MAX: usize = 3;

/// Warnings, merged by kind.
#[derive(Debug, Default)]
pub struct Warnings(Vec<WarningKind>);

#[derive(Debug)]
struct WarningKind {
    text: &'static str,
    count: usize,
    details: Vec<String>,
}

impl Warnings {
    /// Counts a warning; `detail` names the affected item.
    pub fn add(&mut self, text: &'static str, detail: &str) {
        let at = self.0.iter().position(|kind| kind.text == text).unwrap_or_else(|| {
            self.0.push(WarningKind { text, count: 0, details: Vec::new() });
            self.0.len() - 1
        });
        let kind = &mut self.0[at];
        kind.count += 1;
        if !detail.is_empty() && !kind.details.iter().any(|known| known == detail) {
            kind.details.push(detail.to_owned());
        }
    }

    /// One sentence per kind, with its count and the first details.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |kind: &WarningKind| {
            let mut details = kind.details.iter().take(DETAILS_MAX).cloned().collect::<Vec<_>>();
            if kind.details.len() > DETAILS_MAX {
                details.push("...".to_owned());
            }
            let details = match details.is_empty() {
                true => String::new(),
                false => format!(" ({})", details.join(", ")),
            };
            format!("{} × {}{details}", kind.count, kind.text)
        };
        self.0.iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_sentence() {
        let mut warnings = Warnings::default();
        for name in ["a", "b", "b", "c", "d"] {
            warnings.add("a thing is lost", name);
        }
        warnings.add("nothing is named", "");
        let expected = ["5 × a thing is lost (a, b, c, ...)", "1 × nothing is named"];
        assert_eq!(warnings.sentences(), expected);
    }
}
