"""Files for spark-submit, one for each application: `mainApplicationFile: local:///opt/parallel-consumer/archive.py`."""
