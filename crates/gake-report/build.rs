//! Builds the HTML page from `ui/` into `OUT_DIR`, to be embedded in the binary.

mod node;

use node::WebFile;

fn main() {
    // Without the file gake has no page: see src/html/.
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
