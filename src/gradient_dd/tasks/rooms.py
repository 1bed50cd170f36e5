"""Rooms: eight prediction questions about one stream of experience in four rooms.

Table      an 11 × 11 grid in four rooms, joined by hallways at (x, y) = (5, 1), (1, 5), (5, 8) and (8, 4). The actions
           go up, down, right and left; walls block them. All rewards are zero and episodes never end
Start      the corner (0, 0)
Behaviour  each action with ¼. With variance="high", at (1, 1) and (1, 8) left with 0.97 and at (8, 1) and (8, 8) right
           with 0.97, the other actions there with 0.01, so that ratios reach 100
Questions  two for each room, one for each of its hallways. Question 0 … 7: how soon does the shortest path lead into
           that hallway? Cumulant 1 on entering it; discount 0.9 into the room and into its other hallway, 0 elsewhere;
           target: a shortest path, ties broken evenly; interest 1 in the room and in its other hallway
Features   12 binary features, 3 of them active: four quarters of the grid, four horizontal and four vertical stripes
Weights    0

Ghiassian & Sutton (2021), An empirical comparison of off-policy prediction learning algorithms in the four rooms
environment. The authors use other features, also 12 with 3 active.
"""

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import one_of, whole_number
from gradient_dd.tasks.task import Outcomes, Task

STEPS = {"up": (0, 1), "down": (0, -1), "right": (1, 0), "left": (-1, 0)}
ROOMS = (((0, 4), (0, 4)), ((0, 4), (6, 10)), ((6, 10), (5, 10)), ((6, 10), (0, 3)))  # ranges of x and y
HALLWAYS = ((5, 1), (1, 5), (5, 8), (8, 4))
QUESTIONS = ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 0))  # room, hallway to reach
PUSHED = {(1, 1): "left", (1, 8): "left", (8, 1): "right", (8, 8): "right"}  # likely with variance="high"
DISCOUNT = 0.9
CELLS = sorted(
    {(x, y) for (left, right), (low, high) in ROOMS for x in range(left, right + 1) for y in range(low, high + 1)}
    | set(HALLWAYS)
)


def rooms(question: int = 0, variance: str = "low") -> Task:
    """Make question 0 to 7; `variance` is "low" or "high". All eight questions share their trajectories."""
    question = whole_number("'question'", question, at_least=0, at_most=len(QUESTIONS) - 1)
    one_of("'variance'", variance, ("low", "high"))
    room, hallway = QUESTIONS[question]
    (left, right), (low, high) = ROOMS[room]
    goal, doors = HALLWAYS[hallway], [HALLWAYS[door] for place, door in QUESTIONS if place == room]
    asked = [one != goal and (one in doors or (left <= one[0] <= right and low <= one[1] <= high)) for one in CELLS]
    interest, number = np.array(asked, float), {cell: i for i, cell in enumerate(CELLS)}
    after = [[number.get((x + right, y + up), number[x, y]) for right, up in STEPS.values()] for x, y in CELLS]
    table = np.array(after)  # (states, actions); a wall keeps the agent in its cell
    n, actions = table.shape
    behaviour = np.full((n, actions), 1 / actions)
    for cell, way in PUSHED.items() if variance == "high" else ():
        behaviour[number[cell]] = np.where(np.array(list(STEPS)) == way, 0.97, 0.01)
    state, action, entered = np.repeat(np.arange(n), actions), np.tile(np.arange(actions), n), table.ravel()
    return Task(
        name="rooms",
        outcomes=Outcomes(state, action, entered, np.ones(len(state)), np.zeros(len(state))),
        discount=DISCOUNT * interest,
        start=np.eye(1, n, number[0, 0])[0],
        behaviour=behaviour,
        target=shortest_way(table, number[goal], interest, behaviour),
        feature_rows=grid_features(),
        initial_weights=np.zeros(12),
        cumulant=((entered == number[goal]) & (interest[state] > 0)).astype(float),
        interest=interest,
        parameters={"question": question} | ({"variance": variance} if variance == "high" else {}),
    )


def shortest_way(table: np.ndarray, goal: int, interest: np.ndarray, behaviour: np.ndarray) -> np.ndarray:
    """Return the policy that takes a shortest path to the goal, ties broken evenly; elsewhere the behaviour policy."""
    distance = np.full(len(table), np.inf)
    distance[goal] = 0
    for _ in range(len(table)):
        through = np.where(interest > 0, 1 + distance[table].min(axis=1), np.inf)
        distance = np.minimum(distance, through)
    nearer = distance[table] < distance[:, None]
    asked = (interest > 0)[:, None]
    return np.where(asked, nearer / np.maximum(1, nearer.sum(axis=1, keepdims=True)), behaviour)


def grid_features() -> sp.csr_matrix:
    """Return (states, 12) binary features: the quarter, horizontal stripe and vertical stripe of each cell."""
    x, y = np.transpose(CELLS)
    active = np.column_stack([2 * (x >= 5) + (y >= 5), 4 + x // 3, 8 + y // 3])
    rows = np.repeat(np.arange(len(CELLS)), 3)
    return sp.csr_matrix((np.ones(3 * len(CELLS)), (rows, active.ravel())), shape=(len(CELLS), 12))
