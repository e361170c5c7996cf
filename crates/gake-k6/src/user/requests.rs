//! Requests that the users of a worker send again as they are: neither parsed nor rendered anew.

use std::cell::RefCell;
use std::rc::Rc;

use gake_wire::PreparedRequest;
use url::Url;

/// Requests that are remembered; one whose place is taken takes it over.
const PLACES: usize = 64;

/// Bytes of a URL that is remembered.
const URL_MAX: usize = 4_096;

/// What a request without a body says: method, URL as it was written, headers.
#[derive(Debug, Clone, Copy)]
pub struct RequestKey<'a> {
    /// The method.
    pub method: &'a str,
    /// The URL, as the script wrote it.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a [(String, String)],
}

/// A request that was sent before.
#[derive(Debug)]
pub struct KnownRequest {
    method: String,
    text: String,
    headers: Vec<(String, String)>,
    /// Its URL.
    pub url: Rc<Url>,
    /// What is sent.
    pub prepared: Rc<PreparedRequest>,
}

impl KnownRequest {
    /// What was prepared for `key`.
    #[must_use]
    pub fn new(key: &RequestKey<'_>, url: Rc<Url>, prepared: Rc<PreparedRequest>) -> Self {
        let (method, text) = (key.method.to_owned(), key.url.to_owned());
        Self { method, text, headers: key.headers.to_vec(), url, prepared }
    }
}

/// The requests of a worker's users, bounded in number and size.
#[derive(Debug, Default)]
pub struct RequestCache(RefCell<Vec<Option<Rc<KnownRequest>>>>);

impl RequestCache {
    /// The request of a key, if it is remembered.
    #[must_use]
    pub fn get(&self, key: &RequestKey<'_>) -> Option<Rc<KnownRequest>> {
        let places = self.0.borrow();
        let known = places.get(place(key.url))?.as_ref()?;
        let is_it = known.text == key.url
            && known.method == key.method
            && known.headers.as_slice() == key.headers;
        is_it.then(|| Rc::clone(known))
    }

    /// Remembers a request.
    pub fn put(&self, known: KnownRequest) {
        if known.text.len() > URL_MAX {
            return;
        }
        let mut places = self.0.borrow_mut();
        if places.is_empty() {
            places.resize_with(PLACES, || None);
        }
        let place = place(&known.text);
        places[place] = Some(Rc::new(known));
    }
}

/// The place of a URL: FNV-1a over its bytes.
fn place(url: &str) -> usize {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = url.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as usize % PLACES
}
