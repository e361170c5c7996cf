//! Scripts from requests in other formats: a HAR, a curl command, a Postman collection, an
//! OpenAPI description.

mod curl;
mod har;
mod openapi;
mod postman;
mod script;

use serde_json::Value;

pub use script::script;

/// A request of a script, and the expected status of its response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConvertedRequest {
    /// The method.
    pub method: String,
    /// The URL. The script takes the values of `{{name}}`, here and below, from `__ENV`.
    pub url: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<String>,
    /// The status that the response had or should have.
    pub status: Option<u16>,
    /// Notes for the user, in sentences.
    pub remarks: Vec<String>,
}

/// Why nothing can be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The format is unknown.
    #[error("not a HAR, curl command, Postman collection or OpenAPI description")]
    Unknown,
    /// It has no request that a script could send.
    #[error("there is no HTTP request in it")]
    Empty,
    /// A curl flag that a script cannot honour.
    #[error("the flag {0} of curl cannot be converted")]
    Flag(String),
    /// A curl flag lacks its value, or a quote is not closed.
    #[error("the curl command ends too early")]
    CutShort,
}

/// The requests of a text in any supported format.
///
/// # Errors
/// When the format is unknown, or there is no request.
pub fn requests(text: &str) -> Result<Vec<ConvertedRequest>, ConvertError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let requests = if text.split_whitespace().next() == Some("curl") {
        vec![curl::request(text)?]
    } else {
        let value: Value = serde_json::from_str(text)
            .or_else(|_| serde_saphyr::from_str(text).map_err(|_| ConvertError::Unknown))?;
        if value.pointer("/log/entries").is_some() {
            har::requests(&value)
        } else if value.get("info").is_some() && value.get("item").is_some() {
            postman::requests(&value)
        } else if value.get("openapi").is_some() || value.get("swagger").is_some() {
            openapi::requests(&value)
        } else {
            return Err(ConvertError::Unknown);
        }
    };
    if requests.is_empty() { Err(ConvertError::Empty) } else { Ok(requests) }
}

/// Headers that the client makes itself.
fn is_own_header(name: &str) -> bool {
    let own = ["host", "connection", "content-length", "accept-encoding", "transfer-encoding"];
    name.starts_with(':') || own.iter().any(|one| name.eq_ignore_ascii_case(one))
}
