//! The value of `Date`, cached per second.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An IMF-fixdate, which has a fixed length.
pub(crate) type DateBytes = [u8; 29];

#[derive(Debug)]
pub(crate) struct DateCache(RefCell<(u64, DateBytes)>);

impl DateCache {
    pub(crate) fn new() -> Self {
        Self(RefCell::new((0, bytes(0))))
    }

    pub(crate) fn now(&self) -> DateBytes {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut last = self.0.borrow_mut();
        if last.0 != now {
            *last = (now, bytes(now));
        }
        last.1
    }
}

fn bytes(seconds: u64) -> DateBytes {
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    text.as_bytes().try_into().unwrap_or(*b"Thu, 01 Jan 1970 00:00:00 GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_the_one_of_rfc_9110() {
        assert_eq!(&bytes(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
