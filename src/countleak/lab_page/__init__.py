"""The lab: pages in a browser that ask Diffix by hand, run the attack live, and map its accuracy.

    settings      what a visitor may choose, within bounds, as the library's own objects
    attack        one audit, with a decode every so often for whoever watches
    asking        a question to Diffix, and how its answer came about
    accuracy_map  predicted accuracy over noise and questions, from ``audit.budget``
    worker        the process in which those three run
    processes     the processes, and the queue before them
    attacks       the attacks of all visitors, kept for as long as someone may look
    drawing       all that is drawn, as numbers for the templates
    app           addresses to pages
    guard         who may send requests, and what a page may load
    server        all of it from its start to its end

A visitor needs no account, no cookie and no script but htmx (``assets``, as published).
"""
