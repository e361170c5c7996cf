//! Bundles the program that strips types from TypeScript into the crate, and finds out which QuickJS
//! it is built with.

mod node;

use node::WebFile;

fn main() {
    // An empty file: TypeScript is refused (src/typescript.rs).
    let stripper = WebFile {
        what: "TypeScript for scripts",
        folder: "typescript",
        sources: &["package.json", "package-lock.json", "bundle.js", "strip.js"],
        tools: &[("bundle.js", &[])],
        built: "typescript.js.gz",
        name: "typescript.js.gz",
        ready: "GAKE_TYPESCRIPT_DIST",
    };
    stripper.embed();
    find_quickjs();
}

/// Sets `patched_quickjs` if QuickJS is the one of `vendor/`, which says so to its dependents.
/// `GAKE_QUICKJS=published` compiles for the published one all the same, to check that code.
fn find_quickjs() {
    println!("cargo::rerun-if-env-changed=GAKE_QUICKJS");
    println!("cargo::rustc-check-cfg=cfg(patched_quickjs)");
    let is_published = std::env::var("GAKE_QUICKJS").is_ok_and(|which| which == "published");
    if std::env::var_os("DEP_QUICKJS_PATCHED").is_some() && !is_published {
        println!("cargo::rustc-cfg=patched_quickjs");
    }
}
