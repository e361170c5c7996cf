//! Commands of k6 other than `run`. What k6 1.8.1 printed is in `commands/`.

use std::path::{Path, PathBuf};

use crate::common::{Ran, gake, start};

fn k6(args: &[&str], folder: &Path) -> Ran {
    start(gake(&[&["as", "k6"], args].concat()).current_dir(folder)).wait()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6/commands")
}

#[test]
fn inspect_prints_what_k6_prints() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
    let own = k6(&["inspect", "inspected.js"], &folder());
    assert_eq!((own.code, own.stdout.as_str()), (Some(0), read("own.json").as_str()), "{own:?}");
    let required = k6(&["inspect", "--execution-requirements", "inspected.js"], &folder());
    assert_eq!((required.code, required.stdout), (Some(0), read("required.json")));
    let missing = k6(&["inspect", "missing.js"], &folder());
    assert_eq!(missing.code, Some(255), "{missing:?}");
    assert!(missing.stderr.contains("missing.js"), "{missing:?}");
}

#[test]
fn new_scripts_run() {
    let folder = tempfile::tempdir().unwrap();
    for (args, name) in
        [(&["new"][..], "script.js"), (&["new", "--template", "protocol", "p.js"], "p.js")]
    {
        let made = k6(args, folder.path());
        assert_eq!(made.code, Some(0), "{made:?}");
        assert!(made.stdout.starts_with(&format!("New script created: {name} (")), "{made:?}");
        let again = k6(args, folder.path());
        assert!(again.code == Some(255) && again.stderr.contains("--force"), "{again:?}");
        let forced = k6(&[args, &["-f"]].concat(), folder.path());
        assert_eq!(forced.code, Some(0), "{forced:?}");
    }
    let lab = gake_lab::Lab::start(gake_lab::LabConfig::default()).unwrap();
    let url = format!("URL=http://{}/", lab.addr());
    let flags = ["run", "-e", &url, "-i", "1", "-u", "1"];
    for name in ["script.js", "p.js"] {
        let ran = k6(&[&flags[..], &[name]].concat(), folder.path());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    for (args, part) in [
        (&["new", "--template", "nope", "x.js"][..], "invalid template type"),
        (&["new", "--template", "browser", "x.js"], "no browser"),
        (&["new", "a.js", "b.js"], "received 2"),
    ] {
        let refused = k6(args, folder.path());
        assert!(refused.code == Some(255) && refused.stderr.contains(part), "{refused:?}");
    }
}
