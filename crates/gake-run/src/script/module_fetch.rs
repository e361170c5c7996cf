//! Modules that scripts import from the network: fetched once, then read from a cache.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gake_core::record::Fault;
use gake_k6::files::{FetchModule, FetchedModule};
use gake_wire::lookup;
use gake_wire::{HttpRequest, ProxyRules};
use url::Url;

use super::module_lock::{ModuleLock, hash};
use crate::single_request::{SendError, send_once};

/// Time limit for fetching a module.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size of a module, in bytes.
const BYTES_MAX: usize = 8 << 20;

/// Maximum number of redirects.
const REDIRECTS_MAX: u32 = 10;

/// A pin in the fragment of a URL: `#sha256=` and 64 hexadecimal digits.
const PIN: &str = "sha256=";

/// Fetches modules, through `proxy` if there is one, and caches them in `folder`. With a lock, only
/// those that it has.
#[must_use]
pub fn fetcher(
    folder: Option<PathBuf>,
    proxy: Option<ProxyRules>,
    lock: Option<ModuleLock>,
) -> FetchModule {
    Arc::new(move |url| {
        module(url, folder.as_deref(), lock.as_ref(), |url| download(url, proxy.as_ref()))
    })
}

/// Returns the module from the cache, or downloads it.
fn module(
    url: &str,
    folder: Option<&Path>,
    lock: Option<&ModuleLock>,
    download: impl FnOnce(&str) -> Result<Vec<u8>, String>,
) -> Result<FetchedModule, String> {
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let pin = fragment.strip_prefix(PIN).map(str::to_ascii_lowercase);
    let is_hash = |pin: &String| pin.len() == 64 && pin.bytes().all(|b| b.is_ascii_hexdigit());
    if fragment.to_ascii_lowercase().starts_with("sha") && !pin.as_ref().is_some_and(is_hash) {
        return Err(format!("#{fragment} is not a pin: write #{PIN} and 64 hexadecimal digits"));
    }
    let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
    if authority.is_some_and(|authority| authority.contains('@')) {
        return Err("the URL of a module must not contain a user and password".to_owned());
    }
    let lock = lock.map(|lock| Ok::<_, String>((lock, lock.hash_of(url)?))).transpose()?;
    let pin = pin.as_deref().or(lock.map(|(_, hash)| hash));
    let path = folder.map(|folder| folder.join(format!("{}.js", hash(url.as_bytes()))));
    let cached =
        path.as_deref().and_then(|path| gake_files::read(path, "a module", BYTES_MAX as u64).ok());
    if let Some(text) = cached.filter(|text| pin.is_none_or(|pin| hash(text) == pin)) {
        return Ok(FetchedModule { text, note: None });
    }
    let text = download(url)?;
    let hash = hash(&text);
    if let Some((lock, locked)) = lock.filter(|(_, locked)| *locked != hash) {
        return Err(lock.changed(&hash, locked));
    }
    if let Some(pin) = pin.filter(|pin| *pin != hash) {
        return Err(format!("its SHA-256 is {hash}, not {pin}: change the URL to trust it"));
    }
    let cached = match path.as_deref().map(|path| (path, keep(path, &text))) {
        Some((path, Ok(()))) => format!("later runs use {}", path.display()),
        Some((path, Err(error))) => format!("it cannot be cached as {}: {error}", path.display()),
        None => "it is not cached".to_owned(),
    };
    let note = Some(format!("fetched {url}#{PIN}{hash}; {cached}"));
    Ok(FetchedModule { text, note })
}

fn keep(path: &Path, text: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        gake_files::create_folder(folder)?;
    }
    gake_files::replace(path, gake_files::Access::Owner, |file| file.write_all(text))
}

fn download(url: &str, proxy: Option<&ProxyRules>) -> Result<Vec<u8>, String> {
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        match hop(&url, proxy)? {
            ModuleResponse::Module(text) => return Ok(text),
            ModuleResponse::Redirect(to) => url = redirected(&url, &to)?,
        }
    }
    Err(format!("it is redirected more than {REDIRECTS_MAX} times"))
}

/// The response to one request.
enum ModuleResponse {
    Module(Vec<u8>),
    /// The location.
    Redirect(String),
}

/// Sends one request. The client does not follow redirects, since it would follow them to plain
/// HTTP.
fn hop(url: &str, proxy: Option<&ProxyRules>) -> Result<ModuleResponse, String> {
    let agent = ("User-Agent".to_owned(), concat!("gake/", env!("CARGO_PKG_VERSION")).to_owned());
    let get = HttpRequest { headers: vec![agent], ..HttpRequest::new("GET", url) };
    let response =
        send_once(&get, proxy, BYTES_MAX, TIMEOUT).map_err(|error| go_text(url, &error))?;
    let location = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
    match (response.status, location) {
        (301 | 302 | 303 | 307 | 308, Some((_, to))) => Ok(ModuleResponse::Redirect(to.clone())),
        (200..=299, _) if !response.is_whole => {
            Err(format!("it is larger than {} MiB", BYTES_MAX >> 20))
        }
        (200..=299, _) => Ok(ModuleResponse::Module(response.body)),
        (404, _) => Err(format!("not found: {url}")),
        (status, _) => Err(format!("wrong status code ({status}) for: {url}")),
    }
}

