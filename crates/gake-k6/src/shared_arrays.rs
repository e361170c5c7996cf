//! The arrays that all users of a process share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Arrays by name, with their elements as JSON.
#[derive(Debug, Default)]
pub struct SharedArrays(Mutex<HashMap<String, Arc<[String]>>>);

impl SharedArrays {
    /// An array, if it exists.
    pub fn get(&self, name: &str) -> Option<Arc<[String]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
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
        let mut arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = arrays.get(name) {
            return Ok(Arc::clone(known));
        }
        let bytes = |text: &String| (text.len() + size_of::<String>()) as u64;
        let held: u64 = arrays.values().flat_map(|elements| elements.iter()).map(bytes).sum();
        if held.saturating_add(elements.iter().map(bytes).sum()) > bound {
            return Err(format!(
                "no memory for the shared array: all of them may take {bound} bytes (--body-memory)"
            ));
        }
        let elements: Arc<[String]> = elements.into();
        arrays.insert(name.to_owned(), Arc::clone(&elements));
        Ok(elements)
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
