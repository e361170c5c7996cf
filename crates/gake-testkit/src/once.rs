//! What many tests need and one makes: each test is a process of its own, and several run at once.

use std::fs::{self, File};
use std::path::Path;

/// Does something while no other test does it: `lock` is the path of a file that need not be there.
pub fn locked<T>(lock: &Path, make: impl FnOnce() -> T) -> T {
    if let Some(folder) = lock.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    let file = File::create(lock).unwrap();
    file.lock().unwrap();
    // The lock ends with the file, or with the process.
    make()
}

/// Makes something unless it was made of the same `source`, which the file at `stamp` then holds.
pub fn once(stamp: &Path, source: &[u8], make: impl FnOnce()) {
    locked(&stamp.with_extension("lock"), || {
        if fs::read(stamp).is_ok_and(|made_of| made_of == source) {
            return;
        }
        make();
        fs::write(stamp, source).unwrap();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_again_when_its_source_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("new/stamp");
        let mut made = Vec::new();
        for source in ["a", "a", "b", "b"] {
            once(&stamp, source.as_bytes(), || made.push(source));
        }
        assert_eq!(made, ["a", "b"]);
    }
}
