"""The applications that are shipped; `parallel_consumer_spark/apps` holds the files that spark-submit is given."""
