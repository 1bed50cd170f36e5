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

SIZE = 11
STEPS = {"up": (0, 1), "down": (0, -1), "right": (1, 0), "left": (-1, 0)}
ROOMS = (((0, 4), (0, 4)), ((0, 4), (6, 10)), ((6, 10), (5, 10)), ((6, 10), (0, 3)))  # ranges of x and y
HALLWAYS = ((5, 1), (1, 5), (5, 8), (8, 4))
QUESTIONS = ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 0))  # room, hallway to reach
PUSHED = {(1, 1): "left", (1, 8): "left", (8, 1): "right", (8, 8): "right"}  # by the high-variance behaviour policy
DISCOUNT = 0.9

Cell = tuple[int, int]


def rooms(question: int = 0, variance: str = "low") -> Task:
    """Make one of the eight questions, 0 to 7; `variance` is "low" or "high". All eight share their trajectories."""
    question = whole_number("'question'", question, at_least=0, at_most=len(QUESTIONS) - 1)
    one_of("'variance'", variance, ("low", "high"))
    room, hallway = QUESTIONS[question]
    goal, cells = HALLWAYS[hallway], [(int(x), int(y)) for x, y in np.argwhere(grid())]
    number = {cell: i for i, cell in enumerate(cells)}
    table = np.array([[number[after(cell, step)] for step in STEPS.values()] for cell in cells])  # (states, actions)
    asked = [cell for cell in cells if cell != goal and (inside(cell, room) or cell in doors(room))]
    interest = np.isin(np.arange(len(cells)), [number[cell] for cell in asked]).astype(float)
    n, actions = table.shape
    behaviour = acting(cells, variance)
    state, action, entered = np.repeat(np.arange(n), actions), np.tile(np.arange(actions), n), table.ravel()
    return Task(
        name="rooms",
        outcomes=Outcomes(state, action, entered, np.ones(len(state)), np.zeros(len(state))),
        discount=DISCOUNT * interest,
        start=np.eye(1, n, number[0, 0])[0],
        behaviour=behaviour,
        target=shortest_way(table, number[goal], interest, behaviour),
        feature_rows=grid_features(cells),
        initial_weights=np.zeros(12),
        cumulant=((entered == number[goal]) & (interest[state] > 0)).astype(float),
        interest=interest,
        parameters={"question": question} | ({"variance": variance} if variance == "high" else {}),
    )


def grid() -> np.ndarray:
    """Return an (11, 11) mask of the floor cells (x, y)."""
    floor = np.zeros((SIZE, SIZE), bool)
    for (left, right), (low, high) in ROOMS:
        floor[left : right + 1, low : high + 1] = True
    floor[tuple(np.transpose(HALLWAYS))] = True
    return floor


def after(cell: Cell, step: Cell) -> Cell:
    """Return the cell that a step leads to; a wall keeps the agent in its cell."""
    x, y = cell[0] + step[0], cell[1] + step[1]
    return (x, y) if 0 <= x < SIZE and 0 <= y < SIZE and grid()[x, y] else cell


def inside(cell: Cell, room: int) -> bool:
    """Return whether a cell lies in a room."""
    return all(low <= place <= high for place, (low, high) in zip(cell, ROOMS[room], strict=True))


def doors(room: int) -> list[Cell]:
    """Return the two hallways of a room."""
    return [HALLWAYS[hallway] for one, hallway in QUESTIONS if one == room]


def acting(cells: list[Cell], variance: str) -> np.ndarray:
    """Return the behaviour policy, (states, actions)."""
    policy = np.full((len(cells), len(STEPS)), 1 / len(STEPS))
    for cell, action in PUSHED.items() if variance == "high" else ():
        policy[cells.index(cell)] = np.where(np.array(list(STEPS)) == action, 0.97, 0.01)
    return policy


def shortest_way(table: np.ndarray, goal: int, interest: np.ndarray, behaviour: np.ndarray) -> np.ndarray:
    """Return the policy that takes a shortest path to the goal, ties broken evenly; elsewhere the behaviour."""
    distance = np.full(len(table), np.inf)
    distance[goal] = 0
    for _ in range(len(table)):
        through = np.where(interest > 0, 1 + distance[table].min(axis=1), np.inf)
        distance = np.minimum(distance, through)
    nearer = distance[table] < distance[:, None]
    asked = (interest > 0)[:, None]
    return np.where(asked, nearer / np.maximum(1, nearer.sum(axis=1, keepdims=True)), behaviour)


def grid_features(cells: list[Cell]) -> sp.csr_matrix:
    """Return (states, 12) binary features: the quarter, horizontal stripe and vertical stripe of each cell."""
    x, y = np.transpose(cells)
    active = np.column_stack([2 * (x >= 5) + (y >= 5), 4 + x // 3, 8 + y // 3])
    rows = np.repeat(np.arange(len(cells)), 3)
    return sp.csr_matrix((np.ones(3 * len(cells)), (rows, active.ravel())), shape=(len(cells), 12))
