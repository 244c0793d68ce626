"""Cycles that names cannot show: with IdentityReplicationPolicy a topic can return to its cluster under its name."""

from collections.abc import Sequence

from heliograph.model.flow import Flow


def cycle_of(topic: str, flow: Flow, flows: Sequence[Flow]) -> tuple[str, ...]:
    """Returns the names of the flows, in order, that would copy a topic of this flow's source back onto itself; or ().

    DefaultReplicationPolicy's prefixes show where a topic came from, so the policy itself refuses such a topic. Under
    IdentityReplicationPolicy the copy of a copy would be appended to the original, and again, without end.
    """

    def walk(step: Flow, name: str, path: tuple[Flow, ...]) -> tuple[str, ...]:
        mirror = step.mirror_name(name)
        path = (*path, step)
        if (step.target.alias, mirror) == (flow.source.alias, topic):
            return tuple(passed.name for passed in path)
        for onward in flows:
            if onward.source.alias == step.target.alias and onward not in path and onward.selects(mirror):
                cycle = walk(onward, mirror, path)
                if cycle:
                    return cycle
        return ()

    return walk(flow, topic, ()) if flow.selects(topic) else ()
