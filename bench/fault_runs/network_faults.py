"""Faults of the network between Heliograph and the brokers of one side: all of them, or one."""

import random
from collections.abc import Callable

from fault_runs.links import Links
from fault_runs.proxy import ANSWERS, REQUESTS, Rule
from fault_runs.scene import Applied, Fault, Scene


def _places(scene: Scene, rng: random.Random) -> tuple[list[str], str]:
    """Names of links, and in words."""
    side = scene.any_side(rng)
    brokers = side.cluster.broker_ids if rng.random() < 0.5 else (rng.choice(side.cluster.broker_ids),)
    return [side.link(broker) for broker in brokers], f"brokers {', '.join(f'{side.alias}-{each}' for each in brokers)}"


def _rule(rule: Rule) -> Callable[[Scene, random.Random], Applied]:
    return _on_links(lambda links, name: links.set_rule(name, rule))


def _act(act: str) -> Callable[[Scene, random.Random], Applied]:
    return _on_links(lambda links, name: links.act(name, act))


def _on_links(do: Callable[[Links, str], None]) -> Callable[[Scene, random.Random], Applied]:
    """Undone by the rule to pass everything on, which also resets what is half-closed."""

    def apply(scene: Scene, rng: random.Random) -> Applied:
        names, text = _places(scene, rng)
        links = scene.source.links
        for name in names:
            do(links, name)

        def undo() -> None:
            for name in names:
                links.set_rule(name, Rule())

        return Applied(text, undo)

    return apply


def network_faults() -> list[Fault]:
    return [
        Fault("delay", "everything arrives 0.3 s later", _rule(Rule(delay=0.3)), (3, 8)),
        Fault("throttle", "20 KB per second and connection", _rule(Rule(bytes_per_second=20_000)), (3, 8)),
        Fault("cut", "connections are reset, and new ones refused", _rule(Rule(refuse=True)), (1, 12)),
        Fault("reset", "connections are reset, once", _act("reset")),
        Fault(
            "half-close-requests",
            "brokers read the end of their connections; answers still arrive",
            _act(f"half-close-{REQUESTS}"),
            (1, 5),
        ),
        Fault(
            "half-close-answers",
            "Heliograph reads the end of its connections; requests still arrive",
            _act(f"half-close-{ANSWERS}"),
            (1, 5),
        ),
        Fault("lose-requests", "requests are lost, connections stay open", _rule(Rule(lose=(REQUESTS,))), (1, 12)),
        Fault(
            "lose-answers",
            "requests arrive, answers are lost, connections stay open",
            _rule(Rule(lose=(ANSWERS,))),
            (1, 12),
        ),
        Fault(
            "lose-all",
            "nothing arrives in either direction, connections stay open",
            _rule(Rule(lose=(REQUESTS, ANSWERS))),
            (1, 12),
        ),
    ]
