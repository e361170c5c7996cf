//! A cache of prepared requests, shared by the users of a worker.

use std::cell::RefCell;
use std::rc::Rc;

use gake_wire::PreparedRequest;
use url::Url;

/// Slots of the cache; on a collision the newer request replaces the older.
const SLOTS: usize = 64;

/// Bytes of the longest cached URL.
const URL_MAX: usize = 4_096;

/// The key of a request without a body.
#[derive(Debug, Clone, Copy)]
pub struct RequestKey<'a> {
    /// The method.
    pub method: &'a str,
    /// The URL, as the script wrote it.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a [(String, String)],
}

/// A cached request.
#[derive(Debug)]
pub struct CachedRequest {
    method: String,
    text: String,
    headers: Vec<(String, String)>,
    /// Its parsed URL.
    pub url: Rc<Url>,
    /// The bytes to send.
    pub prepared: Rc<PreparedRequest>,
}

impl CachedRequest {
    /// The cache entry of `key`.
    #[must_use]
    pub fn new(key: &RequestKey<'_>, url: Rc<Url>, prepared: Rc<PreparedRequest>) -> Self {
        let (method, text) = (key.method.to_owned(), key.url.to_owned());
        Self { method, text, headers: key.headers.to_vec(), url, prepared }
    }
}

/// The cached requests of a worker's users, bounded in number and size.
#[derive(Debug, Default)]
pub struct RequestCache(RefCell<Vec<Option<Rc<CachedRequest>>>>);

impl RequestCache {
    /// The cached request of a key.
    #[must_use]
    pub fn get(&self, key: &RequestKey<'_>) -> Option<Rc<CachedRequest>> {
        let slots = self.0.borrow();
        let cached = slots.get(slot(key.url))?.as_ref()?;
        let is_hit = cached.text == key.url
            && cached.method == key.method
            && cached.headers.as_slice() == key.headers;
        is_hit.then(|| Rc::clone(cached))
    }

    /// Caches a request, unless its URL is too long.
    pub fn put(&self, request: CachedRequest) {
        if request.text.len() > URL_MAX {
            return;
        }
        let mut slots = self.0.borrow_mut();
        if slots.is_empty() {
            slots.resize_with(SLOTS, || None);
        }
        let slot = slot(&request.text);
        slots[slot] = Some(Rc::new(request));
    }
}

/// The slot of a URL: FNV-1a of its bytes.
fn slot(url: &str) -> usize {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = url.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as usize % SLOTS
}
