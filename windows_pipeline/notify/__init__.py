"""Sends notifications of the events of alert episodes; needs no Spark."""
