//! Why a module cannot be imported or opened, in k6's words.

/// k6's error for a function that only init code may call.
pub(super) fn init_only(function: &str) -> String {
    format!(
        "the \"{function}\" function is only available in the init stage (i.e. the global scope), see \
         https://grafana.com/docs/k6/latest/using-k6/test-lifecycle/ for more information"
    )
}

/// k6's error for an import that is not a file.
pub fn not_on_disk(name: &str) -> String {
    format!(
        "The moduleSpecifier \"{name}\" couldn't be found on local disk. Make sure that you've \
         specified the right path to the file. If you're running k6 using the Docker image make sure \
         you have mounted the local directory (-v /local/path/:/inside/docker/path) containing your \
         script and modules so that they're accessible by k6 from inside of the container, see \
         https://grafana.com/docs/k6/latest/using-k6/modules/#use-modules-with-docker."
    )
}

/// k6's error for a module or source map that cannot be fetched.
pub(super) fn not_retrieved(name: &str, url: &str, error: &str) -> String {
    format!(
        "The moduleSpecifier {name:?} couldn't be retrieved from the resolved url {url:?}. Error : \
         \"{error}\""
    )
}

/// k6's error for shortcuts that it supported once.
pub(super) const NO_SPECIAL: &str =
    "'special' urls are no longer supported - please use real ones. You can get yours by";

/// k6's error for a module from the network that asks for a local file.
pub(super) fn not_local(module: &str, name: &str) -> String {
    format!("origin ({module}) not allowed to load local file: {name}")
}