/// Why a module cannot be fetched, as Go writes it.
fn go_text(url: &str, error: &SendError) -> String {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or_default();
    let port = parsed.as_ref().and_then(Url::port_or_known_default).unwrap_or_default();
    let why = match error {
        SendError::Unresolved(_) => format!("dial tcp: {}", lookup::error(host).text),
        SendError::Fault(Fault::ConnectRefused) => {
            format!("dial tcp {host}:{port}: connect: connection refused")
        }
        SendError::Fault(Fault::ConnectTimeout) => format!("dial tcp {host}:{port}: i/o timeout"),
        SendError::Fault(Fault::Tls(reason)) => gake_wire::fault::go_tls_error(reason),
        SendError::Fault(fault) => fault.to_string(),
        SendError::Other(why) => why.clone(),
    };
    format!("Get \"{url}\": {why}")
}

/// Resolves a redirect, which must lead to https.
fn redirected(from: &str, to: &str) -> Result<String, String> {
    let url = Url::parse(from).and_then(|from| from.join(to));
    let url = url.map_err(|error| format!("it is redirected to {to:?}: {error}"))?;
    match url.scheme() {
        "https" => Ok(url.into()),
        _ => Err(format!("it is redirected to {url}, which is not encrypted")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.test/x.js";

    #[test]
    fn a_module_is_fetched_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Some(folder.path().join("modules"));
        let first = module(URL, folder.as_deref(), None, |_| Ok(b"1".to_vec())).unwrap();
        let note = first.note.unwrap();
        assert!(first.text == b"1" && note.contains(&hash(b"1")) && note.contains("later"));
        let again = module(URL, folder.as_deref(), None, |_| panic!("fetched again")).unwrap();
        assert_eq!((again.text, again.note), (b"1".to_vec(), None));
        let cannot = |_: &str| Err("no network".to_owned());
        assert_eq!(
            module("https://a.test/y.js", folder.as_deref(), None, cannot).unwrap_err(),
            "no network"
        );
    }

    #[test]
    fn a_redirect_stays_encrypted() {
        assert_eq!(redirected(URL, "/y.js").unwrap(), "https://a.test/y.js");
        assert_eq!(redirected(URL, "//b.test/y.js").unwrap(), "https://b.test/y.js");
        for to in ["http://a.test/x.js", "ftp://a.test/x.js", "file:///etc/passwd", "http://"] {
            assert!(redirected(URL, to).is_err(), "{to}");
        }
        let refused = redirected(URL, "http://a.test/x.js").unwrap_err();
        assert!(refused.contains("http://a.test/x.js, which is not encrypted"), "{refused}");
    }

    #[test]
    fn a_pinned_module_is_what_the_pin_says() {
        let folder = tempfile::tempdir().unwrap();
        let pinned = |text: &[u8]| format!("{URL}#{PIN}{}", hash(text));
        let fetch = |url: &str, text: &[u8]| {
            module(url, Some(folder.path()), None, |url| {
                assert_eq!(url, URL);
                Ok(text.to_vec())
            })
        };
        assert!(fetch(&pinned(b"1"), b"2").unwrap_err().contains(&hash(b"2")));
        assert_eq!(fetch(&pinned(b"2"), b"2").unwrap().text, b"2");
        // The cached module no longer matches the pin.
        assert_eq!(fetch(&pinned(b"3"), b"3").unwrap().text, b"3");
        assert_eq!(fetch(URL, b"4").unwrap().text, b"3");
    }

    #[test]
    fn a_locked_module_is_what_the_lock_says() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s.js").display().to_string();
        let write = |text: &[u8]| {
            let line = format!("{}  {URL}\n", hash(text));
            std::fs::write(ModuleLock::path(&script), line).unwrap();
            ModuleLock::read(&script).unwrap()
        };
        let cache = folder.path().join("cache");
        let fetch = |lock: &Option<ModuleLock>, url: &str, text: Result<&[u8], &str>| {
            let text = text.map(<[u8]>::to_vec).map_err(str::to_owned);
            module(url, Some(&cache), lock.as_ref(), |_| text).map(|module| module.text)
        };
        let lock = write(b"1");
        let changed = fetch(&lock, URL, Ok(b"2")).unwrap_err();
        assert!(changed.contains("has changed") && changed.contains(&hash(b"2")), "{changed}");
        assert_eq!(fetch(&lock, URL, Ok(b"1")).unwrap(), b"1");
        // From now on it needs no network.
        assert_eq!(fetch(&lock, URL, Err("no network")).unwrap(), b"1");
        let other = fetch(&lock, "https://a.test/y.js", Ok(b"1")).unwrap_err();
        assert!(other.contains("is not in") && other.contains("deps --lock"), "{other}");
        // What is cached no longer fits.
        assert_eq!(fetch(&write(b"3"), URL, Err("no network")).unwrap_err(), "no network");
    }
}
