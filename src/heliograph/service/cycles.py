"""Circles that names cannot show: with IdentityReplicationPolicy a topic can come home under its own name. Pure."""

from collections.abc import Sequence

from heliograph.model.flow import Flow


def comes_home(topic: str, flow: Flow, flows: Sequence[Flow]) -> tuple[str, ...]:
    """The flows, in order, that would bring a topic of this flow's source back to it under the same name; or none.

    DefaultReplicationPolicy's prefixes show where a topic came from, so the policy itself refuses such a topic. Under
    IdentityReplicationPolicy the copy of a copy would be appended to the original, and again, for ever.
    """

    def walk(step: Flow, name: str, path: tuple[Flow, ...]) -> tuple[str, ...]:
        there = step.mirror_name(name)
        path = (*path, step)
        if (step.target.alias, there) == (flow.source.alias, topic):
            return tuple(one.name for one in path)
        for onward in flows:
            if onward.source.alias == step.target.alias and onward not in path and onward.selects(there):
                found = walk(onward, there, path)
                if found:
                    return found
        return ()

    return walk(flow, topic, ()) if flow.selects(topic) else ()
