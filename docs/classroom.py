"""A lesson in one page: drag the noise and the questions, and watch secrets fall.

``marimo run classroom.py`` shows it to a class, ``marimo edit classroom.py`` lets everyone change
it, and ``python classroom.py`` prints what it finds, without a page.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Counts give secrets away")


@app.cell
def _():
    import altair as alt
    import marimo as mo
    import numpy as np

    import countleak as cl
    from countleak.audit.budget.evolution import Attack, LeastSquares
    from countleak.audit.budget.prediction import predict

    return Attack, LeastSquares, alt, cl, mo, np, predict


@app.cell
def _(mo):
    mo.md("""
    # Counts give secrets away

    Everyone in a class has a secret, yes or no. Nobody may ask about one person. Anyone may ask
    *how many of these people say yes?*, and gets the number with noise added. Is that safe?

    Drag the noise and the number of questions.
    """)
    return


@app.cell
def _(mo):
    size = mo.ui.slider(20, 100, 10, value=50, label="people", show_value=True, full_width=True)
    noise = mo.ui.slider(
        0.5, 20, 0.5, value=4, label="noise (standard deviation)", show_value=True, full_width=True
    )
    asked = mo.ui.slider(
        10, 600, 10, value=300, label="questions", show_value=True, full_width=True
    )
    mo.vstack([size, noise, asked])
    return asked, noise, size


@app.cell
def _(asked, noise, size):
    n, sigma, m = size.value, noise.value, asked.value
    return m, n, sigma


@app.cell
def _(cl, n, np):
    # One class and one list of questions for all settings, so that only what is dragged changes.
    people = cl.generated_census(n, seed=7)
    truth = people.truth("sex = 1")
    questions = cl.random_subsets(people.ids, 600, np.random.default_rng(1))
    return people, questions, truth


@app.cell
def _(cl, np, people, questions, sigma, truth):
    system = cl.targets.Simulated(people, cl.Bit("sex = 1"), cl.Gaussian(sigma))
    every_answer = cl.ask(questions, system)

    def attack(count):
        """What an attacker concludes from the first so many answers, and how right that is."""
        guess = cl.decoders.LeastSquares().decode(every_answer.take(np.arange(count)))
        return guess, cl.score(guess, truth)

    return attack, every_answer


@app.cell
def _(every_answer, mo, questions, truth):
    _rows = [
        f"| {int(questions.matrix[_i].sum())} people | {int(questions.dot(truth)[_i])} "
        f"| {every_answer.values[_i]:.1f} |"
        for _i in range(3)
    ]
    mo.md(
        "The first three questions. Only the last column is answered:\n\n"
        "| asked about | true count | answer |\n|---|---|---|\n" + "\n".join(_rows)
    )
    return


@app.cell
def _(attack, m, n, sigma):
    guess, score = attack(m)
    print(f"{n} people, noise of SD {sigma:g}, {m} questions: {score}")
    return guess, score


@app.cell
def _(guess, mo, score, truth):
    _right = guess.values == truth
    _cells = "".join(
        f'<span title="person {_i}" style="font-size:1.6em;color:{_color}">{_mark}</span>'
        for _i, (_mark, _color) in enumerate(
            ("●", "#0f766e") if _ok else ("○", "#b45309") for _ok in _right.tolist()
        )
    )
    mo.vstack(
        [
            mo.md(
                f"**{int(_right.sum())} of {_right.size} secrets guessed right** "
                f"(● right, ○ wrong); guessing alone gets {score.baseline:.0%}."
            ),
            mo.Html(f'<div style="display:flex;flex-wrap:wrap;gap:0.4em">{_cells}</div>'),
        ]
    )
    return


@app.cell
def _(Attack, LeastSquares, attack, cl, n, predict, sigma, truth):
    steps = [m for m in (20, 40, 80, 150, 300, 450, 600) if m > n]
    _prior = float(truth.mean())
    curve = [
        {"questions": _m, "share right": float(_share), "what": _what}
        for _m in steps
        for _what, _share in (
            ("this class", attack(_m)[1].accuracy),
            (
                "predicted",
                predict(Attack(n, _m, cl.Gaussian(sigma), _prior), LeastSquares()).accuracy,
            ),
        )
    ]
    for _row in curve:
        print(f"{_row['questions']:4} questions, {_row['what']}: {_row['share right']:.2f} right")
    return (curve,)


@app.cell
def _(alt, curve, mo):
    mo.ui.altair_chart(
        alt.Chart(alt.Data(values=curve))
        .mark_line(point=True)
        .encode(
            x=alt.X("questions:Q", title="questions answered"),
            y=alt.Y("share right:Q", title="share right", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("what:N", title=None),
        )
        .properties(title="The more answers, the more secrets are known", width="container"),
        chart_selection=False,
    )
    return


@app.cell
def _(mo):
    mo.md("""
    ## To try

    1. With noise of 4, how many questions give away nine of ten?
    2. Double the noise. How many questions now? (Four times as many: the noise of an average falls
       with the square root.)
    3. Double the class. What must happen to the noise, to be as safe against as many
       questions as people?
    4. What would you change: the noise, the number of questions, or who may ask?
    """)
    return


if __name__ == "__main__":
    app.run()
