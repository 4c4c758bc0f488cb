import httpx
import openai
import pytest

from daemon import Daemon


@pytest.fixture(scope="session")
def daemon():
    with Daemon() as d:
        yield d


@pytest.fixture(scope="session")
def client(daemon):
    return openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def http(daemon):
    with httpx.Client(base_url=daemon.url, timeout=60) as c:
        yield c
