//! Time that the hypervisor took from this machine's cores while they had work.

use std::fs;

use anyhow::{Context, Result};

/// A tick of the figures in `/proc/stat`, in milliseconds (`USER_HZ` is 100 on every platform
/// that Linux supports).
const TICK_MS: f64 = 10.0;
/// `steal` is the eighth figure of the line.
const COLUMN: usize = 8;

/// All that was taken since the machine started, from all cores, in milliseconds.
pub fn milliseconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/stat").context("/proc/stat could not be read")?;
    of(&text).context("/proc/stat has no figure for stolen time")
}

fn of(text: &str) -> Option<f64> {
    let all = text.lines().find(|line| line.starts_with("cpu "))?;
    Some(all.split_whitespace().nth(COLUMN)?.parse::<f64>().ok()? * TICK_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_figure_of_all_cores() {
        let text = "cpu  10 2 3 4 5 6 7 88 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(of(text), Some(880.0));
        assert_eq!(of("intr 1 2 3\n"), None);
    }
}
