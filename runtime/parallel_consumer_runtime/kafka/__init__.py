"""The only importer of confluent_kafka: one thread owns the consumer, another serves the producer."""
