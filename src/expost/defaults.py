"""What stands where the caller states nothing: defaults of estimators and of the command line, each in one place."""

#: No outcome costs more unless the caller says so, and a release that does warns: odds moved by a factor above seven.
MAX_EPSILON = 2.0
#: γ, the chance over the noise that a promise of accuracy is broken, where the caller states none.
FAILURE_PROBABILITY = 0.1
#: Part of a goal that the noise of its test may take up, where the caller states none.
MARGIN = 0.2
#: Part of the rows that models are tested on and not fitted to, where a promise is about new rows.
HOLDOUT = 0.25
#: What the name of the file ends in that says who was held out, in the place of the release's .json, if it ends so.
HELD_OUT = ".held-out"
#: What counts of an evaluation are right within, as a share of the rows, where the caller states nothing.
EVALUATED_WITHIN = 0.02
#: Where that would cost more than the model did, a wider one may be taken, up to this: bands twice as wide say little.
EVALUATED_AT_WIDEST = 0.2
#: Synthetic tables that a plan searches, where the caller states no number.
WORLDS = 30
