//! The flags of `gake convert`.

use clap::Args;

/// Make a k6 script from a HAR file, a curl command, a Postman collection or an OpenAPI
/// description.
///
/// The script sends the requests in order and checks the status of each response. It
/// goes to standard output; `gake as k6 run` and k6 run it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake convert session.har > script.js          what a browser did
  gake convert 'curl http://h/ -H a:b'          \"Copy as cURL\" of a browser
  gake convert shop.postman_collection.json     {{name}} becomes __ENV.name: -e name=value
  gake convert openapi.yaml                     each operation; no server: -e BASE_URL=URL")]
pub struct ConvertRequestsArgs {
    /// A file, or a curl command in one argument; - is standard input
    #[arg(value_name = "FILE|COMMAND")]
    pub input: String,
}
