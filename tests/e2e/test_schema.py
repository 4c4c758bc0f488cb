"""Bodies and events against the published OpenAPI document."""
import functools
import json
import lzma
import os
import pathlib

import jsonschema
import pytest
import yaml

from daemon import MODEL

DOCUMENT = pathlib.Path(os.environ.get("HEXAD_DATA", "../shared/data")) / "openai-openapi/openapi.yaml.xz"
QUESTION = [{"role": "user", "content": "What colour is the sky?"}]


@functools.cache
def document():
    if not DOCUMENT.exists():
        pytest.skip(f"{DOCUMENT} is not here")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return allow_nulls(yaml.load(lzma.open(DOCUMENT), loader))


def allow_nulls(schema):
    """The document says 3.1 but marks what may be null as 3.0 did; a 3.1 validator ignores that."""
    if isinstance(schema, list):
        return [allow_nulls(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: allow_nulls(value) for key, value in schema.items()}
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"].append(None)
    return schema


def check(name, value):
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema.Draft202012Validator(schema).validate(value)


def events(http, body):
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        raw = response.read().decode()
    assert raw.endswith("data: [DONE]\n\n") and raw.count("[DONE]") == 1
    lines = [e for e in raw.split("\n\n") if e and not e.startswith(":")]
    assert all(line.startswith("data: ") and "\n" not in line for line in lines)
    return [json.loads(line[6:]) for line in lines[:-1]]


@pytest.mark.parametrize("extra", [{}, {"n": 2}, {"logprobs": True, "top_logprobs": 2},
                                   {"max_tokens": 1}, {"stop": ["e"]}])
def test_chat_bodies(http, extra):
    body = {"model": MODEL, "messages": QUESTION, "max_tokens": 12, "seed": 1, **extra}
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    check("CreateChatCompletionResponse", answer.json())
    assert answer.json()["choices"][0]["message"]["refusal"] is None
    for event in events(http, {**body, "stream": True, "stream_options": {"include_usage": True}}):
        if event["choices"]:  # "null on all chunks but the last", says the text but not the schema
            assert event.pop("usage") is None
        check("CreateChatCompletionStreamResponse", event)


def test_models_and_errors(http):
    check("ListModelsResponse", http.get("/v1/models").json())
    check("Model", http.get(f"/v1/models/{MODEL}").json())
    for answer in [
        http.post("/v1/chat/completions", json={"model": "nope", "messages": QUESTION}),
        http.post("/v1/chat/completions", content=b"{", headers={"content-type": "application/json"}),
        http.post("/v1/chat/completions", content=b"x", headers={"content-type": "text/plain"}),
        http.get("/v1/chat/completions"), http.get("/nowhere"),
    ]:
        assert answer.status_code in (400, 404, 405, 415)
        check("ErrorResponse", answer.json())
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["code"] is None or isinstance(error["code"], str)


def test_bad_utf8_and_deep_json_disturb_nobody(http):
    head = {"content-type": "application/json"}
    bad = b'{"model":"hexad-tiny","messages":[{"role":"user","content":"\xff\xfe"}]}'
    assert http.post("/v1/chat/completions", content=bad, headers=head).status_code == 400
    deep = b"[" * 100_000
    assert http.post("/v1/chat/completions", content=deep, headers=head).status_code == 400
    assert http.get("/health").status_code == 200
