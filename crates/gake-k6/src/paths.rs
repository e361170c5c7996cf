//! Paths of scripts, modules and data files.

use std::path::{Component, Path, PathBuf};

use url::Url;

/// The scheme of local modules.
pub(crate) const FILE: &str = "file://";

/// The folder of a module.
pub(crate) fn folder(module: &str) -> PathBuf {
    let path = Path::new(module.strip_prefix(FILE).unwrap_or("/"));
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// The absolute path of the relative URL `name`, imported by a module in `folder`.
pub(crate) fn imported(folder: &Path, name: &str) -> PathBuf {
    let escaped = || {
        let folder = Url::from_directory_path(folder).ok()?;
        folder.join(name).ok()?.to_file_path().ok()
    };
    let path = if name.contains('%') { escaped() } else { None };
    normal(&path.unwrap_or_else(|| folder.join(name)))
}

/// The URL of a file, with escapes.
pub(crate) fn file_url(path: &Path) -> String {
    let url = Url::from_file_path(path).map(String::from);
    url.unwrap_or_else(|()| format!("{FILE}{}", path.display()))
}

/// The path of a `file://` URL or path.
pub(crate) fn file_path(text: &str) -> PathBuf {
    let url = text.strip_prefix(FILE).and_then(|_| Url::parse(text).ok()?.to_file_path().ok());
    normal(&url.unwrap_or_else(|| Path::new("/").join(text.strip_prefix(FILE).unwrap_or(text))))
}

/// `import.meta.resolve(name)` of a module.
///
/// # Errors
/// For names that cannot be imported, in k6's words.
pub(crate) fn resolved(module: &str, name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("require() can't be used with an empty specifier".to_owned());
    }
    let unknown =
        || format!("The moduleSpecifier {name:?} couldn't be recognised as something k6 supports.");
    if name.starts_with(['.', '/']) {
        let url = Url::parse(module).and_then(|module| module.join(name));
        return url.map(String::from).map_err(|_| unknown());
    }
    match Url::parse(name).map_err(|_| unknown())?.scheme() {
        "file" | "https" => Ok(name.to_owned()),
        scheme => Err(format!(
            "only supported schemes for imports are file and https, {name} has `{scheme}`"
        )),
    }
}

/// A path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            component => normal.push(component),
        }
    }
    normal
}

/// A path without the name of its home folder's owner.
pub(crate) fn anonymous(path: &Path) -> PathBuf {
    let mut components = path.components();
    let home = (components.next(), components.next(), components.next());
    match home {
        (Some(root), Some(homes), Some(_))
            if ["home", "Users"].iter().any(|name| homes.as_os_str() == *name) =>
        {
            let mut anonymous = PathBuf::from(root.as_os_str());
            anonymous.extend([homes.as_os_str(), "nobody".as_ref()]);
            anonymous.extend(components);
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
    fn urls_of_files_have_escapes() {
        let path = Path::new("/a b/100%/ä%41.js");
        assert_eq!(file_url(path), "file:///a%20b/100%25/%C3%A4%2541.js");
        assert_eq!(file_path(&file_url(path)), path);
        assert_eq!(file_path("file:///a b/c.js"), Path::new("/a b/c.js"));
        assert_eq!(file_path("/a%20b.js"), Path::new("/a%20b.js"));
        for (name, expected) in [
            ("./b%20c.js", "/x y/b c.js"),
            ("../b c.js", "/b c.js"),
            ("/d%25.js", "/d%.js"),
            ("./b%.js", "/x y/b%.js"),
        ] {
            assert_eq!(imported(Path::new("/x y"), name), Path::new(expected), "{name}");
        }
    }

    #[test]
    fn paths_lose_the_names_of_users() {
        assert_eq!(anonymous(Path::new("/home/ada/a.js")), Path::new("/home/nobody/a.js"));
        assert_eq!(anonymous(Path::new("/home")), Path::new("/home"));
        assert_eq!(anonymous(Path::new("/srv/home/ada")), Path::new("/srv/home/ada"));
    }
}
