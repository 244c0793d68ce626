"""References such as `${env:NAME}`: looked up only where the file declares the provider."""

from __future__ import annotations

from pathlib import Path

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
    with pytest.raises(ConfigError, match=r"\$\{env:N\} is not resolved: 'env' is not in config.providers"):
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
    declared = "config.providers = vault\nconfig.providers.vault.class = com.example.Vault\n"
    assert warnings(declared) == []
    assert warnings(declared + "client.id = ${vault:a:b}\n") == [
        "mm2.properties:7: client.id: ${vault:a:b} is not resolved: this version does not support the class of 'vault'"
    ]


def test_several_references_in_one_value_and_colons_in_keys() -> None:
    providers = {"p": lambda path, key: f"<{path}|{key}>"}
    assert resolve("${p:a}-${p:b:c}-${p:b:c:d}-${q:x}-${}-$p", providers) == "<|a>-<b|c>-<b|c:d>-${q:x}-${}-$p"
