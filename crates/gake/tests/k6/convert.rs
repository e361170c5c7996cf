//! `gake convert`, and the script that comes of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn gake(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs what an input becomes, and gives what was printed.
fn run_of(input: &str, folder: &Path) -> String {
    let converted = gake(&["convert", input]);
    assert!(converted.status.success(), "{converted:?}");
    let path = folder.join("script.js");
    fs::write(&path, converted.stdout).unwrap();
    let ran = gake(&["as", "k6", "run", "--quiet", "--no-color", path.to_str().unwrap()]);
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn what_was_converted_runs() {
    let lab = crate::lab();
    let (url, folder) = (format!("http://{}", lab.addr()), tempfile::tempdir().unwrap());
    let printed = run_of(&format!("curl {url}/echo -d 'a=b c' -H 'X-Y: z'"), folder.path());
    assert!(printed.contains("✓ POST http://"), "{printed}");
    let entry = |route: &str, status: u16| {
        format!(
            r#"{{"request":{{"method":"GET","url":"{url}{route}","headers":[]}},
                "response":{{"status":{status}}}}}"#
        )
    };
    let (right, wrong) = (entry("/status/404", 404), entry("/fast", 500));
    let har = folder.path().join("session.har");
    fs::write(&har, format!(r#"{{"log":{{"entries":[{right},{wrong}]}}}}"#)).unwrap();
    let printed = run_of(har.to_str().unwrap(), folder.path());
    assert!(printed.contains("✓ GET") && printed.contains("/status/404: status 404"), "{printed}");
    assert!(printed.contains("✗ GET") && printed.contains("/fast: status 500"), "{printed}");
    assert_eq!(lab.shutdown().requests, 3);
}

#[test]
fn a_collection_and_a_plan_run() {
    let lab = crate::lab();
    let (addr, folder) = (lab.addr(), tempfile::tempdir().unwrap());
    let collection = folder.path().join("shop.json");
    let text = format!(
        r#"{{"info":{{"name":"shop"}},
            "auth":{{"type":"bearer","bearer":[{{"key":"token","value":"{{{{token}}}}"}}]}},
            "variable":[{{"key":"base","value":"http://{addr}"}},{{"key":"token","value":"t"}}],
            "item":[
              {{"name":"echo","request":{{"method":"POST","url":"{{{{base}}}}/echo",
                "body":{{"mode":"formdata","formdata":[{{"key":"a","value":"{{{{$guid}}}}"}}]}}}},
                "event":[{{"listen":"test","script":{{"exec":[
                  "pm.test('is 200', () => pm.response.to.have.status(200));"]}}}}]}},
              {{"name":"missing","request":"{{{{base}}}}/{{{{nowhere}}}}"}}]}}"#
    );
    fs::write(&collection, text).unwrap();
    let script = folder.path().join("out.js");
    let (input, output) = (collection.to_str().unwrap(), script.to_str().unwrap());
    let converted = gake(&["convert", input, "-o", output]);
    assert!(converted.status.success() && converted.stdout.is_empty(), "{converted:?}");
    let warned = String::from_utf8(converted.stderr).unwrap();
    assert!(warned.contains("1 × a variable has no value"), "{warned}");
    assert!(warned.contains("(nowhere)"), "{warned}");
    let ran = gake(&["as", "k6", "run", "--quiet", "--no-color", output]);
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert!(printed.contains("✓ is 200"), "{printed}");
    let logged = String::from_utf8(ran.stderr).unwrap();
    assert!(logged.contains("the variable nowhere is missing"), "{logged}");

    let plan = folder.path().join("plan.jmx");
    let (host, port) = (addr.ip(), addr.port());
    let text = format!(
        r#"<jmeterTestPlan version="1.2"><hashTree><TestPlan/><hashTree>
             <ThreadGroup testname="users"><stringProp name="ThreadGroup.num_threads">2</stringProp>
               <elementProp name="ThreadGroup.main_controller">
                 <stringProp name="LoopController.loops">3</stringProp></elementProp></ThreadGroup>
             <hashTree><HTTPSamplerProxy testname="fast">
               <stringProp name="HTTPSampler.domain">{host}</stringProp>
               <stringProp name="HTTPSampler.port">{port}</stringProp>
               <stringProp name="HTTPSampler.path">/fast</stringProp></HTTPSamplerProxy><hashTree/>
             </hashTree></hashTree></hashTree></jmeterTestPlan>"#
    );
    fs::write(&plan, text).unwrap();
    let printed = run_of(plan.to_str().unwrap(), folder.path());
    assert!(printed.contains("✓ GET http://"), "{printed}");
    assert_eq!(lab.shutdown().requests, 1 + 6);
}

#[test]
fn a_command_needs_no_quotes() {
    let converted = gake(&["convert", "curl", "-X", "POST", "http://h/", "-d", "a=it's"]);
    let script = String::from_utf8(converted.stdout).unwrap();
    assert!(script.contains(r#"http.request("POST", "http://h/", "a=it's", {"#), "{script}");
}

#[test]
fn what_is_nothing_known_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "hello").unwrap();
    let refused = gake(&["convert", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("notes.txt: not a HAR"), "{said}");
}
