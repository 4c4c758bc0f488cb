"""The gRPC front end through stubs generated from the committed proto."""
import subprocess
import sys

import grpc
import pytest

from daemon import MODEL, ROOT


@pytest.fixture(scope="session")
def stubs(tmp_path_factory):
    out = tmp_path_factory.mktemp("stubs")
    proto = ROOT / "proto"
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{proto}", f"--python_out={out}",
                    f"--grpc_python_out={out}", *map(str, proto.glob("hexad/v1/inference.proto"))],
                   check=True)
    sys.path.insert(0, str(out))
    from hexad.v1 import inference_pb2, inference_pb2_grpc
    return inference_pb2, inference_pb2_grpc


def test_generate_streams_the_text_of_http(daemon, client, stubs):
    pb, services = stubs
    with grpc.insecure_channel(daemon.grpc) as channel:
        stub = services.InferenceStub(channel)
        assert [m.name for m in stub.ListModels(pb.ListModelsRequest()).models] == [MODEL]
        request = pb.GenerateRequest(model=MODEL)
        request.stop.max_tokens = 24
        request.messages.messages.add(role="user", content="Tell me a story about a cat.")
        request.sampling.temperature = 0
        text = ""
        for event in stub.Generate(request, timeout=60):
            if event.HasField("delta"):
                text += event.delta.text
        whole = client.chat.completions.create(
            model=MODEL, temperature=0, max_tokens=24,
            messages=[{"role": "user", "content": "Tell me a story about a cat."}])
        assert text == whole.choices[0].message.content


def test_errors_name_the_field(daemon, stubs):
    pb, services = stubs
    with grpc.insecure_channel(daemon.grpc) as channel:
        stub = services.InferenceStub(channel)
        with pytest.raises(grpc.RpcError) as error:
            list(stub.Generate(pb.GenerateRequest(model="nope", text="x"), timeout=20))
        assert error.value.code() == grpc.StatusCode.NOT_FOUND and "nope" in error.value.details()
        bad = pb.GenerateRequest(model=MODEL, text="x")
        bad.sampling.temperature = 9
        with pytest.raises(grpc.RpcError) as error:
            list(stub.Generate(bad, timeout=20))
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "temperature" in error.value.details()


def test_health(daemon):
    with grpc.insecure_channel(daemon.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=20) == b"\x08\x01"  # SERVING
