"""The loops: collect, evaluate, plan, deliver. No decisions."""
