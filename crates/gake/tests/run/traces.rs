//! Traces: the target gets the trace ids that the collector gets, and no others.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper::HeaderMap;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderName;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::Value;

use crate::support::*;

/// A request: its first line, its headers, its body.
struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut lines = stream.lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let line = lines.next()?;
        let headers: Vec<_> = lines
            .filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_ascii_lowercase(), value.to_owned()))
            })
            .collect();
        let mut request = Self { line, headers, body: Vec::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }
}

/// A server that responds with 200 and reports every request.
fn server() -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, sender) = (stream.unwrap(), sender.clone());
            std::thread::spawn(move || serve(stream, &sender));
        }
    });
    (address, receiver)
}

fn serve(stream: TcpStream, sender: &Sender<Request>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = Request::read(&mut stream) {
        let _ = sender.send(request);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        if stream.get_mut().write_all(answer).is_err() {
            return;
        }
    }
}

/// A collector that takes gRPC: the method and the message of each call.
fn grpc_collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let sender = sender.clone();
                let service = service_fn(move |request| take(request, sender.clone()));
                let http = Builder::new(TokioExecutor::new());
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
    });
    (address, receiver)
}

/// Takes a call, and responds with an empty message and the status 0.
async fn take(
    request: hyper::Request<Incoming>,
    sender: Sender<(String, Vec<u8>)>,
) -> Result<hyper::Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, hyper::Error>
{
    let path = request.uri().path().to_owned();
    let message = request.into_body().collect().await?.to_bytes();
    let _ = sender.send((path, message[5..].to_vec()));
    let trailers = HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), 0.into())]);
    let body = Full::new(Bytes::from_static(&[0; 5])).with_trailers(async { Some(Ok(trailers)) });
    let response = hyper::Response::builder().header("content-type", "application/grpc");
    Ok(response.body(body).unwrap())
}

/// The messages of a service as JSON, by the official definitions.
fn decoded(calls: &[(String, Vec<u8>)], service: &str) -> Vec<Value> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    let file = format!("opentelemetry/proto/collector/{service}/v1/{service}_service.proto");
    let files = protox::compile([file], [root]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let package = format!("opentelemetry.proto.collector.{service}.v1.");
    let of = calls.iter().filter(|(path, _)| path.starts_with(&format!("/{package}")));
    of.map(|(path, message)| {
        let (name, method) = path[1..].split_once('/').unwrap();
        let found = pool.get_service_by_name(name).unwrap();
        let method = found.methods().find(|known| known.name() == method).unwrap();
        let message = DynamicMessage::decode(method.input(), message.as_slice()).unwrap();
        assert_eq!(message.unknown_fields().count(), 0);
        serde_json::to_value(&message).unwrap()
    })
    .collect()
}

/// The spans of export requests.
fn spans_in<'a>(requests: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let scope = |request: &'a Value| &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
    requests.flat_map(|request| scope(request).as_array().unwrap().clone()).collect()
}

/// The attribute of a span.
fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let pairs = span["attributes"].as_array().unwrap();
    let pair = pairs.iter().find(|pair| pair["key"] == key);
    pair.map_or(&Value::Null, |pair| &pair["value"])
}

