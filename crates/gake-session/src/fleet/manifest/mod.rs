//! `gake fleet manifest`: a fleet on Kubernetes, for `kubectl apply`.

mod yaml;

use serde_json::{Value, json};

use crate::options::ManifestArgs;

/// Names of the objects, and of the secret with the tokens.
const AGENT: &str = "gake-agent";
const NATS: &str = "gake-nats";
const USER: &str = "gake-user";
const SECRET: &str = "gake-fleet";

/// Ports of NATS: for clients and for health checks.
const CLIENTS: u16 = 4222;
const HEALTH: u16 = 8222;

/// An unprivileged user.
const UNPRIVILEGED: u32 = 65_532;

/// How often a failed agent is restarted, on average: Kubernetes counts the restarts of all agents
/// together.
const RESTARTS: usize = 100;

/// The manifest, with the commands that must precede it as a comment.
pub fn manifest(args: &ManifestArgs) -> String {
    let namespace = &args.namespace;
    let head = format!(
        "# {} agents of gake, and their NATS server. Once, before it is applied:\n\
         #   kubectl create namespace {namespace}\n\
         #   kubectl -n {namespace} create secret generic {SECRET} \\\n\
         #     --from-file=token=<(openssl rand -hex 32 | tr -d '\\n') \\\n\
         #     --from-file=nats=<(openssl rand -hex 32 | tr -d '\\n')\n\
         # docs/fleet-machines.md says how a run is started. The agents run until the job is deleted.\n",
        args.agents
    );
    head + &yaml::documents(&objects(args))
}

fn objects(args: &ManifestArgs) -> Vec<Value> {
    let mut objects = vec![account(AGENT), account(USER)];
    objects.extend(access());
    objects.extend([service(), server(args), firewall(), agents(args)]);
    for object in &mut objects {
        object["metadata"]["namespace"] = args.namespace.clone().into();
        object["metadata"]["labels"] = json!({ "app.kubernetes.io/part-of": "gake" });
    }
    objects
}

/// A service account. Agents do not use the API of Kubernetes, and get no credentials for it.
fn account(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name },
        "automountServiceAccountToken": false,
    })
}

/// The rights of users who start runs: see the pods and their logs, reach NATS, delete the job.
fn access() -> [Value; 2] {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": { "name": USER },
            "rules": [
                rule("", &["pods", "pods/log"], &["get", "list", "watch"]),
                rule("", &["pods/portforward"], &["create"]),
                rule("batch", &["jobs"], &["get", "list", "watch", "delete"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "name": USER },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER },
            "subjects": [{ "kind": "ServiceAccount", "name": USER }],
        }),
    ]
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": NATS },
        "spec": {
            "selector": app(NATS),
            "ports": [{ "name": "nats", "port": CLIENTS, "targetPort": "nats" }],
        },
    })
}

/// The NATS server, with JetStream for the journals of runs.
fn server(args: &ManifestArgs) -> Value {
    let health = HEALTH.to_string();
    let store = ["--jetstream", "--store_dir", "/data"];
    let flags = [&store[..], &["--auth", "$(NATS_TOKEN)", "--http_port", &health]].concat();
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": NATS },
        "spec": {
            "serviceName": NATS,
            "replicas": 1,
            "selector": { "matchLabels": app(NATS) },
            "template": {
                "metadata": { "labels": app(NATS) },
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": pod_security(),
                    "containers": [{
                        "name": "nats",
                        "image": args.nats_image,
                        "command": ["nats-server"],
                        "args": flags,
                        "env": [secret("NATS_TOKEN", "nats")],
                        "ports": [
                            { "name": "nats", "containerPort": CLIENTS },
                            { "name": "health", "containerPort": HEALTH },
                        ],
                        "readinessProbe": { "httpGet": { "path": "/healthz", "port": "health" } },
                        "resources": resources("1", "1Gi"),
                        "securityContext": confined(),
                        "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                    }],
                    "volumes": [{ "name": "data", "emptyDir": { "sizeLimit": "8Gi" } }],
                },
            },
        },
    })
}

/// Only agents and coordinators may connect to NATS.
fn firewall() -> Value {
    let from = [AGENT, "gake"].map(|name| json!({ "podSelector": { "matchLabels": app(name) } }));
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": { "name": NATS },
        "spec": {
            "podSelector": { "matchLabels": app(NATS) },
            "policyTypes": ["Ingress"],
            "ingress": [{ "from": from, "ports": [{ "port": CLIENTS }] }],
        },
    })
}

/// The agents: an indexed job, so that their names stay the same.
fn agents(args: &ManifestArgs) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": AGENT },
        "spec": {
            "completionMode": "Indexed",
            "completions": args.agents,
            "parallelism": args.agents,
            "backoffLimit": args.agents.saturating_mul(RESTARTS).min(i32::MAX as usize),
            "ttlSecondsAfterFinished": 600,
            "template": {
                "metadata": { "labels": app(AGENT) },
                "spec": {
                    "serviceAccountName": AGENT,
                    "automountServiceAccountToken": false,
                    "restartPolicy": "OnFailure",
                    "securityContext": pod_security(),
                    // On different machines where possible.
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": { "matchLabels": app(AGENT) },
                    }],
                    "containers": [agent(args)],
                    "volumes": [
                        { "name": "tmp", "emptyDir": { "medium": "Memory", "sizeLimit": "256Mi" } },
                    ],
                },
            },
        },
    })
}

