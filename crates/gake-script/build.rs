//! Bundles the program that strips types from TypeScript into the crate.

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
}
