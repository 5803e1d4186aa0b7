"""Hot loops of many queries alike: what the walk would look up for each of them, made once.

All queries are of the same height and width, so chances depend only on how far a footprint lies
from a query. The values are those that the walk finds by itself.
"""

from __future__ import annotations

import numpy as np

from dpregions.compiled import njit
from dpregions.mechanisms.footprint.border_kernel import SAMPLED, chance_of, partly, sampled


@njit(cache=True, nogil=True)
def chances_alike(letters, of_letter, starts, n, tables, tall, wide):
    """Return each letter's chance to touch a query, by how far the query begins from its place.

    The table of letter k begins at ``starts[k]``; it was asked for by letter ``of_letter[k]``, if
    that is another.
    """
    found = np.empty(n)
    for k in range(len(letters)):
        if of_letter[k] != k:
            continue
        letter, i = letters[k], starts[k]
        for y in range(1 - tall, letter.height):
            for x in range(1 - wide, letter.width):
                found[i] = chance_of(letter, tables, 0, 0, y, y + tall - 1, x, x + wide - 1)
                i += 1
    return found


@njit(cache=True, nogil=True)
def misses_alike(letters, members, member_sides, starts, n, chances, chance_starts, tall, wide):
    """Return sums over the sampled places of a leaf's corners of the chances to miss a query.

    By how far a query begins from the leaf's first place, for leaves of one side for each group:
    four corners each, that below and left first. Members of side 0 have none.
    """
    found = np.zeros(n)
    for m in range(len(members)):
        side, k = member_sides[m], members[m]
        if side == 0:
            continue
        h, w, i = letters[k].height, letters[k].width, starts[m]
        for y in range(1 - tall, side + h - 1):
            for x in range(1 - wide, side + w - 1):
                for corner in range(4):
                    d0, d1 = partly(h, y, y + tall - 1, corner >= 2)
                    e0, e1 = partly(w, x, x + wide - 1, corner % 2 == 1)
                    d0, d1, e0, e1 = max(d0, 0), min(d1, side - 1), max(e0, 0), min(e1, side - 1)
                    if d1 >= d0 and e1 >= e0:
                        found[i] = _missed(
                            chances, chance_starts[k], w + wide - 1, d0, d1, e0, e1,
                            y + tall - 1, x + wide - 1,
                        )  # fmt: skip
                    i += 1
    return found


@njit(cache=True, nogil=True)
def _missed(chances, start, across, d0, d1, e0, e1, y, x):
    n_r, n_c, missed = d1 - d0 + 1, e1 - e0 + 1, 0.0
    m_r, m_c = min(n_r, SAMPLED), min(n_c, SAMPLED)
    for i in range(m_r):
        r = sampled(d0, n_r, i, m_r)
        for j in range(m_c):
            missed += 1 - chances[start + (y - r) * across + x - sampled(e0, n_c, j, m_c)]
    return missed


@njit(cache=True, nogil=True)
def mixed_alike(letters, groups, members, starts, n, chances, chance_starts, tall, wide):
    """Return each group's chance to touch a query, by how far the query begins from a centre cell.

    Its letters take part by their weights, each as far as it reaches. A group's table, as high as
    its highest letter and as wide as its widest, begins at ``starts``; -1: it has none.
    """
    found = np.zeros(n)
    for g in range(len(groups)):
        if starts[g] < 0:
            continue
        group, whole = groups[g], 0.0
        top, right = (group.highest - 1) // 2, (group.widest - 1) // 2
        across = group.widest + wide - 1
        for m in range(group.begin, group.end):
            letter, i = letters[members[m]], chance_starts[members[m]]
            h, w = letter.height, letter.width
            up, left = top - (h - 1) // 2, right - (w - 1) // 2
            whole += letter.weight
            for y in range(h + tall - 1):
                within = y <= tall - 1 and y >= h - 1
                for x in range(w + wide - 1):
                    sure = within or (x <= wide - 1 and x >= w - 1)
                    chance = 1.0 if sure else chances[i + y * (w + wide - 1) + x]
                    found[starts[g] + (y + up) * across + x + left] += letter.weight * chance
        for i in range(starts[g], starts[g] + (group.highest + tall - 1) * across):
            found[i] /= whole
    return found
