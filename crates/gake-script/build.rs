//! Whether QuickJS is the patched one of `vendor/`, which says so to its dependents.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(patched_quickjs)");
    if std::env::var_os("DEP_QUICKJS_PATCHED").is_some() {
        println!("cargo::rustc-cfg=patched_quickjs");
    }
}
