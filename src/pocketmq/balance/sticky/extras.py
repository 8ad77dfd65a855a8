"""Extras: which members get one queue more of which topic, chosen exactly by min-cost flow.

A topic of n queues and m members gives every member n // m of them; the n % m members that get one
more are chosen here, for all topics of a pool at once, so that the members' numbers of extras
differ by one at most. Of all such choices the cheapest is taken: moves first, scores second. Topics
and members are numbers here.

The flow. Rows are topics, columns are members, and a row sends one unit to each column it chooses.
Each column takes an equal number of units. One more node, the remainder, takes the units left over,
at most one of a column. The method is successive shortest paths:

- Start with every row's own cheapest choice. Nothing is wrong with it but the columns' numbers:
  some have too many units (excess), some too few. Where the assignment before was balanced and
  little has changed, little is wrong.
- While a column has excess, find the cheapest chain of exchanges from it to a node that lacks a
  unit and shift one unit along it: a row gives up column a for column b, another one b for c, or
  the remainder takes a unit of a instead of one of b. Dijkstra's algorithm finds the chain.
- Potentials keep the costs of all exchanges at 0 or above, as Dijkstra's algorithm requires. They
  also prove that no cheaper flow has this excess, so without excess there is no cheaper flow.

What makes it fast: rows are nodes, so a search passes each cell once at most, not each pair of
cells of a row; scores are computed for rows that a search reaches; rows and columns are tried from
the nearest on, until the nearest goal found so far is nearer; a search ends at the first goal.
"""

from bisect import insort
from collections.abc import Collection, Sequence
from heapq import heappop, heappush

import msgspec

from pocketmq.balance.sticky.scores import scores

# A kept queue outweighs the scores of 2^24 extras together.
_MOVE = 1 << 88
_FAR = 1 << 200


class Row(msgspec.Struct, frozen=True):
    """A topic whose queues cannot be divided equally.

    `extras` members get one more: at least 1, fewer than there are members. `above` are the columns
    of the members that own more than the equal share already: an extra there saves a move.
    """

    key: int
    extras: int
    above: Collection[int]


def choose_extras(rows: Sequence[Row], member_keys: Sequence[int]) -> list[set[int]]:
    """Return the columns that get one queue more, row by row.

    The choice saves the most moves, then has the least sum of scores, among all choices in which
    the numbers of extras of any two columns differ by one at most.
    """
    return _Flow(rows, member_keys).solve() if rows else []


class _Search:
    """A run of Dijkstra's algorithm over the nodes of a flow."""

    def __init__(self, source: int) -> None:
        self.heap = [(0, source, source)]  # distance, node, the node before it
        self.nearest = {source: 0}  # columns and the remainder: the shortest way found so far
        self.done: dict[int, int] = {}  # nodes passed, with their distances
        self.back: dict[int, int] = {}
        self.tried: dict[int, int] = {}  # columns passed: how many of their rows were tried
        self.bound = _FAR  # the distance of the nearest goal found so far


