"""References such as `${env:NAME}`: looked up only where the file declares the provider."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from heliograph.config import ConfigError
from heliograph.config.read.providers import resolve

from .files import MINIMAL, deployment, flow, patterns, warnings

KAFKA = "org.apache.kafka.common.config.provider"
ENV = f"config.providers = env\nconfig.providers.env.class = {KAFKA}.EnvVarConfigProvider\n"


def test_an_environment_variable_is_resolved_if_its_provider_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIOGRAPH_TOPICS", "orders")
    added = "A->B.topics = ${env:HELIOGRAPH_TOPICS}.*\n"
    assert patterns(flow(ENV + added).topics).include == ("orders.*",)
    assert warnings(ENV + added) == []


def test_a_provider_has_the_name_that_the_file_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKS", "7")
    declared = f"config.providers = mine, other\nconfig.providers.mine.class = {KAFKA}.EnvVarConfigProvider\n"
    assert flow(declared + "tasks.max = ${mine:TASKS}\n").tasks_max == 7


def test_even_the_list_of_clusters_may_come_from_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "A")
    text = MINIMAL.replace("clusters = A, B", "clusters = ${env:HERE}, B")
    assert list(deployment(text + ENV).clusters) == ["A", "B"]


def test_a_reference_to_an_undeclared_provider_stays_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "orders")
    assert flow("client.id = ${env:NAME}\n").source.client_id == "${env:NAME}"
    assert warnings("client.id = ${env:NAME}\n") == [
        "mm2.properties:5: client.id: ${env:NAME} is not resolved: there is no 'env' in config.providers"
    ]
    with pytest.raises(ConfigError, match=r"\$\{env:N\} is not resolved: there is no 'env' in config"):
        flow("tasks.max = ${env:N}\n")


def test_a_variable_that_is_not_set_leaves_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    assert flow(ENV + "client.id = ${env:NOT_SET}\n").source.client_id == "${env:NOT_SET}"


def test_an_allow_list_of_variables_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MM_ID", "yes")
    monkeypatch.setenv("SECRET", "no")
    allowed = ENV + "config.providers.env.param.allowlist.pattern = MM_.*\n"
    assert flow(allowed + "client.id = ${env:MM_ID}\n").source.client_id == "yes"
    assert flow(allowed + "client.id = ${env:SECRET}\n").source.client_id == "${env:SECRET}"


def test_a_file_and_a_directory_give_values(tmp_path: Path) -> None:
    (tmp_path / "some.properties").write_text("id = from-file\n")
    (tmp_path / "id").write_text("from-directory")
    declared = (
        f"config.providers = file, dir\nconfig.providers.file.class = {KAFKA}.FileConfigProvider\n"
        f"config.providers.dir.class = {KAFKA}.DirectoryConfigProvider\n"
    )
    assert flow(declared + f"client.id = ${{file:{tmp_path}/some.properties:id}}\n").source.client_id == "from-file"
    assert flow(declared + f"client.id = ${{dir:{tmp_path}:id}}\n").source.client_id == "from-directory"
    missing = f"${{dir:{tmp_path}:nothing}}"
    assert flow(declared + f"client.id = {missing}\n").source.client_id == missing
    elsewhere = declared + "config.providers.dir.param.allowed.paths = /nowhere\n"
    refused = f"${{dir:{tmp_path}:id}}"
    assert flow(elsewhere + f"client.id = {refused}\n").source.client_id == refused
    with pytest.raises(ConfigError, match=r"mm2\.properties:8: client\.id: .*refers to a file that cannot be used"):
        flow(declared + f"client.id = ${{file:{tmp_path}/missing:id}}\n")


def test_the_value_of_a_provider_is_not_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKS", "hunter2")
    with pytest.raises(ConfigError) as raised:
        flow(ENV + "tasks.max = ${env:TASKS}\n")
    assert "hunter2" not in str(raised.value)
    assert "'${env:TASKS}' is not a whole number" in str(raised.value)


def test_an_unsupported_provider_class_is_warned_about_where_it_is_used() -> None:
    declared = "config.providers = vault\nconfig.providers.vault.class = com.example.Other\n"
    assert warnings(declared) == []
    assert warnings(declared + "client.id = ${vault:a:b}\n") == [
        "mm2.properties:7: client.id: ${vault:a:b} is not resolved: this version does not support the class of 'vault'"
    ]


@pytest.mark.parametrize("name", ["env", "strimzienv"])
def test_a_provider_with_a_usual_name_needs_no_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "us")
    assert flow(f"config.providers = {name}\nclient.id = ${{{name}:NAME}}\n").source.client_id == "us"


def test_kubernetes_secrets_and_config_maps_are_files_below_their_mount(tmp_path: Path) -> None:
    (tmp_path / "a-user").mkdir()
    (tmp_path / "a-user" / "id").write_text("us\n")
    maps = "io.strimzi.kafka.KubernetesConfigMapConfigProvider"
    declared = f"config.providers = secrets, maps\nconfig.providers.maps.class = {maps}\n"
    mount = f"heliograph.secrets.dir = {tmp_path}\n"
    for reference in (
        "${secrets:ns/a-user:id}",
        "${secrets:a-user:id}",
        "${maps:ns/a-user:id}",
        "${secrets:a-user:i?}",
    ):
        assert flow(declared + mount + f"client.id = {reference}\n").source.client_id == "us"
    for reference, says in (
        ("${secrets:a-user:no}", "a-user/no, which does not exist"),
        ("${secrets:..:id}", "is not of the form"),
        ("${secrets:a-user:../id}", "is not of the form"),
    ):
        with pytest.raises(ConfigError) as raised:
            flow(declared + mount + f"client.id = {reference}\n")
        assert says in str(raised.value)
    with pytest.raises(ConfigError, match=r"set heliograph\.secrets\.dir to the directory where it is mounted"):
        flow(declared + "client.id = ${secrets:ns/a-user:id}\n")


class _Vault(BaseHTTPRequestHandler):
    """Version 1 at `kv`, version 2 at `secret`."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = {
            "/v1/kv/kafka": {"id": "one"},
            "/v1/secret/data/kafka": {"data": {"id": "two"}, "metadata": {"version": 3}},
        }.get(self.path)
        status = 403 if self.headers["X-Vault-Token"] != "hush" else 404 if found is None else 200
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps({"data": found}).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_vault_is_asked_over_http(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Vault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        declared = (
            "config.providers = vault\nconfig.providers.vault.class = com.example.VaultConfigProvider\n"
            f"config.providers.vault.param.vault.address = http://127.0.0.1:{server.server_address[1]}\n"
        )
        monkeypatch.setenv("VAULT_TOKEN", "hush")
        for path, value in (("kv/kafka", "one"), ("secret/kafka", "two"), ("secret/data/kafka", "two")):
            assert flow(declared + f"client.id = ${{vault:{path}:id}}\n").source.client_id == value
        with pytest.raises(ConfigError, match="refers to 'secret/other', which Vault does not have"):
            flow(declared + "client.id = ${vault:secret/other:id}\n")
        monkeypatch.setenv("VAULT_TOKEN", "wrong-hush")
        with pytest.raises(ConfigError, match="answers 403") as raised:
            flow(declared + "client.id = ${vault:kv/kafka:id}\n")
        assert "hush" not in str(raised.value)
        monkeypatch.delenv("VAULT_TOKEN")
        (tmp_path / "token").write_text("hush\n")
        file = f"config.providers.vault.param.vault.token.file = {tmp_path}/token\n"
        assert flow(declared + file + "client.id = ${vault:kv/kafka:id}\n").source.client_id == "one"
        server.shutdown()
    with pytest.raises(ConfigError, match="refers to Vault, which cannot be read at http"):
        flow(declared + file + "client.id = ${vault:kv/kafka:id}\n")


def test_several_references_in_one_value_and_colons_in_keys() -> None:
    providers = {"p": lambda path, key: f"<{path}|{key}>"}
    assert resolve("${p:a}-${p:b:c}-${p:b:c:d}-${q:x}-${}-$p", providers) == "<|a>-<b|c>-<b|c:d>-${q:x}-${}-$p"
