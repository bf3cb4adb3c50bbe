"""What an auditor does around an attack: people, targets, the run, scores, budget, report."""
