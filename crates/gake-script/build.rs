//! Finds out which QuickJS the crate is built with.

/// Sets `patched_quickjs` if QuickJS is the one of `vendor/`, which says so to its dependents.
/// `GAKE_QUICKJS=published` compiles for the published one all the same, to check that code.
fn main() {
    println!("cargo::rerun-if-env-changed=GAKE_QUICKJS");
    println!("cargo::rustc-check-cfg=cfg(patched_quickjs)");
    let is_published = std::env::var("GAKE_QUICKJS").is_ok_and(|which| which == "published");
    if std::env::var_os("DEP_QUICKJS_PATCHED").is_some() && !is_published {
        println!("cargo::rustc-cfg=patched_quickjs");
    }
}
