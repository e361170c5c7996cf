//! The flags of the live page.

use clap::Args;

/// The default address, with the port of k6's dashboard.
const ADDRESS: &str = "127.0.0.1:5665";

/// The live page.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct WebArgs {
    /// Serve the run as a live page that becomes its report, at 127.0.0.1:5665 or another address
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ADDRESS,
        value_parser = address
    )]
    pub web: Option<String>,

    /// Open that page in a browser
    #[arg(long)]
    pub web_open: bool,

    /// Let viewers whose URL has the token stop the run and change its rate
    #[arg(long)]
    pub web_control: bool,
}

impl WebArgs {
    /// The address of the page; `None` if it is not served.
    pub fn address(&self) -> Option<&str> {
        let is_implied = self.web_open || self.web_control;
        self.web.as_deref().or(is_implied.then_some(ADDRESS))
    }
}

/// Parses an address to listen at: HOST:PORT, HOST, :PORT or PORT.
fn address(text: &str) -> Result<String, String> {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let (host, port) = match text.rsplit_once(':') {
        _ if text.ends_with(']') => (text, "5665"),
        Some((host, port)) => (host, port),
        None if is_port(text) => ("", text),
        None => (text, "5665"),
    };
    if text.is_empty() || !is_port(port) || (host.contains(':') && !host.starts_with('[')) {
        return Err("it is not an address such as 127.0.0.1:5665".to_owned());
    }
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_loopback_and_k6s_port() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            (":80", "127.0.0.1:80"),
            ("80", "127.0.0.1:80"),
            ("loadgen", "loadgen:5665"),
            ("[::1]", "[::1]:5665"),
            ("[::1]:0", "[::1]:0"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(expected));
        }
        for text in ["", ":", "a:b", "::1", "127.0.0.1:99999", "http://h:80/"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
