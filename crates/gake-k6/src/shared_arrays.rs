//! The arrays that all users of a process share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Arrays by name, with their elements as JSON.
#[derive(Debug, Default)]
pub struct SharedArrays(Mutex<HeldArrays>);

#[derive(Debug, Default)]
struct HeldArrays {
    by_name: HashMap<String, Arc<[String]>>,
    bytes: u64,
}

impl SharedArrays {
    /// An array, if it exists.
    pub fn get(&self, name: &str) -> Option<Arc<[String]>> {
        self.lock().by_name.get(name).cloned()
    }

    /// Stores an array; the first caller wins.
    ///
    /// # Errors
    /// When all of them would take more than `bound` bytes.
    pub fn keep(
        &self,
        name: &str,
        elements: Vec<String>,
        bound: u64,
    ) -> Result<Arc<[String]>, String> {
        let mut arrays = self.lock();
        if let Some(known) = arrays.by_name.get(name) {
            return Ok(Arc::clone(known));
        }
        let bytes = elements.iter().map(|text| (text.len() + size_of::<String>()) as u64);
        let bytes = arrays.bytes.saturating_add(bytes.sum());
        if bytes > bound {
            return Err(format!(
                "no memory for the shared array: all of them may take {bound} bytes (--body-memory)"
            ));
        }
        arrays.bytes = bytes;
        let elements: Arc<[String]> = elements.into();
        arrays.by_name.insert(name.to_owned(), Arc::clone(&elements));
        Ok(elements)
    }

    fn lock(&self) -> MutexGuard<'_, HeldArrays> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arrays_together_have_a_bound() {
        let (arrays, bound) = (SharedArrays::default(), 3_000);
        let kept = arrays.keep("a", vec!["x".repeat(2_000)], bound).unwrap();
        assert_eq!(arrays.keep("a", Vec::new(), bound).unwrap(), kept);
        assert!(arrays.keep("b", vec!["x".repeat(2_000)], bound).unwrap_err().contains("3000"));
        assert!(arrays.keep("b", vec!["x".repeat(500)], bound).is_ok());
        assert!(arrays.get("b").is_some() && arrays.get("c").is_none());
    }
}
