"""Sharing partitions with other members of the group: taking them over, and giving them up behind a checkpoint.

A partition is taken over where the group's committed offset says, which a transaction wrote together with the outputs.
It is given up only after everything that was learned from it is in a checkpoint and committed; where there is no time
for that, because the group has already given it to others, what was done since the last checkpoint does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from streamlearn.contracts import Position
from streamlearn.runtime.brokers import Rewind

from .client import log, name_of
from .fetcher import Shelf
from .options import Options
from .partitions import Partition

GIVE_UP_S = 60.0
"""How long a checkpoint may take before partitions are given up without it."""


class Members:
    """The group's word on which partitions are ours.

    Parameters
    ----------
    shelf : Shelf
    consumer : Consumer
    open_partition : callable, (topic, number) -> Partition
        Looks up where a partition goes on.
    tell_group : callable
        Commits what the newest checkpoint knows.
    options : dict
        Of the client: they tell the protocol.
    """

    def __init__(
        self,
        shelf: Shelf,
        consumer: Consumer,
        open_partition: Callable[[str, int], Partition],
        tell_group: Callable[[], None],
        options: Options,
    ) -> None:
        self._shelf, self._consumer, self._open, self._tell_group = shelf, consumer, open_partition, tell_group
        strategy = str(options.get("partition.assignment.strategy", ""))
        self._by_steps = options.get("group.protocol") == "consumer" or "cooperative" in strategy
        self._stopping: Callable[[], bool] = bool
        self._leaving: list[Partition] = []
        self._subscribed = False
        self._membership: object = (
            consumer.consumer_group_metadata()
        )  # of nobody: all that is needed outside of a group
        self._stale = False

    @property
    def waiting(self) -> bool:
        """Whether partitions are to be given up as soon as there is a checkpoint."""
        return bool(self._leaving)

    def subscribe(self, topics: tuple[str, ...], stopping: Callable[[], bool]) -> None:
        """Join the group; `stopping` tells that nobody will make a checkpoint any more."""
        self._stopping, self._subscribed = stopping, True
        self._consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def present(self) -> object:
        """Return as which member the group knows us now, for a transaction; called with the shelf's lock.

        The client answers that to the thread that polls it, between two polls; asked by another one while partitions
        are given up it never returns. Then what it said last is still true: nothing changes before they are gone.
        """
        shelf = self._shelf
        if not self._subscribed:
            return self._membership
        self._stale = True
        shelf.changed.wait_for(lambda: not self._stale or self._leaving or shelf.error is not None)
        return self._membership

    def look(self) -> None:
        """Ask the client as which member the group knows us, where somebody wants to know; called between two polls."""
        if self._stale:
            membership = self._consumer.consumer_group_metadata()
            with self._shelf.changed:
                self._membership, self._stale = membership, False
                self._shelf.changed.notify_all()

    def saved(self, positions: Sequence[Position]) -> None:
        """Hear of a checkpoint; it sets partitions free if it has everything that was handed out of them."""
        known = {position.partition: position.offset for position in positions}
        with self._shelf.changed:
            if all(known.get(part.name, part.began) == part.offset for part in self._leaving):
                self._leaving = []
                self._shelf.changed.notify_all()

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        if self._stopping():
            return  # the client is being closed, and would answer no question
        partitions = [self._open(place.topic, place.partition) for place in places]
        log.info("taking over %s", ", ".join(part.name for part in partitions) or "nothing")
        with self._shelf.changed:
            for partition in partitions:
                self._shelf.add(partition)
            self._shelf.changed.notify_all()
        self._stale = True
        found = [TopicPartition(part.topic, part.number, part.offset) for part in partitions]
        if self._by_steps:
            consumer.incremental_assign(found)
        else:
            consumer.assign(found)

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        names = [name_of(place.topic, place.partition) for place in places]
        shelf = self._shelf
        with shelf.changed:
            held = [shelf.partitions[name] for name in names if name in shelf.partitions]
            for partition in held:
                partition.clear()
            if held and not self._stopping():
                self._leaving = held
                shelf.changed.notify_all()
                done = shelf.changed.wait_for(lambda: not self._leaving or self._stopping(), GIVE_UP_S)
                self._leaving = []
                if not done:
                    shelf.error = Rewind(f"{', '.join(names)} had to go before there was a checkpoint")
            shelf.drop(names)
        self._tell_group()
        log.info("gave up %s", ", ".join(names) or "nothing")
        self._leave(consumer, places)

    def _lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        names = [name_of(place.topic, place.partition) for place in places]
        with self._shelf.changed:
            self._shelf.drop(names)
            self._shelf.error = self._shelf.error or Rewind(f"{', '.join(names)} went to another member of the group")
            self._shelf.changed.notify_all()
        self._leave(consumer, places)

    def _leave(self, consumer: Consumer, places: list[Any]) -> None:
        if self._by_steps:
            consumer.incremental_unassign(places)
        else:
            consumer.unassign()
