"""Reads Kubernetes objects from standard input into the types of the API's client, and fails when
one has a field that its type lacks."""

import json
import sys

import yaml
from kubernetes import client

api = client.ApiClient()


def compare(read, document, path):
    if isinstance(document, dict):
        for key, value in document.items():
            compare((read or {}).get(key), value, f"{path}/{key}")
    elif isinstance(document, list):
        if len(read or []) != len(document):
            sys.exit(f"{path}: the API has no such list")
        for index, value in enumerate(document):
            compare(read[index], value, f"{path}/{index}")
    elif read != document:
        sys.exit(f"{path}: {document!r} is {read!r} in the API")


for document in yaml.safe_load_all(sys.stdin):
    version = document["apiVersion"].rpartition("/")[2].title()
    kind = document["kind"]
    read = api.deserialize(json.dumps(document), version + kind, "application/json")
    compare(api.sanitize_for_serialization(read), document, f"{kind}/{document['metadata']['name']}")
