//! How the binary is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let cfg = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_static = cfg("FEATURE").split(',').any(|feature| feature == "crt-static");
    // At a fixed address: 90,000 relocations at each start take longer than all else before the
    // first request. `cargo xtask dist` does so for the static binaries of musl.
    if cfg("OS") == "linux" && cfg("ENV") == "gnu" && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
