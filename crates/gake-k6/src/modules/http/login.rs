//! Responds to authentication challenges.

use std::rc::Rc;

use url::Url;

use super::digest::Credentials;
use super::ntlm;
use super::response_facts::ResponseFacts;
use super::script_request::Authentication;

/// Messages of the client in an NTLM handshake.
const NTLM_RESPONSES: u32 = 2;

const CHALLENGE: &str = "www-authenticate";

/// The authentication state of one request.
pub(super) struct Login {
    authentication: Authentication,
    credentials: Option<Credentials>,
    /// The credentials are never sent to another host.
    host: Option<String>,
    /// The number of responses to challenges.
    responses: u32,
}

impl Login {
    /// Takes the credentials out of the URL, unless they are sent preemptively.
    pub(super) fn new(authentication: Authentication, url: &mut Rc<Url>) -> Self {
        let credentials = match authentication {
            Authentication::Basic => None,
            Authentication::Digest | Authentication::Ntlm => {
                Credentials::taken_from(Rc::make_mut(url))
            }
        };
        let host = credentials.as_ref().and_then(|_| url.host_str().map(str::to_owned));
        Self { authentication, credentials, host, responses: 0 }
    }

    /// Whether the first request has the credentials as basic authentication, as k6's Digest has.
    pub(super) fn preemptive(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        (self.authentication == Authentication::Digest).then(|| credentials.basic())
    }

    /// Begins the next hop. NTLM authenticates a connection, which may be another one.
    pub(super) fn next_hop(&mut self) {
        if self.authentication == Authentication::Ntlm {
            self.responses = 0;
        }
    }

    /// Whether a status is expected, where that is not for the script to say: as in k6, Digest
    /// expects a challenge first, and NTLM takes one at any time.
    pub(super) fn judge(&self, status: u16) -> Option<bool> {
        match self.authentication {
            Authentication::Digest if self.responses == 0 => Some(status == 401),
            Authentication::Ntlm if status == 401 => Some(true),
            _ => None,
        }
    }

    /// The `Authorization` header for a response, if it is a challenge.
    pub(super) fn respond(
        &mut self,
        response: &ResponseFacts,
        method: &str,
        url: &Url,
    ) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        if response.status != 401 || url.host_str() != self.host.as_deref() {
            return None;
        }
        let is_first = self.responses == 0;
        let header = match self.authentication {
            Authentication::Basic => None,
            Authentication::Digest if is_first => {
                credentials.respond(response.header(CHALLENGE)?, method, url)
            }
            Authentication::Ntlm if self.responses < NTLM_RESPONSES => {
                ntlm::respond(credentials, &offers(response), is_first)
            }
            Authentication::Digest | Authentication::Ntlm => None,
        };
        self.responses += 1;
        header
    }
}

/// All schemes that a server offers: some servers use a header for each.
fn offers(response: &ResponseFacts) -> String {
    let offers = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(CHALLENGE));
    offers.map(|(_, offer)| offer).collect::<Vec<_>>().join(", ")
}
