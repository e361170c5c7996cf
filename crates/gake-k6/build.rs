//! Builds what strips types from TypeScript, so that the binary carries it.

mod node;

use node::WebFile;

fn main() {
    // Without a file TypeScript is refused: see src/typescript.rs.
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
