//! The Protocol Buffers definitions of the lab's services.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto,
};

/// The echo's messages are in a file of their own, which its service imports.
pub(super) fn files() -> [FileDescriptorProto; 3] {
    let messages = FileDescriptorProto {
        message_type: vec![
            message(
                "EchoRequest",
                &[
                    ("text", Type::String),
                    ("delay_ms", Type::Uint32),
                    ("status", Type::Uint32),
                    ("count", Type::Uint32),
                    ("every_ms", Type::Uint32),
                ],
            ),
            message("EchoReply", &[("text", Type::String), ("number", Type::Uint32)]),
        ],
        ..file("gake/lab/v1/messages.proto", "gake.lab.v1")
    };
    let echo = |name, streams| method(name, "gake.lab.v1", ("EchoRequest", "EchoReply"), streams);
    let service = FileDescriptorProto {
        dependency: vec!["gake/lab/v1/messages.proto".to_owned()],
        service: vec![ServiceDescriptorProto {
            name: Some("Echo".to_owned()),
            method: vec![
                echo("Say", (false, false)),
                echo("Repeat", (false, true)),
                echo("Collect", (true, false)),
                echo("Chat", (true, true)),
            ],
            options: None,
        }],
        ..file("gake/lab/v1/echo.proto", "gake.lab.v1")
    };
    [messages, service, health()]
}

/// The standard health check, without `Watch`.
fn health() -> FileDescriptorProto {
    let value = |(number, name): (i32, &&str)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        options: None,
    };
    let statuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
    let status = EnumDescriptorProto {
        name: Some("ServingStatus".to_owned()),
        value: (0..).zip(&statuses).map(value).collect(),
        ..EnumDescriptorProto::default()
    };
    let mut response = message("HealthCheckResponse", &[("status", Type::Enum)]);
    response.field[0].type_name =
        Some(".grpc.health.v1.HealthCheckResponse.ServingStatus".to_owned());
    response.enum_type = vec![status];
    let types = ("HealthCheckRequest", "HealthCheckResponse");
    FileDescriptorProto {
        message_type: vec![message(types.0, &[("service", Type::String)]), response],
        service: vec![ServiceDescriptorProto {
            name: Some("Health".to_owned()),
            method: vec![method("Check", "grpc.health.v1", types, (false, false))],
            options: None,
        }],
        ..file("grpc/health/v1/health.proto", "grpc.health.v1")
    }
}

/// The full names of the services in a file.
pub(super) fn services(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    file.service.iter().map(|service| format!("{}.{}", file.package(), service.name()))
}

/// Whether a file defines a service, method or message with this full name.
pub(super) fn has(file: &FileDescriptorProto, symbol: &str) -> bool {
    let package = file.package();
    let Some(name) = symbol.strip_prefix(package).and_then(|rest| rest.strip_prefix('.')) else {
        return false;
    };
    let (first, rest) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
    let service = file.service.iter().find(|service| service.name() == first);
    match (service, rest) {
        (Some(_), None) => true,
        (Some(service), Some(rest)) => service.method.iter().any(|one| one.name() == rest),
        (None, _) => file.message_type.iter().any(|message| message.name() == first),
    }
}

fn file(name: &str, package: &str) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

/// A message with fields numbered from 1.
fn message(name: &str, fields: &[(&str, Type)]) -> DescriptorProto {
    let field = |(number, (name, kind)): (i32, &(&str, Type))| FieldDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some((*kind).into()),
        ..FieldDescriptorProto::default()
    };
    DescriptorProto {
        name: Some(name.to_owned()),
        field: (1..).zip(fields).map(field).collect(),
        ..DescriptorProto::default()
    }
}

/// A method; `streams` says for each side whether it sends many messages.
fn method(
    name: &str,
    package: &str,
    (input, output): (&str, &str),
    streams: (bool, bool),
) -> MethodDescriptorProto {
    MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(format!(".{package}.{input}")),
        output_type: Some(format!(".{package}.{output}")),
        options: None,
        client_streaming: Some(streams.0),
        server_streaming: Some(streams.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_in_their_files() {
        let found = |symbol: &str| {
            files()
                .iter()
                .filter(|file| has(file, symbol))
                .map(|f| f.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("gake.lab.v1.Echo"), ["gake/lab/v1/echo.proto"]);
        assert_eq!(found("gake.lab.v1.Echo.Say"), ["gake/lab/v1/echo.proto"]);
        assert_eq!(found("gake.lab.v1.EchoReply"), ["gake/lab/v1/messages.proto"]);
        assert_eq!(found("grpc.health.v1.Health"), ["grpc/health/v1/health.proto"]);
        for symbol in ["gake.lab.v1.Echo.Sing", "gake.lab.v1", "Echo", "x.Echo"] {
            assert!(found(symbol).is_empty(), "{symbol}");
        }
    }
}
