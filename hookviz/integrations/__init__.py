"""Callbacks that record a training whose loop you did not write.

``hookviz.integrations.lightning`` and ``hookviz.integrations.transformers`` each have ``RecordSteps``, which records
chosen training steps, and ``FlightRecorder``, which keeps the last passes until something goes wrong.
"""
