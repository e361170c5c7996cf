//! How the binary is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of_target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}"));
    // 90,000 addresses would be relocated at each start, which takes longer than all else before
    // the first request. A static binary of musl is linked so by `cargo xtask dist`.
    if of_target("OS").as_deref() == Ok("linux") && of_target("ENV").as_deref() == Ok("gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
