//! The answers to servers that ask who sends a request.

use std::rc::Rc;

use url::Url;

use super::digest::Credentials;
use super::ntlm;
use super::response_facts::ResponseFacts;
use super::script_request::Authentication;

/// Answers that an exchange of NTLM takes.
const NTLM_RESPONSES: u32 = 2;

/// The header of a challenge.
const CHALLENGE: &str = "www-authenticate";

/// The login of one request.
pub(super) struct Login {
    authentication: Authentication,
    credentials: Option<Credentials>,
    /// Whose credentials they are: no other server gets an answer.
    host: Option<String>,
    /// Challenges that were answered.
    responses: u32,
}

impl Login {
    /// Takes the credentials out of the URL where the server must not get them at once.
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

    /// The next hop begins. NTLM proves a connection, which may be another one there.
    pub(super) fn next_hop(&mut self) {
        if self.authentication == Authentication::Ntlm {
            self.responses = 0;
        }
    }

    /// Whether a 401 is expected as a challenge. k6 expects one of every request with NTLM.
    pub(super) fn may_be_challenged(&self) -> bool {
        match self.authentication {
            Authentication::Basic => false,
            Authentication::Digest => self.credentials.is_some() && self.responses == 0,
            Authentication::Ntlm => true,
        }
    }

    /// The value of `Authorization` that answers a response, if it is a challenge.
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

/// All that a server offers: some name each scheme in a header of its own.
fn offers(response: &ResponseFacts) -> String {
    let offers = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(CHALLENGE));
    offers.map(|(_, offer)| offer).collect::<Vec<_>>().join(", ")
}
