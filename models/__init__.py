"""Problems, solutions and the referee: what every family is made of.

This layer imports nothing else of optgap. A *problem* is immutable plain data, a
*solution* says what was decided, and the *referee* (``problem.check`` and
``problem.evaluate``) recomputes constraints, objective and metrics from the two
alone, sharing no code with the solvers and policies it judges.
"""
