//! The order of names for people: `alpha`, `Beta`, `zeta`, as JavaScript's `localeCompare` has it.

use std::cmp::Ordering;

/// ASCII from the first character to the last; letters of both cases are equal unless nothing else
/// decides. Other characters follow, by number.
const ORDER: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";

/// How two texts are ordered.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let letters = |text: &str| text.chars().map(place).collect::<Vec<_>>();
    let cases = |text: &str| text.chars().map(|c| c.is_ascii_uppercase()).collect::<Vec<_>>();
    letters(a).cmp(&letters(b)).then_with(|| cases(a).cmp(&cases(b)))
}

/// How the names of two metrics are ordered: sub-metrics follow their metric.
pub(super) fn compare_metrics(a: &str, b: &str) -> Ordering {
    let parts = |name: &'_ str| {
        let at = name.find('{').unwrap_or(name.len());
        (name[..at].to_owned(), name[at..].to_owned())
    };
    let ((a, a_tags), (b, b_tags)) = (parts(a), parts(b));
    compare(&a, &b).then_with(|| compare(&a_tags, &b_tags))
}

fn place(c: char) -> usize {
    let known = ORDER.find(c.to_ascii_lowercase());
    known.unwrap_or(ORDER.len() + u32::from(c) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut names: Vec<&str>) -> Vec<&str> {
        names.sort_by(|a, b| compare_metrics(a, b));
        names
    }

    #[test]
    fn case_decides_last() {
        let names = vec!["Zeta", "my_a", "alpha", "Beta", "myA", "aB", "ab", "aBc", "abd"];
        assert_eq!(
            sorted(names),
            ["ab", "aB", "aBc", "abd", "alpha", "Beta", "my_a", "myA", "Zeta"]
        );
    }

    #[test]
    fn sub_metrics_follow_their_metric() {
        let names = vec!["a_b", "a{name:GET /x}", "a", "a{status:200}", "a{name:a}", "a1"];
        assert_eq!(
            sorted(names),
            ["a", "a{name:a}", "a{name:GET /x}", "a{status:200}", "a_b", "a1"]
        );
    }
}
