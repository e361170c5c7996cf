//! Paths of scripts and what they read.

use std::path::{Component, Path, PathBuf};

/// What names of modules in files begin with.
pub(crate) const FILE: &str = "file://";

/// The folder of a module, by its name.
pub(crate) fn folder(module: &str) -> PathBuf {
    let path = Path::new(module.strip_prefix(FILE).unwrap_or("/"));
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// A path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

/// A path without the name of the user in whose home it is.
pub(crate) fn anonymous(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let home = (parts.next(), parts.next(), parts.next());
    match home {
        (Some(root), Some(homes), Some(_))
            if ["home", "Users"].iter().any(|name| homes.as_os_str() == *name) =>
        {
            let mut anonymous = PathBuf::from(root.as_os_str());
            anonymous.extend([homes.as_os_str(), "nobody".as_ref()]);
            anonymous.extend(parts);
            anonymous
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(normal(Path::new("/a/./b/../c.js")), Path::new("/a/c.js"));
        assert_eq!(normal(Path::new("/../x")), Path::new("/x"));
        assert_eq!(folder("file:///a/b.js"), Path::new("/a"));
    }

    #[test]
    fn paths_lose_the_names_of_users() {
        assert_eq!(anonymous(Path::new("/home/ada/a.js")), Path::new("/home/nobody/a.js"));
        assert_eq!(anonymous(Path::new("/home")), Path::new("/home"));
        assert_eq!(anonymous(Path::new("/srv/home/ada")), Path::new("/srv/home/ada"));
    }
}
