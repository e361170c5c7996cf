//! Builds the HTML page from `ui/`, so that the binary carries it.

mod node;

use node::WebFile;

fn main() {
    // Without a file there is no page: see src/html/.
    let page = WebFile {
        what: "the HTML report",
        folder: "ui",
        sources: &[
            "package.json",
            "package-lock.json",
            "tsconfig.json",
            "vite.config.ts",
            "index.html",
            "src",
        ],
        tools: &[
            ("node_modules/typescript/bin/tsc", &["--noEmit"]),
            ("node_modules/vite/bin/vite.js", &["build", "--logLevel", "warn"]),
        ],
        built: "index.html",
        name: "page.html",
        ready: "GAKE_UI_DIST",
    };
    page.embed();
}
