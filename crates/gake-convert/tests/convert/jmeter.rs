//! JMeter plans.

use expect_test::expect;
use gake_convert::{ConvertOptions, convert};

use super::assert_lines;

const PLAN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2"><hashTree>
  <TestPlan testname="plan">
    <elementProp name="TestPlan.user_defined_variables"><collectionProp name="Arguments.arguments">
      <elementProp name="host"><stringProp name="Argument.name">host</stringProp>
        <stringProp name="Argument.value">${__P(host,shop.test)}</stringProp></elementProp>
    </collectionProp></elementProp>
  </TestPlan>
  <hashTree>
    <ConfigTestElement testname="defaults">
      <stringProp name="HTTPSampler.domain">${host}</stringProp>
      <stringProp name="HTTPSampler.port">8080</stringProp>
      <stringProp name="HTTPSampler.protocol">https</stringProp>
    </ConfigTestElement><hashTree/>
    <HeaderManager><collectionProp name="HeaderManager.headers">
      <elementProp name=""><stringProp name="Header.name">Accept</stringProp>
        <stringProp name="Header.value">*/*</stringProp></elementProp>
    </collectionProp></HeaderManager><hashTree/>
    <ThreadGroup testname="Buyers 1">
      <elementProp name="ThreadGroup.main_controller">
        <stringProp name="LoopController.loops">5</stringProp></elementProp>
      <stringProp name="ThreadGroup.num_threads">10</stringProp>
      <stringProp name="ThreadGroup.ramp_time">20</stringProp>
      <boolProp name="ThreadGroup.scheduler">false</boolProp>
    </ThreadGroup>
    <hashTree>
      <CSVDataSet><stringProp name="filename">users.csv</stringProp>
        <stringProp name="variableNames">user,pass</stringProp>
        <stringProp name="delimiter">;</stringProp></CSVDataSet><hashTree/>
      <ConstantTimer><stringProp name="ConstantTimer.delay">300</stringProp></ConstantTimer><hashTree/>
      <TransactionController testname="checkout"/>
      <hashTree>
        <HTTPSamplerProxy testname="login">
          <elementProp name="HTTPsampler.Arguments"><collectionProp name="Arguments.arguments">
            <elementProp name="u"><boolProp name="HTTPArgument.always_encode">true</boolProp>
              <stringProp name="Argument.name">u</stringProp>
              <stringProp name="Argument.value">${user}</stringProp></elementProp>
            <elementProp name="r"><stringProp name="Argument.name">r</stringProp>
              <stringProp name="Argument.value">${__Random(1,6)}</stringProp></elementProp>
          </collectionProp></elementProp>
          <stringProp name="HTTPSampler.path">/login</stringProp>
          <stringProp name="HTTPSampler.method">POST</stringProp>
        </HTTPSamplerProxy>
        <hashTree>
          <ResponseAssertion testname="welcome">
            <collectionProp name="Asserion.test_strings"><stringProp name="1">Hello (Ann|Bob)</stringProp></collectionProp>
            <stringProp name="Assertion.test_field">Assertion.response_data</stringProp>
            <intProp name="Assertion.test_type">2</intProp>
          </ResponseAssertion><hashTree/>
          <RegexExtractor><stringProp name="RegexExtractor.refname">csrf</stringProp>
            <stringProp name="RegexExtractor.regex">name="t" value="(.+?)"</stringProp>
            <stringProp name="RegexExtractor.template">$1$</stringProp>
            <stringProp name="RegexExtractor.default">none</stringProp>
            <stringProp name="RegexExtractor.match_number">1</stringProp></RegexExtractor><hashTree/>
          <JSONPostProcessor><stringProp name="JSONPostProcessor.referenceNames">id</stringProp>
            <stringProp name="JSONPostProcessor.jsonPathExprs">$.items[0].id</stringProp></JSONPostProcessor><hashTree/>
        </hashTree>
        <HTTPSamplerProxy testname="off" enabled="false"/><hashTree/>
      </hashTree>
      <HTTPSamplerProxy testname="order">
        <boolProp name="HTTPSampler.postBodyRaw">true</boolProp>
        <elementProp name="HTTPsampler.Arguments"><collectionProp name="Arguments.arguments">
          <elementProp name=""><stringProp name="Argument.value">{"id":${id}}</stringProp></elementProp>
        </collectionProp></elementProp>
        <stringProp name="HTTPSampler.path">/order?a=${csrf}</stringProp>
        <stringProp name="HTTPSampler.method">PUT</stringProp>
        <boolProp name="HTTPSampler.follow_redirects">false</boolProp>
      </HTTPSamplerProxy><hashTree/>
      <JSR223Sampler testname="code"><stringProp name="script">vars.put("a", "b")</stringProp></JSR223Sampler><hashTree/>
    </hashTree>
    <ThreadGroup testname="watchers">
      <elementProp name="ThreadGroup.main_controller">
        <intProp name="LoopController.loops">-1</intProp></elementProp>
      <stringProp name="ThreadGroup.num_threads">4</stringProp>
      <stringProp name="ThreadGroup.ramp_time">10</stringProp>
      <boolProp name="ThreadGroup.scheduler">true</boolProp>
      <stringProp name="ThreadGroup.duration">60</stringProp>
    </ThreadGroup>
    <hashTree>
      <HTTPSamplerProxy><stringProp name="HTTPSampler.path">/</stringProp></HTTPSamplerProxy><hashTree/>
      <JDBCSampler/><hashTree/>
    </hashTree>
  </hashTree>
</hashTree></jmeterTestPlan>"#;

#[test]
fn a_plan() {
    let converted = convert(PLAN, ConvertOptions::default()).unwrap();
    assert_lines(
        &converted.script,
        &[
            "scenarios: {",
            "buyers1: { exec: 'buyers1', executor: 'per-vu-iterations', vus: 10, iterations: 5, maxDuration: '24h' },",
            "watchers: { exec: 'watchers', executor: 'ramping-vus', startVUs: 0, stages: [{ duration: '10s', target: 4 }, { duration: '50s', target: 4 }] },",
            "},",
            "const data1 = new SharedArray('data1', () => rows(open(\"users.csv\"), \";\"));",
            "host: (__ENV.host || \"shop.test\"),",
            "export function buyers1() {",
            "if (exec.vu.iterationInScenario === 0) sleep((20 * (exec.vu.idInInstance - 1)) / 10);",
            "const row1 = data1[(exec.scenario.iterationInTest % data1.length)];",
            "vars.user = row1[0];",
            "group(\"checkout\", () => {",
            "// login",
            "sleep(0.3);",
            "res = http.request(\"POST\", `https://${value(\"host\")}:8080/login`, `u=${encodeURIComponent(value(\"user\"))}&r=${random(1, 6)}`, {",
            "\"Accept\": \"*/*\",",
            "check(res, { \"welcome\": (r) => new RegExp(\"Hello (Ann|Bob)\").test(r.body) });",
            "vars.csrf = found(res.body, new RegExp(\"name=\\\"t\\\" value=\\\"(.+?)\\\"\", \"g\"), \"$1$\", 1, \"none\");",
            "vars.id = json(res, \"items.0.id\", 1, vars.id);",
            "});",
            "res = http.request(\"PUT\", `https://${value(\"host\")}:8080/order?a=${value(\"csrf\")}`, `{\"id\":${value(\"id\")}}`, {",
            "redirects: 0,",
            "//   vars.put(\"a\", \"b\")",
            "export function watchers() {",
        ],
    );
    assert!(!converted.script.contains("// off"), "{}", converted.script);
    expect![[r#"
        1 × a file is read by the script, from its folder ("users.csv")
        1 × a JMeter script is not translated, and is quoted in a comment (code)
        1 × a non-HTTP sampler is left out (JDBCSampler)"#]]
    .assert_eq(&converted.warnings.join("\n"));
}

#[test]
fn a_file_of_the_plan_has_rows_for_every_group() {
    let group = |tag: &str, name: &str| {
        format!(
            r#"<{tag} testname="{name}"><stringProp name="ThreadGroup.num_threads">1</stringProp></{tag}>
            <hashTree><HTTPSamplerProxy testname="s"><stringProp name="HTTPSampler.domain">h</stringProp>
              <stringProp name="HTTPSampler.path">/${{user}}</stringProp></HTTPSamplerProxy><hashTree/></hashTree>"#
        )
    };
    let plan = format!(
        r#"<jmeterTestPlan><hashTree><TestPlan testname="plan"/><hashTree>
          <CSVDataSet><stringProp name="filename">users.csv</stringProp>
            <stringProp name="variableNames">user</stringProp></CSVDataSet><hashTree/>
          {}{}{}</hashTree></hashTree></jmeterTestPlan>"#,
        group("SetupThreadGroup", "before"),
        group("ThreadGroup", "one"),
        group("ThreadGroup", "two"),
    );
    let converted = convert(&plan, ConvertOptions::default()).unwrap();
    assert_lines(
        &converted.script,
        &[
            "export function setup() {",
            "const row1 = data1[(0 % data1.length)];",
            "vars.user = row1[0];",
            "export function one() {",
            "const row1 = data1[(exec.scenario.iterationInTest % data1.length)];",
            "vars.user = row1[0];",
            "export function two() {",
            "const row1 = data1[(exec.scenario.iterationInTest % data1.length)];",
        ],
    );
    assert!(!converted.warnings.join("\n").contains("no value"), "{:?}", converted.warnings);
}