class _Flow:
    """A flow on the way to its optimum. Nodes are numbers: columns, the remainder, then rows."""

    def __init__(self, rows: Sequence[Row], member_keys: Sequence[int]) -> None:
        self.rows = rows
        self.keys = member_keys
        self.remainder = len(member_keys)
        self.costs: list[list[int]] = [[] for _ in rows]  # empty until needed
        self.order: list[list[int]] = [[] for _ in rows]  # columns, cheapest first; same
        self.chosen = [self._cheapest(number, row) for number, row in enumerate(rows)]
        self.rows_of: list[set[int]] = [set() for _ in member_keys]
        for number, columns in enumerate(self.chosen):
            for column in columns:
                self.rows_of[column].add(number)
        # Of a column that a search has passed: what leaving it through each of its rows costs, the
        # cheapest first. Rows' potentials only fall, which makes it more expensive: an entry may be
        # too low but never too high; `_next_row` corrects entries that it meets.
        self.exits: list[list[tuple[int, int]]] = [[] for _ in member_keys]
        floor, left_over = divmod(sum(row.extras for row in rows), len(member_keys))
        # Units too many (above 0) or missing (below 0), of the columns and of the remainder.
        self.excess = [len(numbers) - floor for numbers in self.rows_of] + [-left_over]
        self.in_remainder: set[int] = set()
        # Potentials of columns and remainder start at 0 and only fall: `_from_row` relies on it.
        self.potential = [0] * (len(member_keys) + 1)
        self.row_potential = [0] * len(rows)
        self.entered = [False] * len(rows)  # whether a search has passed one of its columns

    def _cheapest(self, number: int, row: Row) -> set[int]:
        """Return a row's own choice; if it is simply all that are above, no score is computed."""
        if len(row.above) == row.extras:
            return set(row.above)
        costs = self._costs(number)
        if row.extras == 1:
            return {costs.index(min(costs))}
        limit = sorted(costs)[row.extras - 1]
        return {column for column, cost in enumerate(costs) if cost <= limit}

    def _costs(self, number: int) -> list[int]:
        """Return the costs of a row's cells, computed on first use."""
        if not self.costs[number]:
            row = self.rows[number]
            self.costs[number] = costs = scores(row.key, self.keys)
            for column in row.above:
                costs[column] -= _MOVE
        return self.costs[number]

    def solve(self) -> list[set[int]]:
        """Shift all excess to where units are missing, and return the choice."""
        for column in range(self.remainder):
            # At first the remainder is the nearest goal of every column, at distance 0.
            if self.excess[column] > 0 > self.excess[self.remainder]:
                self.in_remainder.add(column)
                self.excess[column] -= 1
                self.excess[self.remainder] += 1
        for column in range(self.remainder):
            while self.excess[column] > 0:
                self._shift(column)
        return self.chosen

    def _shift(self, source: int) -> None:
        """Shift one unit from a column with excess along the shortest path to the nearest goal."""
        search = _Search(source)
        heap, done, remainder = search.heap, search.done, self.remainder
        while True:
            distance, node, before = heappop(heap)
            if node > remainder:
                self._next_row(search, before)
            if node in done:
                continue  # a longer way to it
            search.back[node] = before
            if node <= remainder and self.excess[node] < 0:
                break
            done[node] = distance
            if node > remainder:
                self._from_row(search, distance, node)
            elif node < remainder:
                self._from_column(search, distance, node)
            else:
                self._from_remainder(search, distance)
        # The nodes passed come nearer to the goal by what they are nearer to the source. All costs
        # stay at 0 or above, and those along the path become 0: it can be used both ways.
        for passed, its_distance in done.items():
            if passed > remainder:
                self.row_potential[passed - remainder - 1] += its_distance - distance
            else:
                self.potential[passed] += its_distance - distance
        self._exchange(search, source, node)

    def _from_column(self, search: _Search, distance: int, column: int) -> None:
        """Reach the rows that chose a column and could give it up, and the remainder."""
        if not self.exits[column]:
            self.exits[column] = sorted(
                (self._first_exit(number, column), number) for number in self.rows_of[column]
            )
        search.tried[column] = 0
        self._next_row(search, column)
        if column not in self.in_remainder:
            there = distance + self.potential[column] - self.potential[self.remainder]
            self._reach(search, self.remainder, there, column)

    def _next_row(self, search: _Search, column: int) -> None:
        """Reach the nearest row of a column that was not tried yet."""
        exits, position = self.exits[column], search.tried[column]
        start = search.done[column] + self.potential[column]
        while position < len(exits):
            cost, number = exits[position]
            now = -self.costs[number][column] - self.row_potential[number]
            if now > cost:  # a search has passed the row since
                del exits[position]
                insort(exits, (now, number))
                continue
            if start + cost < search.bound:
                heappush(search.heap, (start + cost, self.remainder + 1 + number, column))
                search.tried[column] = position + 1
            return

    def _from_row(self, search: _Search, distance: int, node: int) -> None:
        """Reach the columns that a row did not choose and could."""
        number = node - self.remainder - 1
        costs, chosen, potential = self.costs[number], self.chosen[number], self.potential
        if not self.order[number]:
            self.order[number] = sorted(range(self.remainder), key=costs.__getitem__)
        start = distance + self.row_potential[number]
        nearest = search.nearest
        for column in self.order[number]:
            there = start + costs[column]
            if there >= search.bound:
                break  # so are all that follow: they cost more, and potentials only add to it
            there -= potential[column]
            if there < nearest.get(column, search.bound) and column not in chosen:
                self._reach(search, column, there, node)

    def _from_remainder(self, search: _Search, distance: int) -> None:
        """Reach the columns whose unit the remainder has and could refuse."""
        start = distance + self.potential[self.remainder]
        for column in self.in_remainder:
            self._reach(search, column, start - self.potential[column], self.remainder)

    def _reach(self, search: _Search, node: int, distance: int, before: int) -> None:
        """Note a way to a column or the remainder, if it is the shortest so far."""
        if distance < search.nearest.get(node, search.bound):
            search.nearest[node] = distance
            heappush(search.heap, (distance, node, before))
            if self.excess[node] < 0:
                search.bound = distance

    def _first_exit(self, number: int, column: int) -> int:
        """Return what leaving a column through a row costs, when a search first passes the column.

        If no column of the row was passed before, the row gets its potential now: the one with
        which the best column left costs nothing more. All is paid on entering the row, so a row
        without a good exchange is not entered. Potentials of the columns left are at most 0, those
        of the chosen ones are still 0, so that no cost is below 0.
        """
        costs = self._costs(number)
        if not self.entered[number]:
            self.entered[number] = True
            left = costs.copy()
            for taken in self.chosen[number]:
                left[taken] = _FAR
            self.row_potential[number] = -min(left)
        return -costs[column] - self.row_potential[number]

    def _exchange(self, search: _Search, source: int, goal: int) -> None:
        """Shift one unit along the path that a search found."""
        node = goal
        while node != source:
            before = search.back[node]
            if before > self.remainder:  # the row chooses this column
                self._choose(before - self.remainder - 1, node)
            elif node > self.remainder:  # the row gives up the column before
                self._give_up(node - self.remainder - 1, before)
            elif node == self.remainder:
                self.in_remainder.add(before)
            else:
                self.in_remainder.remove(node)
            node = before
        self.excess[source] -= 1
        self.excess[goal] += 1

    def _choose(self, number: int, column: int) -> None:
        self.chosen[number].add(column)
        self.rows_of[column].add(number)
        if self.exits[column]:
            insort(self.exits[column], (self._first_exit(number, column), number))

    def _give_up(self, number: int, column: int) -> None:
        self.chosen[number].remove(column)
        self.rows_of[column].remove(number)
        exits = self.exits[column]
        del exits[next(n for n, (_, row) in enumerate(exits) if row == number)]