fn agent(args: &ManifestArgs) -> Value {
    let server = format!("nats://$(NATS_TOKEN)@{NATS}.{}.svc:{CLIENTS}", args.namespace);
    json!({
        "name": "agent",
        "image": args.image,
        "command": ["gake"],
        "args": agent_args(args),
        "env": [
            secret("GAKE_FLEET_TOKEN", "token"),
            secret("NATS_TOKEN", "nats"),
            { "name": "GAKE_NATS", "value": server },
        ],
        // With whole cores as requests and limits, Kubernetes may reserve them for the agent.
        "resources": resources(&args.cores.to_string(), &args.memory),
        "securityContext": confined(),
        "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }],
    })
}

fn agent_args(args: &ManifestArgs) -> Vec<String> {
    let mut list = vec!["agent".to_owned(), "--cores".to_owned(), args.cores.to_string()];
    for target in &args.allow {
        list.extend(["--allow".to_owned(), target.clone()]);
    }
    if let Some(rate) = args.max_rate {
        list.extend(["--max-rate".to_owned(), rate.to_string()]);
    }
    if args.scripts {
        list.push("--scripts".to_owned());
    }
    list
}

fn app(name: &str) -> Value {
    json!({ "app.kubernetes.io/name": name })
}

fn secret(variable: &str, key: &str) -> Value {
    json!({ "name": variable, "valueFrom": { "secretKeyRef": { "name": SECRET, "key": key } } })
}

fn resources(cores: &str, memory: &str) -> Value {
    let both = json!({ "cpu": cores, "memory": memory });
    json!({ "requests": both, "limits": both })
}

fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": UNPRIVILEGED,
        "runAsGroup": UNPRIVILEGED,
        "fsGroup": UNPRIVILEGED,
        "seccompProfile": { "type": "RuntimeDefault" },
        // Allows more connections to one target.
        "sysctls": [{ "name": "net.ipv4.ip_local_port_range", "value": "1024 65535" }],
    })
}

fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn args() -> ManifestArgs {
        ManifestArgs {
            agents: 50,
            image: "example.org/gake:1.0".to_owned(),
            allow: vec!["10.0.0.0/8".to_owned(), "api.example.org".to_owned()],
            max_rate: Some(5_000.0),
            scripts: false,
            cores: 2,
            memory: "2Gi".to_owned(),
            namespace: "load".to_owned(),
            nats_image: "nats:2.10-alpine".to_owned(),
        }
    }

    /// Deserializes each document into its type in the client generated from the API, and prints
    /// what the type holds. Unknown fields are lost; missing ones, and kinds that this version of
    /// the API lacks, are errors.
    const READ: &str = r#"
import json, re, sys, yaml
from kubernetes import client

class Response:
    def __init__(self, document):
        self.data = json.dumps(document)

api = client.ApiClient()
for document in yaml.safe_load_all(sys.stdin):
    group, _, version = document["apiVersion"].rpartition("/")
    group = "".join(part.title() for part in (group or "core").replace(".k8s.io", "").split("."))
    kind = document["kind"]
    snake = re.sub("(?<!^)(?=[A-Z])", "_", kind).lower()
    getattr(getattr(client, group + version.title() + "Api"), "create_namespaced_" + snake)
    read = api.deserialize(Response(document), version.title() + kind)
    print(json.dumps(api.sanitize_for_serialization(read)))
"#;

    /// The manifest as the API's types hold it.
    fn read(manifest: &str) -> Vec<Value> {
        let mut python = Command::new("/usr/bin/python3")
            .args(["-c", READ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Python is needed for this test: install python3-kubernetes");
        python.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
        let out = python.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "is python3-kubernetes installed? {stderr} {manifest}");
        let lines = out.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// Asserts that `whole` contains `part`; it may contain more.
    fn holds(whole: &Value, part: &Value, path: &str) {
        match part {
            Value::Object(map) => {
                for (key, part) in map {
                    holds(&whole[key], part, &format!("{path}/{key}"));
                }
            }
            Value::Array(list) => {
                for (index, part) in list.iter().enumerate() {
                    holds(&whole[index], part, &format!("{path}/{index}"));
                }
            }
            plain => assert_eq!(whole, plain, "{path}"),
        }
    }

    #[test]
    fn the_api_has_every_field_of_every_object() {
        let objects = objects(&args());
        let read = read(&manifest(&args()));
        assert_eq!((objects.len(), read.len()), (8, 8));
        for (read, object) in read.iter().zip(&objects) {
            holds(read, object, "");
        }
    }

    #[test]
    fn the_job_has_the_agents_and_no_secret_is_printed() {
        let text = manifest(&args());
        let job = ["completionMode: Indexed", "completions: 50", "backoffLimit: 5000"];
        for line in job.into_iter().chain(["- \"10.0.0.0/8\""]) {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.matches("secretKeyRef").count(), 3);
        assert!(!text.contains("kind: Secret") && !text.contains("--scripts"), "{text}");
        assert!(manifest(&ManifestArgs { scripts: true, ..args() }).contains("\"--scripts\""));
    }
}