#[test]
fn the_target_sees_the_trace_ids_that_the_collector_gets() {
    let ((target, seen), (collector, sent)) = (server(), server());
    let (grpc, calls) = grpc_collector();
    let url = format!("http://{target}/shop?q=1");
    let sink = format!("otlp=http://{collector}?service=shop");
    let grpc = format!("otlp-grpc={grpc}?service=shop");
    let own = "traceparent: 00-11111111111111111111111111111111-2222222222222222-01";
    let args = [url.as_str(), "-n", "400", "-r", "1000", "--trace-sample", "25%", "--sink", &sink];
    let json = run(&[&args, &["--sink", &grpc][..]].concat());
    assert_eq!(json.count("requests.ok"), 400);
    let received: Vec<_> = seen.try_iter().filter_map(|request| trace(&request)).collect();
    let posts: Vec<Request> = sent.try_iter().collect();
    let of = |path: &str| {
        let line = format!("POST {path} ");
        let of_path = posts.iter().filter(move |post| post.line.starts_with(&line));
        of_path.map(|post| serde_json::from_slice::<Value>(&post.body).unwrap())
    };
    let traces: Vec<Value> = of("/v1/traces").collect();
    let spans = spans_in(traces.iter());
    assert!(of("/v1/metrics").next().is_some(), "the metrics go on");
    // Five standard deviations of a binomial of 400 draws with 1/4.
    assert!((57..=143).contains(&received.len()), "{}", received.len());
    let ids =
        |span: &Value| ["traceId", "spanId"].map(|name| span[name].as_str().unwrap().to_owned());
    let got: BTreeSet<_> = spans.iter().map(ids).collect();
    assert_eq!(got.len(), spans.len(), "each once");
    assert_eq!(got, received.into_iter().collect());
    // The same in protobuf.
    let calls: Vec<_> = calls.try_iter().collect();
    let in_hex = |span: &Value| {
        ["traceId", "spanId"].map(|name| {
            let bytes = STANDARD.decode(span[name].as_str().unwrap()).unwrap();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        })
    };
    let by_grpc = spans_in(decoded(&calls, "trace").iter());
    assert_eq!(by_grpc.iter().map(in_hex).collect::<BTreeSet<_>>(), got);
    assert_eq!(by_grpc.len(), got.len());
    for span in &by_grpc {
        assert_eq!(span["kind"], "SPAN_KIND_CLIENT");
        assert_eq!(attribute(span, "http.response.status_code")["intValue"], "200");
        assert_eq!(attribute(span, "url.full")["stringValue"], url.as_str());
    }
    let metrics = decoded(&calls, "metrics");
    let last = &metrics.last().unwrap()["resourceMetrics"][0];
    assert_eq!(attribute(&last["resource"], "service.name")["stringValue"], "shop");
    let metrics = last["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let points = metric("gake.requests")["sum"]["dataPoints"].as_array().unwrap();
    let ok = points.iter().find(|point| attribute(point, "outcome")["stringValue"] == "ok");
    assert_eq!(ok.unwrap()["asDouble"], 400.0);
    let response = &metric("gake.response")["exponentialHistogram"]["dataPoints"][0];
    assert_eq!(response["count"], "400");
    let buckets = response["positive"]["bucketCounts"].as_array().unwrap();
    let count = |bucket: &Value| bucket.as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(buckets.iter().map(count).sum::<u64>(), 400);
    for span in &spans {
        assert_eq!(attribute(span, "http.request.method")["stringValue"], "GET");
        assert_eq!(attribute(span, "url.full")["stringValue"], url.as_str());
        assert_eq!(attribute(span, "http.response.status_code")["intValue"], "200");
        let instant = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(instant("startTimeUnixNano") < instant("endTimeUnixNano"), "{span}");
    }
    // A request's own trace id stays, and is used for no other request.
    let args = [&url, "-n", "20", "-H", own, "--trace-sample", "1", "--sink", &sink];
    assert_eq!(run(&args).count("requests.ok"), 20);
    let own: Vec<_> = seen.try_iter().filter_map(|request| trace(&request)).collect();
    assert!(own.len() == 20 && own.iter().all(|ids| ids[0] == "1".repeat(32)), "{own:?}");
    assert!(!sent.try_iter().any(|post| post.line.contains("/v1/traces")));
}

/// The trace id and parent id in a request.
fn trace(request: &Request) -> Option<[String; 2]> {
    let parent_header = request.header("traceparent")?;
    let ["00", trace, parent, "01"] = parent_header.split('-').collect::<Vec<_>>()[..] else {
        panic!("{parent_header}");
    };
    assert_eq!((trace.len(), parent.len()), (32, 16), "{parent_header}");
    Some([trace.to_owned(), parent.to_owned()])
}
