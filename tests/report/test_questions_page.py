"""The page of questions shows its pictures and every question."""

import numpy as np

from gradient_dd import Question, Questions
from gradient_dd.report.questions_page import Curve, questions_page


def test_the_page_has_every_question_and_picture():
    horde = Questions([Question("<soon>", 1.0, 0.5), Question("late", 1.0, 0.9)], n_features=1, learner="td")
    curve = Curve("The best: <soon>", np.arange(5.0), np.arange(5.0) + 1)
    page = questions_page("Two questions", ["A sentence."], [curve], horde.summary())
    assert page.count("<polyline") == 2
    assert "&lt;soon&gt;" in page
    assert "<soon>" not in page
    assert "late" in page
    assert "A sentence." in page
