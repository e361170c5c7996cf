//! The flags of `gake fleet manifest`.

use clap::Args;

use super::values;

/// A fleet on Kubernetes.
#[derive(Debug, Args)]
pub struct ManifestArgs {
    /// How many agents
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub agents: usize,

    /// The image with gake
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub image: String,

    /// A target that the agents may load: an address, a network as 10.0.0.0/8, or the host of a
    /// URL; may be repeated
    #[arg(long, value_name = "TARGET", required = true, value_parser = target)]
    pub allow: Vec<String>,

    /// Highest rate of each agent; scripts are refused then
    #[arg(long, value_name = "RATE", value_parser = values::finite_rate)]
    pub max_rate: Option<f64>,

    /// Let the agents run scripts too
    #[arg(long)]
    pub scripts: bool,

    /// Cores of each agent
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = values::connections)]
    pub cores: usize,

    /// Memory of each agent, as Kubernetes writes it: 512Mi, 2Gi
    #[arg(long, value_name = "SIZE", default_value = "2Gi", value_parser = quantity)]
    pub memory: String,

    /// The namespace
    #[arg(long, value_name = "NAME", default_value = "gake", value_parser = namespace)]
    pub namespace: String,

    /// The image of the NATS server
    #[arg(long, value_name = "IMAGE", default_value = "nats:2.10-alpine", value_parser = image)]
    pub nats_image: String,
}

/// A target of `--allow`, checked but not changed.
fn target(text: &str) -> Result<String, String> {
    text.parse::<gake_fleet::AllowRule>().map(|_| text.to_owned())
}

fn image(text: &str) -> Result<String, String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_word) {
        true => Ok(text.to_owned()),
        false => Err("write an image as registry.example.org/gake:1.0".to_owned()),
    }
}

/// Maximum length of a namespace.
const NAMESPACE_MAX: usize = 63;

/// A namespace, which is a DNS label.
fn namespace(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_edge = text.starts_with('-') || text.ends_with('-') || text.is_empty();
    match !is_edge && text.len() <= NAMESPACE_MAX && text.bytes().all(is_name) {
        true => Ok(text.to_owned()),
        false => {
            Err("a namespace has lower-case letters and digits, with hyphens between them, 63 \
                      characters at most"
                .to_owned())
        }
    }
}

/// A Kubernetes quantity of memory: a number and a unit.
fn quantity(text: &str) -> Result<String, String> {
    let number = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let units = ["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && number.parse::<f64>().is_ok_and(|number| number > 0.0);
    match is_number && units.contains(&&text[number.len()..]) {
        true => Ok(text.to_owned()),
        false => Err("write a quantity of Kubernetes: 512Mi, 2Gi".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_kubernetes_would_refuse_are_refused() {
        for text in ["512Mi", "2Gi", "1.5G", "1000000"] {
            assert!(quantity(text).is_ok(), "{text}");
        }
        for text in ["", "lots", "Gi", "2GB", "-1Gi", "0", "2 Gi", "1.2.3Gi"] {
            assert!(quantity(text).is_err(), "{text}");
        }
        for text in ["", "X", "a b", "-a", "a-", "a.b", &"a".repeat(64)] {
            assert!(namespace(text).is_err(), "{text}");
        }
        assert!(namespace("load-2").is_ok() && image("example.org:5000/a/gake@sha256:0a").is_ok());
        assert!(image("").is_err() && image("a b").is_err() && image("a\nb").is_err());
    }
}
